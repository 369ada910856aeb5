"""The SBOM is a valid CycloneDX document of what is installed and brought along, with hashes and licences."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path

import jsonschema_rs
import pytest

from packages import bundled, lock, sbom
from packages.error import PackagingError
from packages.lock import Pin

ROOT = Path(__file__).resolve().parents[3]
LOCKED = sbom.read_lock(ROOT)
WHEN = 1_800_000_000


def schema(name):
    """A schema of CycloneDX, as its own library has it."""
    return json.loads((resources.files("cyclonedx.schema") / "_res" / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def validator():
    names = [f"{name}.SNAPSHOT.schema.json" for name in ("spdx", "jsf-0.82")]
    registry = jsonschema_rs.Registry(
        [(f"http://cyclonedx.org/schema/{name}", schema(name)) for name in names]
    )
    whole = schema("bom-1.6.SNAPSHOT.schema.json")
    return jsonschema_rs.Draft7Validator(whole, registry=registry, validate_formats=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    for name in ("fairq_ryu-0.1.0-py3-none-any.whl", "fairq-agent_0.1.0-1_all.deb", "other_0.1.0.deb"):
        (out / name).write_text(name)
    path = sbom.write(ROOT, out, WHEN)
    assert path.name == "fairq_ryu-0.1.0.cdx.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_it_is_valid(whole, validator):
    validator.validate(whole)
    assert (whole["bomFormat"], whole["specVersion"]) == ("CycloneDX", "1.6")
    with pytest.raises(jsonschema_rs.ValidationError):
        validator.validate(whole | {"components": [{"name": "no type"}]})


def test_it_has_every_release_that_is_locked_for_this_python_with_all_hashes(whole):
    found = {
        (each["name"], each["version"]): tuple(
            digest["content"] for digest in each["externalReferences"][0]["hashes"]
        )
        for each in whole["components"]
    }
    assert found == {(pin.name, pin.version): hashes for pin, hashes in LOCKED.items()}
    assert len(whole["components"]) == len(LOCKED)


def test_every_release_has_a_licence(whole):
    for each in whole["components"]:
        (licence,) = each["licenses"]
        assert licence.get("expression") or licence["license"].get("id") or licence["license"]["name"]
    licences = {each["name"]: each["licenses"] for each in whole["components"]}
    assert licences["eventlet"] == [{"license": {"id": "MIT"}}]
    assert licences["packaging"] == [{"expression": "Apache-2.0 OR BSD-2-Clause"}]


def test_it_has_the_hashes_of_the_built_packages(whole):
    product = whole["metadata"]["component"]
    built = {each["url"]: each["hashes"][0]["content"] for each in product["externalReferences"]}
    names = ("fairq_ryu-0.1.0-py3-none-any.whl", "fairq-agent_0.1.0-1_all.deb")
    assert built == {name: hashlib.sha256(name.encode()).hexdigest() for name in names}


def test_it_says_what_needs_what_and_what_is_a_copy(whole):
    needs = {each["ref"]: each["dependsOn"] for each in whole["dependencies"]}
    assert set(needs) == {"fairq_ryu"} | {each["bom-ref"] for each in whole["components"]}
    (eventlet,) = [each for each in needs if each.startswith("pkg:pypi/eventlet@")]
    assert {each.partition("@")[0] for each in needs[eventlet]} == {"pkg:pypi/dnspython", "pkg:pypi/greenlet"}
    (ryu,) = [each for each in whole["components"] if each["name"] == "c65ryu"]
    assert [each["purl"] for each in ryu["pedigree"]["ancestors"]] == ["pkg:pypi/ryu@4.34"]


def test_the_same_packages_have_the_same_document(whole):
    one, again, other = (
        sbom.document("x", version, LOCKED, WHEN)["serialNumber"] for version in ("1", "1", "2")
    )
    assert one == again != other


def test_a_package_that_is_not_installed_as_locked_is_refused():
    with pytest.raises(PackagingError, match=r"six is .*, and requirements\.txt says 99: make setup"):
        sbom.document("x", "1", {Pin("six", "99"): ("a" * 64,)}, WHEN)


def test_a_missing_lock_is_refused(tmp_path):
    with pytest.raises(PackagingError, match="make lock"):
        sbom.read_lock(tmp_path)


def test_what_only_another_python_needs_is_left_out():
    every = lock.locked((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert {pin.name for pin in every} - {pin.name for pin in LOCKED} <= {"legacy-cgi"}
    assert {bundled.canonical(name) for name in bundled.CONTROLLER} <= {pin.key for pin in LOCKED}
