"""What is in each Debian package.

``fairq-common``: the wheel, Ryu (whose codec the agent uses), the command with its manual pages, the
configuration.
``fairq-agent``: the unit of an agent; what the agent imports is in Debian.
``fairq-controller``: the controller's unit, and what the controller imports, compiled modules included.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from fairq_ryu import __version__
from fairq_ryu.cli.main import command_line
from packages import bundled, manpages, sbom, settings_file
from packages.dates import date
from packages.deb import DebianPackage, Item
from packages.error import PackagingError

COMMON, AGENT, CONTROLLER = "fairq-common", "fairq-agent", "fairq-controller"
CONFIGURATION = "/etc/fairq/fairq.conf"
LIBRARY = "/usr/lib/fairq"
CONTROLLER_LIBRARY = "/usr/lib/fairq-controller"
UNITS = {AGENT: "fairq-agent@.service", CONTROLLER: "fairq-controller.service"}
# What the agent imports beside Python's standard library, and what loads its programs.
AGENT_NEEDS = (
    "libbpf1 | libbpf0",
    "openvswitch-switch",
    "python3-netaddr",
    "python3-numpy",
    "python3-openvswitch",
    "python3-six",
)
_DATA = Path(__file__).parent / "data"
_KEPT_OF_INFO = ("METADATA", "entry_points.txt", "licenses/")
_TEXT = """\
fairq_ryu shortens the queues of data-centre TCP from the network alone: beside
an Open vSwitch bridge, it lowers the receive windows in ACKs.
"""


def packages(root: Path, wheel: Path, revision: int) -> list[DebianPackage]:
    """The three packages, in the order in which they are installed. Raises :class:`PackagingError`."""
    version = f"{__version__}-{revision}"
    pins = bundled.pins((root / "requirements.txt").read_text(encoding="utf-8"))
    units = {name: _data(name) for name in UNITS.values()}
    manuals = manpages.pages(command_line(), units)
    return [
        _common(root, wheel, version, pins, manuals),
        _agent(root, version, manuals),
        _controller(root, version, pins, manuals),
    ]


def _common(
    root: Path, wheel: Path, version: str, pins: dict[str, str], manuals: dict[str, str]
) -> DebianPackage:
    texts = {
        name: (root / name).read_bytes() for name in ("docs/install.md", "docs/operating.md", "CHANGELOG.md")
    }
    items = [
        *_unpacked(wheel),
        *bundled.items([bundled.RYU], LIBRARY, pins),
        Item("/usr/bin/fairq", _data("fairq").encode(), executable=True),
        Item(CONFIGURATION, settings_file.text().encode()),
        *_manuals(manuals, lambda name: not name.endswith(".8")),
        *_documents(root, COMMON, [bundled.RYU]),
        _sbom(root, COMMON, version, [bundled.RYU]),
        *(Item(f"/usr/share/doc/{COMMON}/{Path(name).name}", data) for name, data in texts.items()),
    ]
    return DebianPackage(
        name=COMMON,
        version=version,
        architecture="all",
        summary="shorter queues for data-centre TCP - command and configuration",
        text=f"{_TEXT}\nThis package has the command fairq, /etc/fairq and what agent and controller\nshare.",
        items=tuple(items),
        relations={
            "Depends": "python3 (>= 3.11), python3-rich",
            "Suggests": f"{AGENT}, {CONTROLLER}",
        },
        conffiles=(CONFIGURATION,),
        scripts=_scripts(COMMON),
    )


def _agent(root: Path, version: str, manuals: dict[str, str]) -> DebianPackage:
    return DebianPackage(
        name=AGENT,
        version=version,
        architecture="all",
        summary="shorter queues for data-centre TCP - agent beside a bridge",
        text=f"{_TEXT}\nThis package has the service fairq-agent@BRIDGE, one for each bridge, or\n"
        "for bridges that patch ports join (fairq-agent@BRIDGE:BRIDGE). Its eBPF\n"
        "programs are compiled, for little-endian machines.",
        items=(
            *_unit(AGENT),
            *_manuals(manuals, lambda name: name == f"{UNITS[AGENT]}.8"),
            *_documents(root, AGENT),
        ),
        relations={"Depends": ", ".join([f"{COMMON} (= {version})", *AGENT_NEEDS])},
        scripts=_scripts(AGENT),
    )


def _controller(root: Path, version: str, pins: dict[str, str], manuals: dict[str, str]) -> DebianPackage:
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    replaced = {"@PYTHON@": f"/usr/bin/{python}", "@VERSION@": python.removeprefix("python")}
    names = sorted(bundled.CONTROLLER, key=str.lower)
    launcher = _filled(_data("fairq-controller"), replaced).encode()
    items = [
        *bundled.items(names, CONTROLLER_LIBRARY, pins),
        Item(f"{CONTROLLER_LIBRARY}/fairq-controller", launcher, executable=True),
        *_unit(CONTROLLER),
        *_manuals(manuals, lambda name: name == f"{UNITS[CONTROLLER]}.8"),
        *_documents(root, CONTROLLER, names),
        _sbom(root, CONTROLLER, version, names),
    ]
    return DebianPackage(
        name=CONTROLLER,
        version=version,
        architecture=_architecture(),
        summary="shorter queues for data-centre TCP - controller",
        text=f"{_TEXT}\nThis package has the service fairq-controller, and the Python\n"
        "packages that it needs.",
        items=tuple(items),
        relations={
            "Depends": f"{COMMON} (= {version}), passwd, python3, {python}, libc6, libgcc-s1, libstdc++6, "
            "python3-openvswitch"  # the database that controllers share
        },
        scripts={name: _filled(text, replaced) for name, text in _scripts(CONTROLLER).items()},
    )


def _data(name: str) -> str:
    return (_DATA / name).read_text(encoding="utf-8")


def _filled(text: str, replaced: dict[str, str]) -> str:
    for word, value in replaced.items():
        text = text.replace(word, value)
    return text


def _scripts(package: str) -> dict[str, str]:
    return {path.suffix[1:]: path.read_text(encoding="utf-8") for path in sorted(_DATA.glob(f"{package}.p*"))}


def _unpacked(wheel: Path) -> Iterable[Item]:
    """The files of the wheel; of its metadata, only what Python and people read."""
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            folder, _, rest = name.partition("/")
            if not folder.endswith(".dist-info") or rest.startswith(_KEPT_OF_INFO):
                yield Item(f"{LIBRARY}/{name}", opened.read(name))


def _unit(package: str) -> list[Item]:
    return [Item(f"/lib/systemd/system/{UNITS[package]}", _data(UNITS[package]).encode())]


def _manuals(manuals: dict[str, str], wanted: Callable[[str], bool]) -> Iterable[Item]:
    for name, text in manuals.items():
        if wanted(name):
            data = gzip.compress(text.encode(), 9, mtime=0)
            yield Item(f"/usr/share/man/man{name[-1]}/{name}.gz", data)


def _documents(root: Path, package: str, bundle: Iterable[str] = ()) -> list[Item]:
    """The file about licences that every Debian package has."""
    lines = [(root / "LICENSES/README.md").read_text(encoding="utf-8")]
    names = list(bundle)
    if names:
        lines.append("\nOf others, with the texts of their licences in their .dist-info directories:\n\n")
        lines += [f"- {name}: {bundled.licence(name)}\n" for name in names]
    lines.append("\n" + (root / "LICENSE").read_text(encoding="utf-8"))
    return [Item(f"/usr/share/doc/{package}/copyright", "".join(lines).encode())]


def _sbom(root: Path, package: str, version: str, names: list[str]) -> Item:
    """What a package brings along, as a CycloneDX document."""
    keys = {bundled.canonical(name) for name in names}
    hashes = {pin: each for pin, each in sbom.read_lock(root).items() if pin.key in keys}
    made = sbom.document(package, version, hashes, date(), changed=bundled.CHANGED)
    return Item(f"/usr/share/doc/{package}/sbom.cdx.json", sbom.text(made).encode())


def _architecture() -> str:
    done = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PackagingError(f"dpkg does not say its architecture: {done.stderr.strip()}")
    return done.stdout.strip()
