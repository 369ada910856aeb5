"""Per-flow records of real results (long lists cut), and what the figures of a report say of their origin."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from fairq_ryu.cli import main as cli
from fairq_ryu.experiments.report import flows, origin, report

RESULTS = {path.stem: path for path in (Path(__file__).parents[3] / "data/results").glob("*.json")}


def rows(name):
    return list(flows.rows(json.loads(RESULTS[name].read_text())))


@pytest.mark.parametrize("name", sorted(RESULTS.keys() - {"empirical"}))
def test_every_row_names_its_scenario_policy_and_commit(name):
    found = rows(name)
    assert found and all(list(row) == list(flows.COLUMNS) for row in found)
    whole = json.loads(RESULTS[name].read_text())
    assert {row["policy"] for row in found} == {each["policy"] for each in whole["policies"]}
    assert {row["scenario"] for row in found} == {whole["metadata"]["scenario_name"]}
    assert {row["commit"] for row in found} == {origin.commit(whole["metadata"])}
    assert {row["repetition"] for row in found} == set(range(1, whole["repeat"] + 1))


def test_the_kinds_of_flows():
    kinds = {name: {row["kind"] for row in rows(name)} for name in RESULTS}
    assert kinds == {
        "deadlines": {"deadline", "endless"},
        "empirical": set(),
        "fanin": {"fanin"},
        "heterogeneous": {"long"},
        "incast": {"mouse", "elephant"},
        "messages": {"elephant"},
        "simulated": {"mouse", "elephant"},
        "tenants": {"tenant"},
    }


def test_flows_with_deadlines_have_theirs():
    flow = next(row for row in rows("deadlines") if row["policy"] == "droptail")
    assert (flow["size_bytes"], flow["deadline_s"], flow["met"]) == (8_000_000, 6.0, False)
    assert flow["fct_ms"] > 6000 and flow["goodput_mbit"] is None


def test_without_pyarrow_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    shutil.copy(RESULTS["messages"], tmp_path / "result.json")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(report, "write", lambda _whole, _out, _measured: [])
    assert cli.main(["report", str(tmp_path), "--flows"]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err
    assert not (tmp_path / flows.FILE_NAME).exists()


def test_the_file_has_the_rows_and_their_origin(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="optional: `pip install pyarrow`")
    whole = json.loads(RESULTS["incast"].read_text())
    table = parquet.read_table(flows.write(whole, tmp_path))
    assert table.to_pylist() == rows("incast")
    assert table.schema.metadata[b"fairq"].decode() == origin.line(whole)


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_each_picture_contains_its_scenario_policies_and_commit(name, tmp_path, monkeypatch):
    texts = []

    def save(_figure, target, metadata, **_options):
        texts.append(metadata.get("Description") or metadata["Subject"])
        if hasattr(target, "write"):
            target.write(b"<svg/>")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)
    whole = json.loads(RESULTS[name].read_text())
    report.pictures(whole, tmp_path)
    assert texts and set(texts) == {origin.line(whole)}
    metadata = whole["metadata"]
    verb = "simulate" if name == "simulated" else "run"
    command = f"command fairq {verb} {metadata['scenario_name']} --policy {whole['policies'][0]['policy']}"
    for words in (metadata["scenario_name"], metadata["git_commit"][:12], command):
        assert words in texts[0]


def test_the_command_makes_the_same_run_again():
    whole = json.loads(RESULTS["messages"].read_text())
    whole["policies"] = [{"policy": "droptail"}, {"policy": "fairq[alpha=0.5]"}]
    whole["metadata"] |= {"overrides": {"sizes": "[1, 2]"}, "policy_config": "[fairq]"}
    command = origin.line(whole | {"repeat": 3}).partition("; command ")[2]
    assert shlex.split(command) == [
        "fairq", "run", "fairq-messages", "--policy", "droptail,fairq[alpha=0.5]", "--set", "sizes=[1, 2]",
        "--repeat", "3", "--config-file", "FILE",
    ]  # fmt: skip
    metadata = {"scenario_name": "incast", "overrides": {"rounds": "4"}}
    swept = origin.text(metadata, {}, ["droptail"], axes={"senders": ["1", "2"]})
    assert "scenario incast rounds=4 senders=1,2; " in swept
    assert swept.endswith("command fairq sweep incast senders=1,2 --policy droptail --set rounds=4")
