"""The locks have what the requirements files pin, with the hashes of all files; set-up takes nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packages import lock
from packages.lock import Pin

ROOT = Path(__file__).resolve().parents[3]
A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize("source", lock.LOCKS)
def test_a_lock_has_exactly_what_its_requirements_file_pins(source):
    """It fails? Run: make lock."""
    written = (ROOT / lock.LOCKS[source]).read_text(encoding="utf-8")
    locked = lock.locked(written)
    assert list(locked) == lock.pins((ROOT / source).read_text(encoding="utf-8"))
    assert all(locked.values()), "a release without a hash"
    assert written == lock.text(source, locked)


def test_no_file_of_one_release_is_allowed_for_another():
    every = [
        (pin.key, pin.version, each)
        for name in lock.LOCKS.values()
        for pin, hashes in lock.locked((ROOT / name).read_text(encoding="utf-8")).items()
        for each in hashes
    ]
    releases = {each: (name, version) for name, version, each in every}
    assert all(releases[each] == (name, version) for name, version, each in every)


def test_set_up_installs_from_the_index_with_hashes_only():
    """Every call of pip names a lock, or this checkout without an index."""
    text = (ROOT / "scripts/setup.sh").read_text(encoding="utf-8")
    calls = re.findall(r"^.*\bpip install\b.*$", text, re.MULTILINE)
    locked = [each for each in calls if "--require-hashes" in each]
    assert len(locked) == 1
    assert [each.split("||")[0].strip() for each in calls if each not in locked] == [
        "run_logged pip install -q --no-deps --no-build-isolation -e ."
    ]
    assert re.findall(r"^ +install_locked (\S+)", text, re.MULTILINE) == list(lock.LOCKS.values())


def test_a_lock_is_written_and_read():
    hashes = {Pin("One.x", "1.0"): (B, A), Pin("two", "2", 'python_version >= "3.13"'): (A,)}
    text = lock.text("some.txt", hashes)
    assert text.splitlines()[1:] == [
        "One.x==1.0 \\",
        f"    --hash=sha256:{A} \\",
        f"    --hash=sha256:{B}",
        'two==2 ; python_version >= "3.13" \\',
        f"    --hash=sha256:{A}",
    ]
    assert lock.locked(text) == {pin: tuple(sorted(each)) for pin, each in hashes.items()}


@pytest.mark.parametrize(
    "line", ["a>=1", "a", "a==1.*", "a==1,<2", "a[b]==1", "a @ https://a.example/a.whl", "="]
)
def test_a_requirement_that_is_no_single_release_is_refused(line):
    with pytest.raises(ValueError, match=re.escape(line)):
        lock.pins(f"fine==1\n{line}\n")


def test_comments_and_empty_lines_are_no_requirements():
    assert lock.pins("# a==1\n\nb==2  # b\n") == [Pin("b", "2")]


def test_all_files_of_a_release_and_of_no_other():
    names = {
        "a_b-1.0-py3-none-any.whl": "1",
        "a_b-1.0-cp314-cp314-manylinux_2_28_aarch64.whl": "2",
        "a_b-1.0.tar.gz": "3",
        "a_b-1.0.1.tar.gz": "4",
        "a_b-1.0.win32.exe": "5",
    }
    files = [{"filename": name, "hashes": {"sha256": digest}} for name, digest in names.items()]
    assert lock.release(Pin("a-b", "1"), files) == ["1", "2", "3"]
    with pytest.raises(ValueError, match="no file of a-b 2"):
        lock.release(Pin("a-b", "2"), files)


def test_only_new_releases_are_asked_for(tmp_path):
    """What an index says later does not change the hashes that are there."""
    for source in lock.LOCKS:
        (tmp_path / source).write_text("one==1\n")
    asked = []

    def hashes_of(pin):
        asked.append(pin)
        return [A]

    assert [path.name for path in lock.write(tmp_path, hashes_of)] == list(lock.LOCKS.values())
    assert lock.write(tmp_path, hashes_of) == [] and len(asked) == len(lock.LOCKS)
    (tmp_path / "requirements.txt").write_text('one==1; python_version < "4"\ntwo==2\n')
    assert [path.name for path in lock.write(tmp_path, lambda _: [B])] == ["requirements.lock"]
    locked = lock.locked((tmp_path / "requirements.lock").read_text())
    assert locked == {Pin("one", "1", 'python_version < "4"'): (A,), Pin("two", "2"): (B,)}
