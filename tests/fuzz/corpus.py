"""The corpus: real messages of every type, and the messages that earlier runs have added."""

from pathlib import Path

from fairq_ryu.channel import oxm
from tests.fuzz import messages, targets

DIRECTORY = Path(__file__).parents[1] / "data" / "corpus"
TARGETS = ("controller", "agent")
AGENT = oxm.agent_dpid(messages.DPID)


def target(name):
    """A target, and the messages that a peer must send first."""
    if name == "controller":
        return targets.ControllerTarget(), messages.handshake()
    return targets.AgentTarget(), messages.HELLO


def load(name):
    """Messages by name: those built here, and those stored."""
    made = messages.from_switch() if name == "controller" else messages.from_controller()
    kept = {path.stem: path.read_bytes() for path in sorted((DIRECTORY / name).glob("*.bin"))}
    return made | kept


def keep(name, stem, data):
    """Store a message in the corpus."""
    directory = DIRECTORY / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{stem}.bin").write_bytes(data)
