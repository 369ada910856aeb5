"""``fairq release``: removes the rules, the meters and the QoS records of fairq_ryu from a bridge, and
nothing else.

These objects outlive controller and agent: the controller leaves its rules, so that traffic continues; QoS
records keep Open vSwitch from removing the queue of a port. Rules are identified by their cookie, records by
``external_ids``.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence

from fairq_ryu.agent import status
from fairq_ryu.errors import UserError, plain, quoted

# The first two bytes of the cookie of every rule of fairq_ryu.openflow.pipeline; they never change.
COOKIE_MASK = "0xfa17000000000000/0xffff000000000000"
# The key that marks a QoS record of fairq_ryu; its value is the name of the bridge.
QOS_KEY = "fairq-bridge"
# Ryu's own rule for discovery frames has no cookie, so it is identified by its match.
LLDP = "table=0,priority=65535,dl_dst=01:80:c2:00:00:0e,dl_type=0x88cc"
_LLDP_RULE = re.compile(
    r"cookie=0x0,.* table=0,.* priority=65535,dl_dst=01:80:c2:00:00:0e,dl_type=0x88cc "
    r"actions=CONTROLLER:65535$"
)
_METER = re.compile(r"meter=controller pktps burst (?:stats )?bands=\s*type=drop rate=(\d+) burst_size=\1\s")
# The numbers of the meters of ports (fairq_ryu.openflow.copy_classes); nobody else counts from here.
SHARES = range(0xFA01_0000, 0xFA08_0000)
_ANY_METER = re.compile(r"\bmeter=(\d+) ")
_TIMEOUT = 15.0
_NOTICED = 7.0


def string_atom(text: str) -> str:
    """A text as a value in the database commands of Open vSwitch."""
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", text) else json.dumps(text)


def main(bridge: str) -> int:
    """Remove the rules, the meters and the QoS records, and print how many. Returns 0. Raises
    :class:`UserError` if a running controller or agent would install them again, or if Open vSwitch does not
    answer.
    """
    if bridge not in _vsctl("list-br").split():
        raise UserError(f"there is no bridge {bridge}", "list the bridges with: ovs-vsctl list-br")
    if bridge in status.running() and _agent_answers(bridge):
        raise UserError(f"the agent of bridge {bridge} is running", "end it first (Ctrl-C)")
    for target in _vsctl("get-controller", bridge).split():
        if not _is_gone(target):
            raise UserError(
                f"bridge {bridge} is connected to {target}, a controller that would install its rules again",
                "end the controller first, or disconnect the bridge: "
                f"ovs-vsctl del-controller {quoted(bridge)}",
            )
    for line in [_rules(bridge), _meter(bridge), _qos(bridge)]:
        print(f"fairq release: bridge {plain(bridge)}: {line}")
    return 0


def _is_gone(target: str) -> bool:
    """Whether a controller is not connected. Open vSwitch writes its end down every five seconds only."""
    question = "--bare", "--columns=is_connected", "find", "Controller", f'target="{target}"'
    until = time.monotonic() + _NOTICED
    while "true" in _vsctl(*question).split():
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def _agent_answers(bridge: str) -> bool:
    try:
        status.ask(bridge)
    except status.NoAnswer:
        return True
    except UserError:
        return False  # an agent that was killed has left its socket
    return True


def _rules(bridge: str) -> str:
    listed = _ofctl("dump-flows", bridge, f"cookie={COOKIE_MASK}").splitlines()
    count = sum("cookie=" in line for line in listed)
    _ofctl("del-flows", bridge, f"cookie={COOKIE_MASK}")
    if any(_LLDP_RULE.search(line) for line in _ofctl("dump-flows", bridge, "table=0").splitlines()):
        _ofctl("--strict", "del-flows", bridge, LLDP)
        count += 1
    return f"removed {count} rules"


def _meter(bridge: str) -> str:
    listed = _ofctl("dump-meters", bridge, quiet=True).replace("\n", " ") + " "
    shares = [number for number in map(int, _ANY_METER.findall(listed)) if number in SHARES]
    for number in shares:
        _ofctl("del-meter", bridge, f"meter={number}")
    of_ports = f" and {len(shares)} of ports" if shares else ""
    # The controller's meter has equal rate and burst, which the meter of another application hardly has.
    if not _METER.search(listed):
        return f"removed {len(shares)} meters of ports" if shares else "has no meter of fairq_ryu"
    _ofctl("del-meter", bridge, "meter=controller")
    return f"removed the meter for copies{of_ports}"


def _qos(bridge: str) -> str:
    mark = f"external_ids:{QOS_KEY}={string_atom(bridge)}"
    records = _vsctl("--bare", "--columns=_uuid", "find", "QoS", mark).split()
    for record in records:
        ports = _vsctl("--bare", "--columns=_uuid", "find", "Port", f"qos={record}").split()
        clear = [word for port in ports for word in ("--", "clear", "Port", port, "qos")]
        _vsctl(*clear, "--", "destroy", "QoS", record)
    return f"removed {len(records)} QoS records"


def _vsctl(*words: str) -> str:
    return _run(["ovs-vsctl", "--timeout=10", *words])


def _ofctl(*words: str, quiet: bool = False) -> str:
    return _run(["ovs-ofctl", "--timeout=10", "--protocols=OpenFlow13", *words], quiet)


def _run(command: Sequence[str], quiet: bool = False) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{command[0]} does not finish", "check that Open vSwitch is running: ovs-vsctl show"
        ) from None
    except OSError as error:
        raise UserError(
            f"cannot run {command[0]}: {error.strerror}", "fairq doctor lists missing programs"
        ) from None
    if done.returncode != 0:
        if quiet:
            return ""
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise UserError(
            f"{' '.join(command[:1])}: {lines[-1]}",
            "run it as root; fairq doctor checks whether Open vSwitch is running",
        )
    return done.stdout
