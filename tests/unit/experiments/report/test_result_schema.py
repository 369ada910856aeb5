"""The JSON Schema of a result, held against results of real runs (long lists cut) and of the simulator."""

import copy
import importlib.resources
import json
from pathlib import Path

import jsonschema_rs
import pytest

from fairq_ryu.experiments.report import result

RESULTS = {path.stem: path for path in (Path(__file__).parents[3] / "data/results").glob("*.json")}
SCHEMA = importlib.resources.files("fairq_ryu.experiments.report") / "result.schema.json"


@pytest.fixture(scope="module")
def validator():
    return jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_real_results_fit(validator, name):
    validator.validate(json.loads(RESULTS[name].read_text()))


def test_it_is_of_the_version_that_is_written():
    assert json.loads(SCHEMA.read_text())["properties"]["schema"] == {"const": result.SCHEMA}


def test_a_failed_policy_and_a_merged_one_fit(validator):
    whole = json.loads(RESULTS["messages"].read_text())
    failed = {"policy": "fairq", "failed": "no room"}
    one = {"order": ["droptail", "fairq"], "floor": None, "policies": [whole["policies"][0], failed]}
    validator.validate(result.assemble(whole["scenario"], whole["metadata"], [one, one]))


def remove(*path):
    def change(whole):
        at = whole
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def put(value, *path):
    def change(whole):
        at = whole
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        remove("metadata", "scenario_name"),
        remove("metadata", "git_commit"),
        remove("metadata", "settings"),
        remove("policies", 0, "policy"),
        remove("policies", 0, "queue", "qdisc_drops"),
        remove("scenario", "scale"),
        put("fairq-result/2", "schema"),
        put("12", "policies", 0, "senders", "rto_timeouts"),
        put(1, "policies", 0, "integrity", "mismatched"),
        put("", "policies", 0, "failed"),
        put(1, "unknown"),
        put(0, "repeat"),
    ],
)
def test_what_lacks_something_or_has_another_type_does_not(validator, change):
    whole = copy.deepcopy(json.loads(RESULTS["messages"].read_text()))
    change(whole)
    assert not validator.is_valid(whole)
