"""The JSON Schemas of the files beside results, held against files that a sweep and a series have written."""

import copy
import json
from pathlib import Path

import jsonschema_rs
import pytest

from docs.generate import schemas
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.papers import plan, series
from fairq_ryu.experiments.papers.plan import Claim, Experiment, Paper
from fairq_ryu.experiments.report import formats
from fairq_ryu.experiments.sweep import sweep

FOLDER = Path(formats.__file__).parent
MEASURED = json.loads((Path(__file__).parents[3] / "data/results/incast.json").read_text())["policies"][0]
FILES = {
    "sweep": ("sweep/sweep.json", "papers/A/sweep.json"),
    "run": ("sweep/senders=2/runs/1.1.json", "papers/A/runs/2.2.json"),
    "papers": ("papers/papers.json",),
    "claims": ("papers/claims.json",),
}


def experiment(id):
    claims = (Claim(id, "sooner", "figure 1", "p99", "p99", "droptail:mice.fct_ms.p99 < 1"),)
    return Experiment(id, "incast", ("droptail", "fairq"), 2, 1.0, {"senders": "4"}, claims, 0)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The directory of a sweep, and of a series of which one experiment was left out. Only the network is not
    there: each run has the figures of a real one.
    """
    out = tmp_path_factory.mktemp("out")

    def run_policy(_chosen, variant, *_rest):
        return {**copy.deepcopy(MEASURED), "policy": variant.name}

    def metadata(name, overrides, _variants, config_file, files):
        return machine.origin(name, overrides, config_file, files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep.runner, "run_policy", run_policy)
        patch.setattr(sweep.runner, "check", lambda _chosen, _variants, place, _file: place.mkdir())
        patch.setattr(machine, "metadata", metadata)
        papers = (Paper("P", "by P", (experiment("A"), experiment("B"))),)
        patch.setattr(plan, "load", lambda _quick=False: papers)
        assert sweep.main("incast", ["senders=2,4"], ["droptail", "fairq[alpha=0.5]"], out / "sweep") == 0
        assert series.main(out / "papers", ids=["A"]) == 0
    return out


@pytest.fixture(scope="module")
def valid():
    """Whether the content of a file is of a kind."""
    of = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.schema.json")}
    registry = jsonschema_rs.Registry([(f"json-schema:///{name}", schema) for name, schema in of.items()])

    def check(kind, content):
        return jsonschema_rs.validator_for(of[f"{kind}.schema.json"], registry=registry).is_valid(content)

    return check


def test_the_schemas_are_those_of_the_types():
    for path, text in schemas.written():
        assert path.read_text() == text, f"{path.name} differs from the types. Run: make docs"
    assert {path.name for path, _ in schemas.written()} | {"result.schema.json"} == {
        path.name for path in FOLDER.glob("*.schema.json")
    }


@pytest.mark.parametrize(("kind", "names"), FILES.items())
def test_what_the_commands_write_fits(written, valid, kind, names):
    assert FILES.keys() == formats.KINDS.keys()
    for name in names:
        assert valid(kind, json.loads((written / name).read_text())), name


def test_claims_are_there_with_figures_and_without(written):
    claims = json.loads((written / "papers/claims.json").read_text())["claims"]
    assert [(each["experiment"], each["interval"] is None, each["repeat"]) for each in claims] == [
        ("A", False, 2),
        ("B", True, 0),
    ]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("sweep", {"schema": "fairq-sweep/0"}),
        ("sweep", {"axes": {"senders": [2]}}),
        ("sweep", {"metadata": {}}),
        ("sweep", {"unknown": 1}),
        ("run", {"took_s": -1}),
        ("run", {"figures": {"policy": "fairq"}}),
        ("papers", {"quick": 1}),
        ("claims", {"claims": [{"id": "A"}]}),
    ],
)
def test_what_has_another_type_does_not(written, valid, kind, change):
    content = json.loads((written / FILES[kind][0]).read_text())
    assert valid(kind, content) and not valid(kind, {**content, **change})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read .*sweep.json: No such file or directory. Remedy: make one"),
        ("{", "sweep.json is damaged, or no fairq-sweep/1 file: the whole: Invalid JSON"),
        ("{}", "sweep.json is damaged, or no fairq-sweep/1 file: schema: "),
        ("\udc80", "sweep.json is damaged, or no fairq-sweep/1 file: the whole: "),
        ('{"schema": "fairq-sweep/2"}', "schema: Input should be 'fairq-sweep/1'"),
        ('{"schema": "fairq-sweep/1"}', "scenario_name: "),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(tmp_path, content, words):
    path = tmp_path / "sweep.json"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=words):
        formats.read(path, formats.Sweep, "make one")
