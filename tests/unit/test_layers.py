"""The layers: imports point down only, so that each part can be used and tested without those above."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[2]
OURS = ("fairq_ryu", "mininet_topos")
BELOW = {"fairq_ryu.errors", "fairq_ryu.model", "fairq_ryu.setting"}
RUNTIME = "fairq_ryu.ryu_compat.runtime"
WEB_SERVER = "fairq_ryu.ryu_compat.web_server"
LINK_DISCOVERY = "fairq_ryu.ryu_compat.link_discovery"
MATPLOTLIB = {"matplotlib", "numpy"}

RYU = {"eventlet", "ryu"}
CONTROLLER = BELOW | {f"fairq_ryu.{room}" for room in ("channel", "config", "fabric", "packet", "policies")}

# Package -> what it may import of ours, besides itself and the version; and of others, besides Python's own.
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "fairq_ryu/policies": (BELOW, set()),
    "fairq_ryu/fabric": (BELOW, {"networkx"}),
    "fairq_ryu/packet": (BELOW, set()),
    "fairq_ryu/channel": (BELOW | {"fairq_ryu.packet", "fairq_ryu.ryu_compat"}, RYU),
    "fairq_ryu/openflow": (BELOW | {"fairq_ryu.channel"}, RYU),
    "fairq_ryu/control": (CONTROLLER | {"fairq_ryu.openflow", LINK_DISCOVERY}, RYU),
    "fairq_ryu/rest": (CONTROLLER | {"fairq_ryu.control", RUNTIME, WEB_SERVER}, {"pydantic", "webob"}),
    "fairq_ryu/metrics": (
        BELOW | {"fairq_ryu.control", "fairq_ryu.policies", RUNTIME},
        {"prometheus_client", "webob"},
    ),
    "fairq_ryu/apps": (
        CONTROLLER
        | {f"fairq_ryu.{room}" for room in ("control", "metrics", "openflow", "rest", "ryu_compat")},
        RYU,
    ),
    "fairq_ryu/ryu_compat": (
        BELOW | {"fairq_ryu.channel", "fairq_ryu.config", "fairq_ryu.policies.base"},
        RYU | {"oslo_config"},
    ),
    "fairq_ryu/agent": (
        BELOW | {"fairq_ryu.channel", "fairq_ryu.config", "fairq_ryu.packet"},
        {"numpy", "ovs", "pyroute2"},
    ),
    "fairq_ryu/config": (BELOW | {"fairq_ryu.policies.base"}, set()),
    "fairq_ryu/cli": (
        BELOW
        | {
            "fairq_ryu.agent",
            "fairq_ryu.client",
            "fairq_ryu.config",
            "fairq_ryu.experiments",
            "mininet_topos",
        },
        {"rich"},
    ),
    "fairq_ryu/experiments": (
        BELOW
        | {"fairq_ryu.config", "fairq_ryu.packet", "mininet_topos"}
        | {f"fairq_ryu.agent.{part}" for part in ("libbpf", "programs.taildrop", "status")},
        {"mininet", "rich", "pyroute2"} | MATPLOTLIB,
    ),
    "mininet_topos": (set(), {"mininet"}),
}
# Rooms within a package that stand below the rest of it.
ROOMS: dict[str, set[str]] = {
    "fairq_ryu/fabric/flows": {"fairq_ryu.model"},
    "fairq_ryu/fabric/deadlines": {"fairq_ryu.model"},
    "fairq_ryu/fabric/topology": {"fairq_ryu.model", "networkx"},
    "fairq_ryu/fabric/recovery": {"fairq_ryu.model", "fairq_ryu.fabric.flows.connection"},
    "fairq_ryu/policies/parts": {"fairq_ryu.model"},
    "fairq_ryu/rest/schema": BELOW | {"fairq_ryu.fabric", "pydantic"},
}
MODULES: dict[str, set[str]] = {
    "fairq_ryu/__init__.py": {"fairq_ryu.client"},
    "fairq_ryu/errors.py": set(),
    "fairq_ryu/model.py": set(),
    "fairq_ryu/client.py": {"fairq_ryu.errors"},
    "fairq_ryu/config/programs.py": set(),
    "fairq_ryu/setting.py": {"fairq_ryu.errors"},
    "fairq_ryu/config/files.py": {"fairq_ryu.errors"},
}


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it; what comes *from* a package is its module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                if alias.name != "__version__":
                    found.add(whole if is_module(whole) else module)
    return found


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def within(module: str, packages: set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def strangers(path: Path, ours: set[str], others: set[str]) -> set[str]:
    """What a file imports and should not."""
    wrong = set()
    for module in imported(path):
        top = module.partition(".")[0]
        if top in OURS:
            if not within(module, ours):
                wrong.add(module)
        elif top not in sys.stdlib_module_names and not within(module, others):
            wrong.add(module)
    return wrong


FILES = [(path, layer) for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


@pytest.mark.parametrize(("path", "layer"), FILES, ids=[str(path.relative_to(ROOT)) for path, _ in FILES])
def test_a_layer_imports_what_is_below_it(path, layer):
    ours, others = LAYERS[layer]
    assert strangers(path, ours | {layer.replace("/", ".")}, others) == set()


PURE_LAYERS = ("fairq_ryu/policies", "fairq_ryu/fabric", "fairq_ryu/packet")
PURE = [path for path, layer in FILES if layer in PURE_LAYERS]
IMPURE = {"asyncio", "datetime", "os", "random", "socket", "subprocess", "threading", "time", "urllib"}


@pytest.mark.parametrize("path", PURE, ids=[path.name for path in PURE])
def test_policies_fabric_and_packet_have_no_clock_and_no_sockets(path):
    assert not imported(path) & IMPURE


@pytest.mark.parametrize(("name", "ours"), MODULES.items(), ids=MODULES)
def test_the_ground_stands_on_nothing(name, ours):
    assert strangers(ROOT / name, ours, set()) == set()


@pytest.mark.parametrize(("name", "below"), ROOMS.items(), ids=ROOMS)
def test_rooms_within_a_package(name, below):
    for path in (ROOT / name).glob("*.py"):
        assert strangers(path, below | {name.replace("/", ".")}, below) == set(), path


@pytest.mark.parametrize("name", ["announce", "columns", "show", "show_tables", "status_table"])
def test_the_rest_client_knows_nothing_of_the_controller(name):
    ours = {"fairq_ryu.errors", "fairq_ryu.client", "fairq_ryu.cli.show_tables", "fairq_ryu.cli.columns"}
    assert strangers(ROOT / f"fairq_ryu/cli/{name}.py", ours, {"rich"}) == set()


def graph() -> networkx.DiGraph[str]:
    """Which module of ours imports which, wherever in it, type hints included."""
    paths = {path: module_of(path) for name in OURS for path in (ROOT / name).rglob("*.py")}
    names = set(paths.values())
    found: networkx.DiGraph[str] = networkx.DiGraph()
    for path, name in paths.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.add_edges_from((name, alias.name) for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "") in names:
                # What a package offers by itself needs the package; a module of it does not.
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.add_edge(name, whole if whole in names else node.module)
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_module_imports_itself_by_others():
    circles = [sorted(part) for part in networkx.strongly_connected_components(graph()) if len(part) > 1]
    assert circles == []


def test_no_package_is_forgotten():
    packages = {
        str(path.parent.relative_to(ROOT)) for name in OURS for path in (ROOT / name).rglob("__init__.py")
    }
    assert {each for each in packages if each.count("/") == 1} | {"mininet_topos"} == set(LAYERS)


def test_the_check_would_notice(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import os\nimport ryu.lib.hub\ndef f():\n    from fairq_ryu import apps\n")
    assert strangers(path, {"fairq_ryu.model"}, set()) == {"ryu.lib.hub", "fairq_ryu.apps"}


@pytest.mark.parametrize(
    "module",
    [
        "fairq_ryu.policies.fairq",
        "fairq_ryu.policies.engine",
        "fairq_ryu.fabric.flows.table",
        "fairq_ryu.config.schema",
        "fairq_ryu.cli.show",
        "fairq_ryu.client",
        "fairq_ryu.fabric.recovery.recovery",
        "fairq_ryu.fabric.deadlines.announcements",
    ],
)
def test_the_pure_parts_load_without_the_rest(module):
    program = (
        f"import sys, {module}; "
        "print(*({'ryu', 'eventlet', 'ovs', 'pyroute2', 'mininet'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_every_module_for_ryu_is_in_the_table_of_ryu_compat():
    room = ROOT / "fairq_ryu/ryu_compat"
    modules = {path.stem for path in room.glob("*.py")} - {"__init__"}
    table = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert {line.split()[0] for line in table.splitlines() if line.partition(" ")[0] in modules} == modules
