"""The layers: imports point down only, so that each part can be used and tested without those above."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("fairq_ryu", "mininet_topos")
BELOW = {"fairq_ryu.model", "fairq_ryu.errors"}
MATPLOTLIB = {"matplotlib", "numpy"}

# Package -> what it may import of ours, besides itself and the version; and of others, besides Python's own.
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "fairq_ryu/policies": (BELOW | {"fairq_ryu.fabric.gif"}, set()),
    "fairq_ryu/fabric": (BELOW, {"networkx"}),
    "fairq_ryu/openflow": (BELOW, {"ryu"}),
    "fairq_ryu/switch": (
        BELOW | {"fairq_ryu.openflow", "fairq_ryu.config"},
        {"numpy", "ryu", "ovs", "pyroute2", "rich"},
    ),
    "fairq_ryu/apps": (
        BELOW
        | {"fairq_ryu.config", "fairq_ryu.policies", "fairq_ryu.fabric", "fairq_ryu.openflow"}
        | {"fairq_ryu.setting", "fairq_ryu.ryu_compat"},
        {"eventlet", "prometheus_client", "pydantic", "ryu", "webob"},
    ),
    "fairq_ryu/apps/api": (BELOW | {"fairq_ryu.fabric"}, {"pydantic"}),
    "fairq_ryu/experiments": (
        BELOW
        | {
            "fairq_ryu.config",
            "fairq_ryu.programs",
            "fairq_ryu.setting",
            "fairq_ryu.switch.status",
            "mininet_topos",
        }
        | {"fairq_ryu.switch.libbpf", "fairq_ryu.switch.taildrop"},
        {"mininet", "rich", "pyroute2"} | MATPLOTLIB,
    ),
    "mininet_topos": (set(), {"mininet"}),
}
MODULES: dict[str, set[str]] = {
    "fairq_ryu/__init__.py": {"fairq_ryu.client"},
    "fairq_ryu/errors.py": set(),
    "fairq_ryu/model.py": set(),
    "fairq_ryu/programs.py": set(),
    "fairq_ryu/setting.py": {"fairq_ryu.errors"},
    "fairq_ryu/inifile.py": {"fairq_ryu.errors"},
    "fairq_ryu/services.py": {"fairq_ryu.errors", "fairq_ryu.model", "fairq_ryu.setting"},
    # It asks which policies there are, and what settings those of other packages declare.
    "fairq_ryu/config.py": {
        "fairq_ryu.errors",
        "fairq_ryu.inifile",
        "fairq_ryu.model",
        "fairq_ryu.policies.base",
        "fairq_ryu.services",
        "fairq_ryu.setting",
    },
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
            if module in OURS:
                found |= {f"{module}.{alias.name}" for alias in node.names if alias.name != "__version__"}
            else:
                found.add(module)
    return found


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


PURE = [path for path, layer in FILES if layer in ("fairq_ryu/policies", "fairq_ryu/fabric")]
IMPURE = {"asyncio", "datetime", "os", "random", "socket", "subprocess", "threading", "time", "urllib"}


@pytest.mark.parametrize("path", PURE, ids=[path.name for path in PURE])
def test_policies_and_fabric_have_no_clock_and_no_sockets(path):
    assert not imported(path) & IMPURE


@pytest.mark.parametrize(("name", "ours"), MODULES.items(), ids=MODULES)
def test_the_ground_stands_on_nothing(name, ours):
    assert strangers(ROOT / name, ours, set()) == set()


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("client", set()),
        ("announcing", set()),
        ("columns", {"rich"}),
        ("show", {"rich"}),
        ("show_tables", {"rich"}),
        ("status_table", {"rich"}),
    ],
)
def test_the_rest_client_knows_nothing_of_the_controller(name, others):
    ours = {"fairq_ryu.errors", "fairq_ryu.client", "fairq_ryu.show_tables", "fairq_ryu.columns"}
    assert strangers(ROOT / f"fairq_ryu/{name}.py", ours, others) == set()


def test_no_package_is_forgotten():
    packages = {
        str(path.parent.relative_to(ROOT)) for name in OURS for path in (ROOT / name).rglob("__init__.py")
    }
    assert packages - {"fairq_ryu"} == set(LAYERS)


def test_the_check_would_notice(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import os\nimport ryu.lib.hub\ndef f():\n    from fairq_ryu import apps\n")
    assert strangers(path, {"fairq_ryu.model"}, set()) == {"ryu.lib.hub", "fairq_ryu.apps"}


@pytest.mark.parametrize(
    "module",
    [
        "fairq_ryu.policies.fairq",
        "fairq_ryu.policies.engine",
        "fairq_ryu.fabric.flows",
        "fairq_ryu.config",
        "fairq_ryu.show",
        "fairq_ryu.client",
        "fairq_ryu.fabric.recovery",
        "fairq_ryu.fabric.announcements",
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
