"""What is published of the faults."""

import json
import re

from tests.faults import results
from tests.faults.results import Outcome
from tests.faults.table import FAULTS


def test_a_run_is_written_and_read(tmp_path, monkeypatch):
    found = {"a": results.outcome(3, [0.31, 2.04]), "b": results.outcome(2, [])}
    assert found == {"a": Outcome(3, 2, 1.2, 2.0), "b": Outcome(2, 0, 0.0, 0.0)}
    monkeypatch.setattr(results, "FILE", tmp_path / "faults.json")
    results.write(results.FILE, found)
    commit, read = results.read()
    assert read == found and re.fullmatch(r"[0-9a-f]{8,}", commit)


def test_every_published_fault_is_one_of_the_table():
    published = json.loads(results.FILE.read_text())["faults"]
    assert list(published) == [each.name for each in FAULTS if each.name in published]
