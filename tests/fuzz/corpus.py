"""The corpus: real messages of every type, and the messages that earlier runs have added."""

from pathlib import Path

from fairq_ryu.apps.acdc import AcdcApp
from fairq_ryu.apps.fairq import FairQApp
from fairq_ryu.apps.rsed import RsedApp
from fairq_ryu.channel import oxm
from tests.fuzz import messages, targets

DIRECTORY = Path(__file__).parents[1] / "data" / "corpus"
# The way of the bridge, and the application: with its policy, other messages of agents have handlers.
CONTROLLERS = {
    "controller": ("paths", FairQApp),
    "controller-normal": ("normal", RsedApp),
    "controller-windows": ("windows", AcdcApp),
}
# Among others, with a database between them.
CLUSTERS = {"controller-cluster": ("paths", FairQApp)}
TARGETS = (*CONTROLLERS, *CLUSTERS, "agent")
AGENT = oxm.agent_dpid(messages.DPID)


def target(name):
    """A target."""
    if name in CONTROLLERS:
        return targets.ControllerTarget(*CONTROLLERS[name])
    return targets.ClusterTarget(*CLUSTERS[name]) if name in CLUSTERS else targets.AgentTarget()


def load(name):
    """Messages by name: those built here, and those stored."""
    made = messages.from_controller() if name == "agent" else messages.from_switch()
    kept = {path.stem: path.read_bytes() for path in sorted(_directory(name).glob("*.bin"))}
    return made | kept


def keep(name, stem, data):
    """Store a message in the corpus."""
    _directory(name).mkdir(parents=True, exist_ok=True)
    (_directory(name) / f"{stem}.bin").write_bytes(data)


def _directory(name):
    """All controllers have one corpus."""
    return DIRECTORY / ("agent" if name == "agent" else "controller")
