"""setup.py: which of our policies become entry points; requirements.txt: nothing is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from fairq_ryu.policies import base

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("packaging", ROOT / "setup.py")
packaging = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packaging)


def test_our_policies_are_found_and_installed():
    found = dict(line.split(" = ") for line in packaging.own_policies())
    folders = {path.parent.name for path in (ROOT / "fairq_ryu/laws").glob("*/policy.py")}
    assert {value.split(".")[2] for value in found.values()} == folders
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
    places = {"one": "laws/one/policy.py", "two": "laws/two_paper/policy.py"}
    for title, name, policy in [("One", "name", "one"), ("Two", "name: ClassVar[str]", "two")]:
        file = tmp_path / "ours" / places[policy]
        file.parent.mkdir(parents=True)
        file.write_text(source.format(title=title, name=name, policy=policy))
    assert packaging.own_policies(tmp_path / "ours") == [
        "one = ours.laws.one.policy:One",
        "two = ours.laws.two_paper.policy:Two",
    ]


def pinned(python: str) -> dict[str, Version]:
    """What the requirements files install in this Python, by canonical name."""
    lines = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    found = [
        Requirement(line.partition("#")[0]) for line in lines.splitlines() if line.partition("#")[0].strip()
    ]
    return {
        canonicalize_name(each.name): Version(str(each.specifier).removeprefix("=="))
        for each in found
        if each.marker is None or each.marker.evaluate({"python_version": python})
    }


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_pins_are_all_that_they_need_themselves(python: str):
    """pip installs them with --no-deps and misses nothing: not even what only another Python lacks."""
    pins = pinned(python)
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    for name in pins.keys() & pinned(f"{sys.version_info.major}.{sys.version_info.minor}").keys():
        about = importlib.metadata.distribution(name)
        assert Version(f"{python}.0") in SpecifierSet(about.metadata.get("Requires-Python") or "")
        for needed in map(Requirement, about.requires or []):
            if needed.marker is not None and not needed.marker.evaluate(environment):
                continue
            if (name, needed.name) == ("ns3", "cppyy"):
                continue  # for scripts in Python: the simulator needs headers and libraries only
            version = pins.get(canonicalize_name(needed.name))
            assert version is not None, f"{name} needs {needed}"
            # Ryu asks for an eventlet that these Pythons cannot import.
            assert version in needed.specifier or (name, needed.name) == ("c65ryu", "eventlet")
