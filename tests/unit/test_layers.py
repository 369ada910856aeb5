"""The layers: imports point down only, so that each part can be used and tested without the layers above."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[2]
OURS = ("fairq_ryu", "mininet_topos")
MODEL, ERRORS, SETTING = "fairq_ryu.model", "fairq_ryu.errors", "fairq_ryu.setting"
LAW, LAWS = "fairq_ryu.law_spec", "fairq_ryu.laws.registry"
QUEUE_LAW = "fairq_ryu.queue_law_spec"
PORT_SETTINGS = "fairq_ryu.port_settings"
FAR_QUEUE = "fairq_ryu.far_queue"
UPLINK = "fairq_ryu.uplink"
TARGET = "fairq_ryu.controller_target"
TENANTS = "fairq_ryu.tenants"
BELOW = {MODEL, ERRORS, SETTING}
RUNTIME = "fairq_ryu.ryu_compat.runtime"
WEB_SERVER = "fairq_ryu.ryu_compat.web_server"
RYU = {"eventlet", "ryu"}


def ours(*packages: str) -> set[str]:
    return {f"fairq_ryu.{package}" for package in packages}


def control(*names: str) -> set[str]:
    return ours(*(f"control.{name}" for name in names))


# Package -> the modules of the project that it may import, besides itself and the version; and packages of
# others, besides the standard library.
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "fairq_ryu/policies": (BELOW | {LAW, QUEUE_LAW, FAR_QUEUE}, set()),
    "fairq_ryu/laws": ({MODEL, SETTING, ERRORS, LAW, QUEUE_LAW, TENANTS} | ours("policies"), set()),
    "fairq_ryu/fabric": ({MODEL, PORT_SETTINGS}, {"networkx"}),
    "fairq_ryu/packet": ({MODEL}, set()),
    "fairq_ryu/channel": (
        {MODEL, LAW, QUEUE_LAW, PORT_SETTINGS, LAWS, FAR_QUEUE, TENANTS} | ours("packet"),
        {"ryu"},
    ),
    "fairq_ryu/openflow": ({MODEL, PORT_SETTINGS} | ours("channel", "packet"), {"ryu"}),
    "fairq_ryu/cluster": ({ERRORS, SETTING}, {"ovs"}),
    "fairq_ryu/control": (
        BELOW
        | {LAW, QUEUE_LAW, LAWS, PORT_SETTINGS, FAR_QUEUE, UPLINK, TENANTS}
        | ours("channel", "cluster", "config", "fabric", "openflow", "packet", "policies"),
        {"ryu"},
    ),
    "fairq_ryu/rest": (
        {MODEL, ERRORS, RUNTIME, WEB_SERVER, QUEUE_LAW, LAWS, FAR_QUEUE, TENANTS}
        | ours("cluster.settings", "config", "control", "fabric", "policies"),
        {"pydantic"},
    ),
    "fairq_ryu/metrics": ({MODEL, RUNTIME} | ours("control", "policies"), {"prometheus_client", "webob"}),
    "fairq_ryu/apps": (
        {ERRORS, PORT_SETTINGS}
        | ours("cluster", "config", "control", "fabric", "metrics", "policies", "rest", "ryu_compat"),
        {"ryu"},
    ),
    "fairq_ryu/ryu_compat": (BELOW | ours("channel", "config", "policies.base"), RYU | {"oslo_config"}),
    "fairq_ryu/agent": (
        {MODEL, LAW, LAWS, QUEUE_LAW, ERRORS, PORT_SETTINGS, FAR_QUEUE, UPLINK, TARGET, TENANTS}
        | ours("channel", "packet", "fabric.recovery"),
        {"numpy", "ovs"},
    ),
    "fairq_ryu/config": (
        BELOW
        | {TARGET, FAR_QUEUE, UPLINK, TENANTS}
        | ours("cluster.settings", "policies.base", "policies.common_settings"),
        set(),
    ),
    "fairq_ryu/cli": (
        {ERRORS, TARGET, FAR_QUEUE, "mininet_topos.commands"}
        | ours("agent", "client", "cluster.settings", "config", "experiments"),
        {"rich"},
    ),
    "fairq_ryu/experiments": (
        {ERRORS, MODEL, LAW, LAWS, QUEUE_LAW, SETTING, FAR_QUEUE, TENANTS, "mininet_topos"}
        | ours(
            "client",
            "config",
            "laws.red",
            "laws.sfb",
            "packet",
            "policies.base",
            "policies.choice",
            "agent.bpf_info",
            "agent.law_header",
            "agent.law_table",
            "agent.layout",
            "agent.libbpf",
            "agent.programs.queue",
            "agent.programs.taildrop",
            "agent.qdisc",
            "agent.queue_law_table",
            "agent.status",
        ),
        {"matplotlib", "mininet", "pyarrow", "pydantic", "rich"},
    ),
    "mininet_topos": (set(), {"mininet"}),
}
# Packages within a package that are below the rest of it, and the rooms of control.
INNER_PACKAGES: dict[str, set[str]] = {
    "fairq_ryu/control/arrivals": (
        {MODEL, ERRORS, PORT_SETTINGS, "ryu"}
        | ours("channel", "fabric", "openflow", "packet", "policies")
        | control("agents", "flows", "paths", "reports", "windows", "sender", "worker")
    ),
    "fairq_ryu/control/operations": (
        BELOW
        | {QUEUE_LAW, FAR_QUEUE, TENANTS, "ryu"}
        | ours("channel", "cluster.view", "config", "fabric", "policies")
        | control("agents", "paths", "reports", "windows")
    ),
    "fairq_ryu/control/ownership": {MODEL, "ryu"} | ours("channel", "cluster") | control("sender"),
    "fairq_ryu/control/flows": (
        {MODEL, "ryu"}
        | ours("channel", "fabric", "openflow", "packet")
        | control("agents", "paths", "windows", "worker", "yielding")
    ),
    "fairq_ryu/control/windows": (
        {MODEL, ERRORS, LAW, QUEUE_LAW, LAWS, FAR_QUEUE, UPLINK, TENANTS}
        | ours("channel", "config", "fabric", "openflow", "packet", "policies")
        | control("agents", "paths", "reports", "yielding")
    ),
    "fairq_ryu/control/paths": (
        {MODEL, PORT_SETTINGS, "ryu"}
        | ours("config", "fabric", "openflow", "packet")
        | control("reports", "sender", "yielding")
    ),
    "fairq_ryu/control/agents": (
        {MODEL, ERRORS, LAW, QUEUE_LAW, FAR_QUEUE, "ryu"}
        | ours("channel", "openflow", "packet", "policies")
        | control("reports", "sender")
    ),
    "fairq_ryu/control/reports": {MODEL, FAR_QUEUE, "ryu"} | ours("fabric", "openflow") | control("sender"),
    "fairq_ryu/fabric/flows": {MODEL},
    "fairq_ryu/fabric/deadlines": {MODEL},
    "fairq_ryu/fabric/topology": {MODEL, PORT_SETTINGS, "networkx"},
    "fairq_ryu/fabric/recovery": {MODEL, "fairq_ryu.fabric.flows.connection"},
    "fairq_ryu/policies/parts": {MODEL},
    "fairq_ryu/rest/schema": {MODEL, QUEUE_LAW, LAWS, FAR_QUEUE, TENANTS, "fairq_ryu.fabric", "pydantic"},
    "fairq_ryu/cli/doctor": {
        ERRORS,
        "fairq_ryu.agent.peers",
        "fairq_ryu.config.programs",
        "fairq_ryu.experiments.kernel_kinds",
        "mininet_topos.commands",
        "rich",
    },
}
MODULES: dict[str, set[str]] = {
    "fairq_ryu/__init__.py": {"fairq_ryu.client"},
    "fairq_ryu/errors.py": set(),
    "fairq_ryu/law_spec.py": set(),
    "fairq_ryu/queue_law_spec.py": {LAW},
    "fairq_ryu/port_settings.py": set(),
    "fairq_ryu/far_queue.py": set(),
    "fairq_ryu/uplink.py": {FAR_QUEUE},
    "fairq_ryu/controller_target.py": {ERRORS},
    "fairq_ryu/model.py": {LAW},
    "fairq_ryu/client.py": {ERRORS},
    "fairq_ryu/config/programs.py": set(),
    "fairq_ryu/experiments/kernel_kinds.py": set(),
    "fairq_ryu/setting.py": {ERRORS},
    "fairq_ryu/config/files.py": {ERRORS},
    "fairq_ryu/control/sender.py": ours("openflow"),
    "fairq_ryu/control/worker.py": {"ryu"},
    "fairq_ryu/control/yielding.py": {"ryu"},
    "fairq_ryu/control/reports/counters.py": control("reports.faults"),
    "fairq_ryu/control/reports/faults.py": set(),
    "fairq_ryu/control/reports/events.py": {MODEL},
    "fairq_ryu/control/flows/syn_queue.py": {MODEL},
    "fairq_ryu/control/reports/announcement_outcomes.py": {
        MODEL,
        "fairq_ryu.control.reports.events",
        "fairq_ryu.fabric.flows.connection",
    },
}


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it; an object imported *from* a package counts as its
    module.
    """
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


