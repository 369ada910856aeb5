"""What fuzzing begins with: real messages of every type, and what earlier runs have found worth keeping."""

from pathlib import Path

from fairq_ryu.channel import oxm
from tests.fuzz import messages, targets

DIRECTORY = Path(__file__).parents[1] / "data" / "corpus"
TARGETS = ("controller", "agent")
AGENT = oxm.agent_dpid(messages.DPID)


def target(name):
    """A target, and what a peer must say to be listened to."""
    if name == "controller":
        return targets.ControllerTarget(), messages.handshake()
    return targets.AgentTarget(), messages.HELLO


def load(name):
    """Messages by name: those made, and those kept."""
    made = messages.from_switch() if name == "controller" else messages.from_controller()
    kept = {path.stem: path.read_bytes() for path in sorted((DIRECTORY / name).glob("*.bin"))}
    return made | kept


def keep(name, stem, data):
    """Add to what is kept."""
    directory = DIRECTORY / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{stem}.bin").write_bytes(data)
