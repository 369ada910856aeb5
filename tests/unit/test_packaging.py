"""setup.py: which of our policies become entry points."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from fairq_ryu.policies import base

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("packaging", ROOT / "setup.py")
packaging = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packaging)


def test_our_policies_are_found_and_installed():
    found = dict(line.split(" = ") for line in packaging.own_policies())
    windows = ["acdc", "droptail", "fairq", "fairswitch", "fixed", "iqm", "las", "rsed", "sed"]
    queues = ["afcd", "afq", "codel", "mark", "red", "sfb"]
    assert sorted(found) == sorted(windows + queues)
    assert found == {entry.name: entry.value for entry in base.installed() if entry.name in base.own()}
    assert {name: base.find(name).name for name in found} == {name: name for name in found}


def test_a_name_is_found_with_and_without_a_type(tmp_path: Path):
    source = """
name = "no class"

class Helper:
    title = "helper"
    name: str

class {title}:
    interval = 0.01
    {name} = "{policy}"
"""
    for title, name, policy in [("One", "name", "one"), ("Two", "name: ClassVar[str]", "two")]:
        (tmp_path / f"{policy}.py").write_text(source.format(title=title, name=name, policy=policy))
    assert packaging.own_policies(tmp_path) == [
        "one = fairq_ryu.policies.one:One",
        "two = fairq_ryu.policies.two:Two",
    ]
