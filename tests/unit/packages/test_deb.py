"""A Debian package has the files, fields and scripts that it is given; all of it belongs to root."""

from __future__ import annotations

import subprocess

import pytest

from packages import deb
from packages.deb import DebianPackage, Item
from packages.error import PackagingError

PACKAGE = DebianPackage(
    name="fairq-test",
    version="1.2-3",
    architecture="all",
    summary="a test",
    text="First line.\n\nLast line.\n",
    items=(
        Item("/usr/bin/fairq-test", b"#!/bin/sh\n", executable=True),
        Item("/etc/fairq-test/test.conf", b"x" * 1025),
    ),
    relations={"Depends": "sh, other (= 1.2-3)"},
    conffiles=("/etc/fairq-test/test.conf",),
    scripts={"postinst": "#!/bin/sh\nexit 0\n"},
)


def dpkg_deb(*words):
    return subprocess.run(["dpkg-deb", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return deb.build(PACKAGE, tmp_path_factory.mktemp("deb"))


def test_the_control_file():
    assert deb.control(PACKAGE).splitlines() == [
        "Package: fairq-test",
        "Source: fairq-ryu",
        "Version: 1.2-3",
        "Architecture: all",
        f"Maintainer: {deb.MAINTAINER}",
        "Installed-Size: 3",
        "Depends: sh, other (= 1.2-3)",
        "Section: net",
        "Priority: optional",
        "Description: a test",
        " First line.",
        " .",
        " Last line.",
    ]


def test_the_files_of_a_built_package(built):
    assert built.name == "fairq-test_1.2-3_all.deb"
    assert dpkg_deb("--field", str(built), "Depends").strip() == "sh, other (= 1.2-3)"
    lines = [line.split(maxsplit=5) for line in dpkg_deb("--contents", str(built)).splitlines()]
    assert {line[1] for line in lines} == {"root/root"}
    modes = {line[5]: line[0] for line in lines}
    assert modes["./usr/bin/fairq-test"] == "-rwxr-xr-x"
    assert modes["./etc/fairq-test/test.conf"] == "-rw-r--r--"
    assert {mode for path, mode in modes.items() if path.endswith("/")} == {"drwxr-xr-x"}


def test_what_dpkg_reads_of_a_built_package(built, tmp_path):
    dpkg_deb("--control", str(built), str(tmp_path / "about"))
    about = {path.name: path for path in (tmp_path / "about").iterdir()}
    assert set(about) == {"control", "conffiles", "md5sums", "postinst"}
    assert about["conffiles"].read_text() == "/etc/fairq-test/test.conf\n"
    assert about["md5sums"].read_text().split()[1] == "usr/bin/fairq-test"
    assert about["postinst"].stat().st_mode & 0o777 == 0o755


def test_a_built_package_replaces_its_other_versions(tmp_path):
    old = tmp_path / "fairq-test_1.1-1_all.deb"
    other = tmp_path / "fairq-testing_1.1-1_all.deb"
    for path in (old, other):
        path.touch()
    assert deb.build(PACKAGE, tmp_path).exists()
    assert not old.exists() and other.exists()


def test_two_files_in_one_place_are_refused(tmp_path):
    double = DebianPackage("x", "1", "all", "x", "x", (Item("/a", b"1"), Item("/a", b"2")))
    with pytest.raises(PackagingError, match="x has two files for /a"):
        deb.build(double, tmp_path)
