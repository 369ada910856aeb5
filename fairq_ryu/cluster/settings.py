"""The section ``[cluster]``: whether this controller shares its fabric with others, and who it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from fairq_ryu.errors import UserError
from fairq_ryu.setting import Setting, Value

CLUSTER = "cluster"
SCHEMA = Path(__file__).with_name("fairq.ovsschema")
"""The schema of the database."""
_REMOTE = re.compile(r"unix:/\S+|tcp:(\[[0-9A-Fa-f:.]+\]|[0-9.]+):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def check_database(text: str) -> None:
    """Raise :class:`UserError` unless a text names servers of OVSDB, or nothing."""
    for each in text.split(",") if text else ():
        found = _REMOTE.fullmatch(each)
        if found is None or not 0 < int(found["port"] or 1) < 65536:
            raise UserError(
                f"{each!r} is no server of a database",
                "write unix:/FILE or tcp:ADDRESS:PORT; of a cluster all servers, with commas between them",
            )


def check_name(text: str) -> None:
    """Raise :class:`UserError` unless a text may name a controller, or is empty."""
    if text and not _NAME.fullmatch(text):
        raise UserError(
            f"{text!r} is no name of a controller", "use up to 63 letters, digits and . _ -, such as rack1"
        )


def check_rest(text: str) -> None:
    """Raise :class:`UserError` unless a text is the address of a REST interface, or empty."""
    try:
        parts = urlsplit(text)
        fine = parts.scheme == "http" and bool(parts.hostname) and parts.path in ("", "/")
        fine = fine and not parts.query and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if text and not fine:
        raise UserError(f"{text!r} is no address of a REST interface", "write http://ADDRESS:PORT")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        CLUSTER,
        "database",
        "",
        "",
        "Servers of the database that the controllers of a fabric share: unix:/FILE or tcp:ADDRESS:PORT, of "
        "a cluster all of them with commas between (empty: this controller is the only one). Set it where "
        "several controllers share a fabric.",
        grammar=check_database,
    ),
    Setting(
        CLUSTER,
        "name",
        "",
        "",
        "Name of this controller among them; two must not have the same. Set it with database.",
        grammar=check_name,
    ),
    Setting(
        CLUSTER,
        "rest",
        "",
        "",
        "Address at which the other controllers reach the REST interface of this one, http://ADDRESS:PORT "
        "(empty: where it serves, --wsapi-host and --wsapi-port). Set it where it serves on all addresses.",
        grammar=check_rest,
    ),
)


def check_together(values: Mapping[str, Value]) -> None:
    """Conditions between these settings. Raises :class:`UserError`."""
    if values["database"] and not values["name"]:
        raise UserError(
            f"[{CLUSTER}] database is set, but this controller has no name",
            f"set [{CLUSTER}] name, another for each controller",
        )
    if values["name"] and not values["database"]:
        raise UserError(
            f"[{CLUSTER}] name is set, but no database", f"set [{CLUSTER}] database, or take the name out"
        )
