"""``fairq cluster``: the file of the database between controllers, and who owns which bridge."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli import columns
from fairq_ryu.cluster.settings import SCHEMA, check_database
from fairq_ryu.errors import UserError, plain

_USAGE = "see fairq cluster --help"
_NAME = "Fairq"


def init(file: str, listen: str | None, raft: str | None, join: Sequence[str]) -> int:
    """Make the file of a server, and print the command that serves it and the lines for controllers. Returns
    0. Raises :class:`UserError`.
    """
    path = Path(file).absolute()
    try:
        there, beside = path.exists(), path.with_suffix(".sock")
    except (OSError, ValueError) as error:
        raise UserError(f"{file!r}: {error}", "name a file that can be made") from None
    remote = listen or f"unix:{beside}"
    for each in (remote, *filter(None, (raft, *join))):
        if "," in each:
            raise UserError(f"{each!r} is more than one address", _USAGE)
        check_database(each)
    if raft is not None and listen is None:
        raise UserError("a server of a cluster needs --listen tcp:ADDRESS:PORT", _USAGE)
    if join and raft is None:
        raise UserError("--join needs --raft, the address of this server for the others", _USAGE)
    if there:
        raise UserError(f"{path} exists already", "serve it, or choose another file")
    if shutil.which("ovsdb-tool") is None:
        raise UserError("there is no ovsdb-tool", "install Open vSwitch (Debian: openvswitch-common)")
    words: list[str]
    if raft is None:
        words = ["create", str(path), str(SCHEMA)]
    elif not join:
        words = ["create-cluster", str(path), str(SCHEMA), raft]
    else:
        words = ["join-cluster", str(path), _NAME, raft, *join]
    done = subprocess.run(["ovsdb-tool", *words], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"ovsdb-tool {words[0]}: {done.stderr.strip()}", "see that its folder is there")
    served = ["ovsdb-server", str(path), f"--remote=p{_passive(remote)}"]
    served += [f"--pidfile={path.with_suffix('.pid')}", f"--unixctl={path.with_suffix('.ctl')}"]
    served += [f"--log-file={path.with_suffix('.log')}", "--detach"]
    print(f"{path}: made. Serve it, at every start of this machine:\n")
    print(f"    {shlex.join(served)}\n")
    print("In the configuration of each controller, each with a name of its own:\n")
    servers = remote if raft is None else f"{remote},... (all servers of the cluster)"
    print(f"    [cluster]\n    database = {servers}\n    name = rack1")
    return 0


def _passive(remote: str) -> str:
    """The address at which a server listens, as OVS writes it: ``unix:FILE`` or ``tcp:PORT:ADDRESS``."""
    kind, _, rest = remote.partition(":")
    if kind == "unix":
        return remote
    address, _, port = rest.rpartition(":")
    return f"{kind}:{port}:{address}"


def show(url: str, json_output: bool = False) -> int:
    """Print the controllers of a fabric and their bridges. Returns 0. Raises :class:`UserError`."""
    answer = client.ask(url, "GET", "/v1/cluster", usage=_USAGE)
    if json_output:
        print(json.dumps(answer))
        return 0
    try:
        tables = _tables(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise client.not_the_controller(url, f"a cluster without {error}") from None
    out = columns.console()
    for each in tables:
        out.print(each)
    return 0


def _tables(answer: dict[str, Any]) -> list[Any]:
    number, word = columns.number, columns.word
    controllers = columns.plain_table(
        [word("controller"), word("state"), number("bridges"), number("load"), columns.long("REST")],
        [
            [
                plain(row["name"]) + (" (asked)" if row["name"] == answer["controller"] else ""),
                "alive" if row["alive"] else "silent",
                str(row["bridges"]),
                str(row["load"]),
                plain(row["rest"]),
            ]
            for row in answer["controllers"]
        ],
    )
    bridges = columns.plain_table(
        [word("bridge"), word("owner"), number("generation"), number("load")],
        [
            [plain(row["dpid"]), plain(row["owner"]), str(row["generation"]), str(row["load"])]
            for row in answer["bridges"]
        ],
    )
    found: list[Any] = [controllers, Text(""), bridges]
    if not answer["database"]:
        found.append(Text("the database cannot be reached: this is what was known before"))
    return found
