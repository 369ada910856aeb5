"""Makes what a controller among others needs, from its settings; one that is alone needs nothing of it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from typing import Any

from ryu import cfg

from fairq_ryu.cluster.database import Database
from fairq_ryu.cluster.ownership import Together
from fairq_ryu.cluster.settings import CLUSTER
from fairq_ryu.cluster.view import Member
from fairq_ryu.config.loader import Config
from fairq_ryu.control.ownership.owners import Owners, process_id
from fairq_ryu.errors import UserError
from fairq_ryu.ryu_compat.batched_io import SwitchConnection

_EVERYWHERE = ("0.0.0.0", "::", "")


def owners(
    config: Config,
    gained: Callable[[Any], None],
    lost: Callable[[Any, str], None],
    dropped: Callable[[int], None],
    load: Callable[[int], int],
    log: logging.Logger,
) -> Owners | None:
    """The ownership of bridges, as :class:`Owners`; None: this controller is alone. Raises
    :class:`UserError`.
    """
    section = config.section(CLUSTER)
    if not section["database"]:
        return None
    name = str(section["name"])
    member = Member(process_id(name), name, _rest(str(section["rest"])), digest(config))
    # Of the class: Ryu makes the connections, and from their first message on one belongs to nobody until
    # the switch has confirmed the role.
    SwitchConnection.owned = False
    agents_only = config.value("fairq_ryu", "way") == "windows"
    # What is divided among bridges, an uplink, needs one view of the agents of all of them.
    together = Together.NONE if agents_only else Together.CONNECTED
    together = Together.ALL if config.uplinks() else together
    lease = config.number("fairq_ryu", "lease")
    database = Database(str(section["database"]), log)
    return Owners(database, member, together, agents_only, lease, gained, lost, dropped, load, log)


def digest(config: Config) -> str:
    """A text that differs where settings differ that all controllers of a fabric should share."""
    values = {name: each for name, each in config.as_dict().items() if name != CLUSTER}
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rest(address: str) -> str:
    if address:
        return address.rstrip("/")
    host, port = cfg.CONF.wsapi_host, cfg.CONF.wsapi_port
    if host in _EVERYWHERE or not port:
        raise UserError(
            f"the other controllers cannot know where REST is served: on {host or 'all addresses'}",
            f"set [{CLUSTER}] rest to an address of this machine, such as http://192.0.2.1:8080",
        )
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
