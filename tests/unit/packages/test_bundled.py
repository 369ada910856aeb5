"""What the packages bring along is what the code imports, in the versions of requirements.txt."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from packages import bundled, contents
from packages.error import PackagingError

ROOT = Path(__file__).resolve().parents[3]
PINS = bundled.pins((ROOT / "requirements.txt").read_text(encoding="utf-8"))
AGENT = ("agent", "channel", "config", "fabric", "packet", "policies")
CONTROLLER = ("apps", "control", "metrics", "openflow", "rest", "ryu_compat", *AGENT[1:])
# The distribution or the Debian package of a module.
DISTRIBUTIONS = {
    "eventlet": "eventlet",
    "networkx": "networkx",
    "oslo_config": "oslo.config",
    "prometheus_client": "prometheus_client",
    "pydantic": "pydantic",
    "ryu": bundled.RYU,
    "webob": "WebOb",
}
DEBIAN = {"numpy": "python3-numpy", "ovs": "python3-openvswitch"}


def others(*folders):
    """The modules of others that these folders of fairq_ryu import."""
    found = set()
    for folder in folders:
        for path in (ROOT / "fairq_ryu" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"fairq_ryu"}


def test_the_controller_brings_what_it_imports():
    """Except for what only parts of the shared folders import that it does not load."""
    needed = {DISTRIBUTIONS[module] for module in others(*CONTROLLER)}
    assert needed <= {bundled.RYU, *bundled.CONTROLLER}


def test_the_agent_needs_no_more_than_its_package_says():
    """Ryu's codec is in fairq-common; it imports netaddr and six."""
    modules = others(*AGENT) - {"networkx"}  # paths of the fabric, which only the controller computes
    assert {DEBIAN[module] for module in modules - {"ryu"}} | {"python3-netaddr", "python3-six"} == {
        each for each in contents.AGENT_NEEDS if each.startswith("python3-")
    }


def test_everything_that_is_bundled_has_a_pinned_version_and_a_licence():
    for name in (bundled.RYU, *bundled.CONTROLLER):
        assert bundled.canonical(name) in PINS
        assert bundled.licence(name) not in ("", "UNKNOWN")


def test_the_files_of_a_distribution():
    items = {item.path: item.data for item in bundled.items(["tinyrpc"], "/lib/x", PINS)}
    assert items["/lib/x/tinyrpc/__init__.py"] is not None
    info = {path for path in items if ".dist-info/" in path}
    assert f"/lib/x/tinyrpc-{PINS['tinyrpc']}.dist-info/LICENSE" in info
    assert not [path for path in items if "__pycache__" in path or "/../" in path]
    assert not [path for path in info if path.endswith(("RECORD", "INSTALLER", "WHEEL"))]


def test_of_ryu_without_its_tests_and_protocols_that_nothing_uses():
    paths = [item.path.split("/") for item in bundled.items([bundled.RYU], "/lib/x", PINS)]
    folders = {path[4] for path in paths if path[3] == "ryu" and len(path) > 5}
    assert folders >= {"app", "base", "cmd", "controller", "lib", "ofproto", "topology"}
    assert not folders & {"tests", "services", "contrib"}


def test_the_agent_s_codec_needs_nothing_but_netaddr_and_six(tmp_path):
    """And neither the event loop nor the options of Ryu."""
    for item in bundled.items([bundled.RYU, "netaddr", "six"], str(tmp_path), PINS):
        path = Path(item.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(item.data)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ryu.ofproto.ofproto_v1_3_parser, ryu.lib.type_desc\n"
        "assert ryu.__file__.startswith(sys.argv[1])\n"
        "print(*({'eventlet', 'oslo_config'} & set(sys.modules)))\n"
    )
    # -S: no site-packages at all.
    command = [sys.executable, "-I", "-S", "-c", code, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


def test_nothing_imports_what_left_the_standard_library():
    """Without setuptools, Python 3.12 and newer have no distutils."""
    items = bundled.items([bundled.RYU, *bundled.CONTROLLER], "/lib/x", PINS)
    sources = {item.path: item.data for item in items if item.path.endswith(".py")}
    unguarded = re.compile(rb"^(import distutils|from distutils)", re.MULTILINE)
    assert [path for path, data in sources.items() if unguarded.search(data)] == []


def test_another_version_than_the_pinned_one_is_refused():
    with pytest.raises(PackagingError, match=r"tinyrpc is .*, and requirements\.txt says 99: make setup"):
        bundled.items(["tinyrpc"], "/lib/x", PINS | {"tinyrpc": "99"})
    with pytest.raises(PackagingError, match="no-such-package is not installed"):
        bundled.items(["no-such-package"], "/lib/x", PINS)


def test_versions_are_read_by_canonical_name():
    assert bundled.pins("# a==1\nOslo.Config==10.7.0   # words\nrepoze.lru==0.8\n") == {
        "oslo-config": "10.7.0",
        "repoze-lru": "0.8",
    }
