"""The Debian packages: what runs what, with which rights, and what is removed again."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile

import pytest

from fairq_ryu import __version__
from fairq_ryu.agent import privileges
from packages import bundled, contents
from tests.support.documents import ROOT

WHEEL = {
    "fairq_ryu/__init__.py": "",
    "fairq_ryu/agent/bpf/window.bpf.o": "\x7fELF",
    f"fairq_ryu-{__version__}.dist-info/METADATA": "Name: fairq_ryu\n",
    f"fairq_ryu-{__version__}.dist-info/RECORD": "",
    f"fairq_ryu-{__version__}.dist-info/entry_points.txt": "",
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel") / "fairq_ryu.whl"
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in WHEEL.items():
            opened.writestr(name, text)
    return {each.name: each for each in contents.packages(ROOT, path, 7)}


def files(package):
    return {item.path: item for item in package.items}


def unit(packages, name):
    return files(packages[name])[f"/lib/systemd/system/{contents.UNITS[name]}"].data.decode()


def values(text, key):
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def test_names_and_versions(packages):
    assert list(packages) == ["fairq-common", "fairq-agent", "fairq-controller"]
    assert {each.version for each in packages.values()} == {f"{__version__}-7"}
    for name in ("fairq-agent", "fairq-controller"):
        assert f"fairq-common (= {__version__}-7)" in packages[name].relations["Depends"]


def test_only_the_controller_is_of_one_processor_and_one_python(packages):
    assert [each.architecture for each in packages.values()][:2] == ["all", "all"]
    for name in ("fairq-common", "fairq-agent"):
        assert not [path for path in files(packages[name]) if path.endswith(".so")]
    found = files(packages["fairq-controller"])
    assert [path for path in found if path.endswith(".so")]
    first = found["/usr/lib/fairq-controller/fairq-controller"].data.decode().splitlines()[0]
    python = first.removeprefix("#!/usr/bin/").removesuffix(" -IB")
    assert f", {python}, " in packages["fairq-controller"].relations["Depends"]
    assert f"-V {python.removeprefix('python')} " in packages["fairq-controller"].scripts["postinst"]


def test_the_wheel_is_unpacked_without_its_installer_s_records(packages):
    inside = {path for path in files(packages["fairq-common"]) if path.startswith("/usr/lib/fairq/fairq_ryu")}
    assert inside == {f"/usr/lib/fairq/{name}" for name in WHEEL if not name.endswith("RECORD")}


def test_no_two_packages_have_the_same_file(packages):
    places = [path for each in packages.values() for path in files(each)]
    assert len(places) == len(set(places))


def test_the_agent_has_the_capabilities_that_it_asks_for(packages):
    (given,) = values(unit(packages, "fairq-agent"), "CapabilityBoundingSet")
    assert set(given.split()) == set(privileges.NEEDED)


def test_the_controller_has_no_capability_and_a_user_of_its_own(packages):
    text = unit(packages, "fairq-controller")
    assert (values(text, "CapabilityBoundingSet"), values(text, "User")) == ([""], ["fairq"])
    scripts = packages["fairq-controller"].scripts
    assert "useradd --system" in scripts["postinst"]
    # Files that are left may belong to its group, which another service must not get.
    assert "userdel" not in scripts["postrm"]


@pytest.mark.parametrize("name", contents.UNITS)
def test_a_unit_runs_a_program_of_the_packages_with_their_configuration(packages, name):
    (start,) = values(unit(packages, name), "ExecStart")
    program, *arguments = start.split()
    found = {path: item for each in packages.values() for path, item in files(each).items()}
    assert found[program].executable
    assert contents.CONFIGURATION in arguments and contents.CONFIGURATION in found
    assert packages["fairq-common"].conffiles == (contents.CONFIGURATION,)


@pytest.mark.parametrize("name", contents.UNITS)
def test_a_unit_and_its_package_know_the_same_manual_pages(packages, name):
    found = {path.rpartition("/")[2] for each in packages.values() for path in files(each)}
    for page in " ".join(values(unit(packages, name), "Documentation")).split():
        title, section = re.fullmatch(r"man:(\S+)\((\d)\)", page).groups()
        assert f"{title}.{section}.gz" in found


def test_scripts_are_valid_and_clean_up_what_python_writes(packages):
    for package in packages.values():
        for name, text in package.scripts.items():
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
            assert "@" not in text.replace("fairq-agent@", ""), (package.name, name)
        if any(path.endswith(".py") for path in files(package)):
            assert f"py3clean -p {package.name}" in package.scripts["prerm"]
            assert f"py3compile -p {package.name}" in package.scripts["postinst"]


def test_each_package_says_its_licences(packages):
    for name, package in packages.items():
        text = files(package)[f"/usr/share/doc/{name}/copyright"].data.decode()
        assert "Apache License" in text and "GPL-2.0 OR BSD-2-Clause" in text
    bundled = files(packages["fairq-controller"])["/usr/share/doc/fairq-controller/copyright"].data.decode()
    assert "- eventlet: MIT" in bundled and "- dnspython: ISC" in bundled


def test_each_package_says_what_it_brings_along(packages):
    bring = {"fairq-common": [bundled.RYU], "fairq-controller": bundled.CONTROLLER}
    for name, package in packages.items():
        path = f"/usr/share/doc/{name}/sbom.cdx.json"
        assert (path in files(package)) == (name in bring)
        if name in bring:
            document = json.loads(files(package)[path].data)
            found = [bundled.canonical(each["name"]) for each in document["components"]]
            assert sorted(found) == sorted(map(bundled.canonical, bring[name]))
            product = document["metadata"]["component"]
            assert (product["name"], product["version"]) == (name, package.version)
    (ryu,) = json.loads(files(packages["fairq-common"])["/usr/share/doc/fairq-common/sbom.cdx.json"].data)[
        "components"
    ]
    assert ryu["pedigree"]["notes"] == bundled.CHANGED[bundled.RYU]