def strangers(path: Path, own: set[str], others: set[str]) -> set[str]:
    """The imports of a file that are not allowed."""
    wrong = set()
    for module in imported(path):
        top = module.partition(".")[0]
        if top in OURS:
            if not within(module, own):
                wrong.add(module)
        elif top not in sys.stdlib_module_names and not within(module, others):
            wrong.add(module)
    return wrong


FILES = [(path, layer) for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


@pytest.mark.parametrize(("path", "layer"), FILES, ids=[str(path.relative_to(ROOT)) for path, _ in FILES])
def test_a_layer_imports_only_lower_layers(path, layer):
    own, others = LAYERS[layer]
    assert strangers(path, own | {layer.replace("/", ".")}, others) == set()


def says_pure(path: Path) -> bool:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.search(r"\bpure\b", docstring, re.IGNORECASE) is not None


PURE_LAYERS = ("fairq_ryu/policies", "fairq_ryu/laws", "fairq_ryu/fabric", "fairq_ryu/packet")
PURE_CLUSTER = {"ownership", "view"}
PURE_CONTROL = {"announcement_outcomes", "counters", "events", "syn_queue"}
PURE = [path for path, layer in FILES if layer in PURE_LAYERS or says_pure(path)]
IMPURE = {"asyncio", "datetime", "os", "random", "socket", "subprocess", "threading", "time", "urllib"} | RYU


@pytest.mark.parametrize("path", PURE, ids=[str(path.relative_to(ROOT)) for path in PURE])
def test_what_is_pure_has_no_clock_and_no_sockets(path):
    """Policies, laws, fabric and packet, and every module that says so of itself."""
    assert not {module.partition(".")[0] for module in imported(path)} & IMPURE


def test_the_pure_parts_of_control_and_cluster_say_so():
    assert {path.stem for path in PURE if "control" in path.parts} >= PURE_CONTROL
    assert {path.stem for path in PURE if "cluster" in path.parts} >= PURE_CLUSTER


@pytest.mark.parametrize(("name", "own"), MODULES.items(), ids=MODULES)
def test_the_lowest_modules_import_nothing_above(name, own):
    assert strangers(ROOT / name, own, own) == set()


@pytest.mark.parametrize(("name", "below"), INNER_PACKAGES.items(), ids=INNER_PACKAGES)
def test_a_package_within_a_package_imports_what_is_below_it(name, below):
    paths = list((ROOT / name).rglob("*.py"))
    assert paths
    for path in paths:
        assert strangers(path, below | {name.replace("/", ".")}, below) == set(), path


PERMISSIONS = {
    **{name: own | others for name, (own, others) in LAYERS.items()},
    **INNER_PACKAGES,
    **MODULES,
}


@pytest.mark.parametrize(("name", "permitted"), PERMISSIONS.items(), ids=PERMISSIONS)
def test_no_permission_is_unused(name, permitted):
    place = ROOT / name
    paths = place.rglob("*.py") if place.is_dir() else [place]
    used = {module for path in paths for module in imported(path)}
    assert {each for each in permitted if not any(within(module, {each}) for module in used)} == set()


WORKLOADS = "fairq_ryu.experiments.workloads"
WORKLOADS_FOLDER = ROOT / "fairq_ryu/experiments/workloads"
WORKLOAD_FOLDERS = sorted(path.parent.name for path in WORKLOADS_FOLDER.glob("*/__init__.py"))


def test_workloads_do_not_import_the_report():
    """It asks the registry for their rows and pictures."""
    paths = list(WORKLOADS_FOLDER.rglob("*.py"))
    assert paths
    for path in paths:
        assert not [module for module in imported(path) if within(module, {"fairq_ryu.experiments.report"})]


@pytest.mark.parametrize("folder", WORKLOAD_FOLDERS)
def test_a_workload_imports_no_other(folder):
    """It may import ``common``, which imports no workload."""
    allowed = {f"{WORKLOADS}.common", f"{WORKLOADS}.{folder}"}
    for path in (WORKLOADS_FOLDER / folder).rglob("*.py"):
        found = {module for module in imported(path) if within(module, {WORKLOADS})}
        assert {module for module in found if not within(module, allowed)} == set(), path


def test_the_folders_of_workloads_are_found():
    assert {"common", "incast"} < set(WORKLOAD_FOLDERS)


@pytest.mark.parametrize(
    "name",
    [
        "announce",
        "cell_text",
        "columns",
        "far",
        "port_table",
        "queue_law_notes",
        "show",
        "show_tables",
        "status_table",
    ],
)
def test_the_rest_client_imports_nothing_of_the_controller(name):
    modules = ("show", "show_tables", "port_table", "queue_law_notes", "far_notes", "cell_text", "columns")
    own = {ERRORS} | ours("client", *(f"cli.{module}" for module in modules))
    assert strangers(ROOT / f"fairq_ryu/cli/{name}.py", own, {"rich"}) == set()


def graph() -> networkx.DiGraph[str]:
    """Which module of the project imports which, anywhere in it, type hints included."""
    paths = {path: module_of(path) for name in OURS for path in (ROOT / name).rglob("*.py")}
    names = set(paths.values())
    found: networkx.DiGraph[str] = networkx.DiGraph()
    for path, name in paths.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.add_edges_from((name, alias.name) for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "") in names:
                # A name of the package itself needs the package; a module of it does not.
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.add_edge(name, whole if whole in names else node.module)
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_there_is_no_import_cycle():
    circles = [sorted(part) for part in networkx.strongly_connected_components(graph()) if len(part) > 1]
    assert circles == []


def test_no_package_imports_itself_by_others():
    packages: networkx.DiGraph[str] = networkx.DiGraph()
    for pair in graph().edges:
        one, other = (".".join(name.split(".")[:2]) for name in pair)
        if one != other:
            packages.add_edge(one, other)
    assert {"fairq_ryu.channel", "fairq_ryu.ryu_compat"} <= set(packages)
    assert networkx.is_directed_acyclic_graph(packages)


ROOMS = {path.parent for path in (ROOT / "fairq_ryu/control").glob("*/__init__.py")}


def test_the_rooms_of_control_have_an_order():
    """What :data:`INNER_PACKAGES` lets them import makes no circle: no import between rooms runs back."""
    rooms: networkx.DiGraph[str] = networkx.DiGraph()
    for room in ROOMS:
        name = str(room.relative_to(ROOT))
        rooms.add_edges_from((name, other.replace(".", "/")) for other in INNER_PACKAGES[name])
    assert networkx.is_directed_acyclic_graph(rooms)


def test_beside_the_rooms_control_has_only_what_every_room_may_import():
    modules = {path for path in (ROOT / "fairq_ryu/control").glob("*.py") if path.stem != "__init__"}
    assert {path.stem for path in modules} == {"sender", "worker", "yielding"}
    assert not {name for path in modules for name in imported(path) if within(name, ours("control"))}


@pytest.mark.parametrize("room", sorted(ROOMS), ids=lambda room: room.name)
def test_a_room_of_control_says_which_rooms_it_may_import(room):
    docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    said = re.search(r"^Rooms that it may import: (.+)\.$", docstring, re.MULTILINE)
    names = sorted(each.name for each in ROOMS)
    permitted = INNER_PACKAGES[str(room.relative_to(ROOT))]
    others = [each for each in names if f"fairq_ryu.control.{each}" in permitted]
    assert said is not None and said[1] == (", ".join(others) or "none")


def test_every_package_has_a_layer():
    packages = {
        str(path.parent.relative_to(ROOT)) for name in OURS for path in (ROOT / name).rglob("__init__.py")
    }
    assert {each for each in packages if each.count("/") == 1} | {"mininet_topos"} == set(LAYERS)


def test_the_check_finds_mistakes(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import os\nimport ryu.lib.hub\ndef f():\n    from fairq_ryu import apps\n")
    assert strangers(path, {"fairq_ryu.model"}, set()) == {"ryu.lib.hub", "fairq_ryu.apps"}


@pytest.mark.parametrize(
    "module",
    [
        "fairq_ryu.laws.fairq.policy",
        "fairq_ryu.policies.engine",
        "fairq_ryu.fabric.flows.table",
        "fairq_ryu.config.schema",
        "fairq_ryu.cli.show",
        "fairq_ryu.client",
        "fairq_ryu.cluster.ownership",
        "fairq_ryu.fabric.recovery.recovery",
        "fairq_ryu.fabric.deadlines.announcements",
    ],
)
def test_the_pure_parts_load_without_the_rest(module):
    program = f"import sys, {module}; print(*({{'ryu', 'eventlet', 'ovs', 'mininet'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_every_module_for_ryu_is_in_the_table_of_ryu_compat():
    folder = ROOT / "fairq_ryu/ryu_compat"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    table = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert {line.split()[0] for line in table.splitlines() if line.partition(" ")[0] in modules} == modules


# Folders of tests/unit whose tests are about something else than a package of fairq_ryu.
OTHERS = {
    **{name: name for name in ("bench", "docs", "mininet_topos", "packages")},
    "fuzz": "tests/fuzz",
    "faults": "tests/faults",
    "soak": "tests/soak",
    "vm": "tests/vm",
}


def test_unit_tests_mirror_the_source():
    """``test_NAME.py`` or ``test_NAME_ASPECT.py`` for the module or folder ``NAME``, in the same folder."""
    lost = []
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        *folders, _ = path.relative_to(Path(__file__).parent).parts
        if not folders or folders[0] == "docs":
            continue
        source = ROOT / OTHERS.get(folders[0], f"fairq_ryu/{folders[0]}") / "/".join(folders[1:])
        words = path.stem.removeprefix("test_").split("_")
        names = {"_".join(words[:end]) for end in range(1, len(words) + 1)}
        if not names & {each.stem for each in source.glob("*") if each.stem != "__pycache__"}:
            lost.append(str(path.relative_to(ROOT)))
    assert lost == []
