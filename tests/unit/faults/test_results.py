"""What is published of the faults."""

import re
from dataclasses import replace

from tests.faults import results
from tests.faults.table import FAULTS


def test_a_run_is_added_to_what_is_there(tmp_path):
    path, first = tmp_path / "faults.json", results.outcome(3, [0.31, 2.04])
    assert (first.made, first.passed, first.median, first.longest) == (3, 2, 1.2, 2.0)
    assert re.fullmatch(r"[0-9a-f]{8}|unknown", first.commit)
    never = results.outcome(2, [])
    assert never == replace(first, made=2, passed=0, median=0.0, longest=0.0)
    results.write(path, {"a": first, "b": first})
    results.write(path, {"b": never})
    assert results.read(path) == {"a": first, "b": never}


def test_every_published_fault_is_one_of_the_table():
    published = results.read()
    assert list(published) == [each.name for each in FAULTS if each.name in published]
