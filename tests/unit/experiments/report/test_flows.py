"""Per-flow records of real results (long lists cut), and what the figures of a report say of their origin."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from fairq_ryu.cli import main as cli
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import flows, origin, report
from fairq_ryu.experiments.workloads.empirical.figures import RECORD

RESULTS = {path.stem: path for path in (Path(__file__).parents[3] / "data/results").glob("*.json")}


NOWHERE = Path("/nonexistent")
"""Where no logs are: the figures of most flows are in the result."""


def rows(name, measured=NOWHERE):
    return list(flows.rows(json.loads(RESULTS[name].read_text()), measured))


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
    kinds = {name: {row["kind"] for row in rows(name)} for name in RESULTS.keys() - {"empirical"}}
    assert kinds == {
        "deadlines": {"deadline", "endless"},
        "fanin": {"fanin"},
        "heterogeneous": {"long"},
        "incast": {"mouse", "elephant"},
        "messages": {"elephant"},
        "simulated": {"mouse", "elephant"},
        "tenants": {"tenant"},
    }


def logged(directory, repeat):
    """The logs of the result with published sizes, two flows a run."""
    whole = json.loads(RESULTS["empirical"].read_text())
    for each in whole["policies"]:
        for number in range(1, repeat + 1):
            logs = directory / "logs" / each["policy"] / (str(number) if repeat > 1 else "")
            logs.mkdir(parents=True)
            (logs / "flows.csv").write_text(
                f"{','.join(RECORD)}\r\n7,3,1460,1.5,1.501,4.25,\r\n8,0,{number},1.75,1.75,,2\r\n"
            )
    return whole


@pytest.mark.parametrize("repeat", [1, 2])
def test_sized_flows_are_read_from_the_logs(tmp_path, repeat):
    whole = logged(tmp_path, repeat)
    parts = [{"policies": whole["policies"]}] * repeat if repeat > 1 else None
    found = list(flows.rows(whole | {"repetitions": parts}, tmp_path))
    assert len(found) == 2 * repeat * len(whole["policies"])
    first, second = found[:2]
    assert (first["kind"], first["place"], first["sender"], first["size_bytes"]) == ("sized", 7, 3, 1460)
    assert (first["due_s"], first["start_s"], first["fct_ms"], first["rto_timeouts"]) == (
        1.5,
        1.501,
        4.25,
        None,
    )
    assert (second["fct_ms"], second["rto_timeouts"]) == (None, 2)
    assert found[-1]["repetition"] == found[-1]["size_bytes"] == repeat


def test_sized_flows_without_their_logs_are_one_clear_error(tmp_path):
    whole = logged(tmp_path, 1)
    path = tmp_path / "logs" / whole["policies"][0]["policy"] / "flows.csv"
    path.write_text("number,sender\r\n1,2\r\n")
    with pytest.raises(UserError, match=r"flows.csv is damaged"):
        list(flows.rows(whole, tmp_path))
    with pytest.raises(
        UserError, match=r"cannot read .*/flows.csv, which has the single flows: No such file"
    ):
        rows("empirical")


def test_flows_with_deadlines_have_theirs():
    flow = next(row for row in rows("deadlines") if row["policy"] == "droptail")
    assert (flow["size_bytes"], flow["deadline_s"], flow["met"]) == (8_000_000, 6.0, False)
    assert flow["fct_ms"] > 6000 and flow["goodput_mbit"] is None


def test_flows_of_a_fan_in_have_those_of_their_application():
    """Sizes and deadlines of the scenario: one flow of each application, then four (the list is cut)."""
    found = [row for row in rows("fanin") if row["policy"] == "droptail" and row["repetition"] == 1]
    sent = {n: [(row["size_bytes"], row["deadline_s"]) for row in found if row["group"] == n] for n in (1, 4)}
    assert sent[1] == [(20_000, 4.0), (60_000, 6.0), (100_000, 7.0), (140_000, 8.0), (200_000, 9.0)]
    assert sent[4] == [(20_000, 4.0)] * 4 + [(60_000, 6.0)] * 2
    assert all(row["met"] for row in found)  # none took a second


def test_a_fan_in_has_several_rounds_unfinished_flows_and_flows_without_a_deadline():
    whole = json.loads(RESULTS["fanin"].read_text())
    whole["scenario"]["deadlines_s"][0] = 0.0
    times = [None, None, 7000.0, 8000.1, 1.0, 1.0, 6000.0]
    whole["repetitions"][0]["policies"][0]["fanin"]["sweep"][0]["fct_list_ms"] = times
    found = list(flows.rows(whole, NOWHERE))[: len(times)]
    assert [
        (row["place"], row["fct_ms"], row["size_bytes"], row["deadline_s"], row["met"]) for row in found
    ] == [
        (0, None, 20_000, None, None),
        (1, None, 60_000, 6.0, False),
        (2, 7000.0, 100_000, 7.0, True),
        (3, 8000.1, 140_000, 8.0, False),
        (4, 1.0, 200_000, 9.0, True),
        (5, 1.0, 20_000, None, None),
        (6, 6000.0, 60_000, 6.0, True),
    ]
    assert [row["round"] for row in found] == [0, 0, 0, 0, 0, 1, 1]


def test_mice_have_their_round():
    """By round, and in each as many as the scenario says: two senders with two mice of one request, as all
    were before there was a setting for it.
    """
    whole = json.loads(RESULTS["incast"].read_text())
    whole["scenario"] |= {"senders": 2, "mice_per_sender": 2}
    del whole["scenario"]["requests"]
    mice = [row for row in flows.rows(whole, NOWHERE) if row["kind"] == "mouse"]
    assert [row["round"] for row in mice if row["policy"] == "fairq"] == [0, 0, 0, 0, 1, 1]
    assert {row["round"] for row in rows("tenants")} == {None}


def test_without_pyarrow_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    shutil.copy(RESULTS["messages"], tmp_path / "result.json")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(report, "write", lambda _whole, _out, _measured: [])
    assert cli.main(["report", str(tmp_path), "--flows"]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err
    assert not (tmp_path / flows.FILE_NAME).exists()


@pytest.mark.parametrize("name", ["incast", "empirical"])
def test_the_file_has_the_rows_and_their_origin(tmp_path, name):
    parquet = pytest.importorskip("pyarrow.parquet", reason="optional: `pip install pyarrow`")
    whole = logged(tmp_path, 1) if name == "empirical" else json.loads(RESULTS[name].read_text())
    table = parquet.read_table(flows.write(whole, tmp_path, tmp_path))
    assert table.to_pylist() == rows(name, tmp_path)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert (about["schema"], about["fairq"]) == ("fairq-flows/1", origin.line(whole))


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
    own = {**whole["metadata"], "overrides": {}, "policy_config": None, "scenario_name": "a/b.toml"}
    simulated = {**own, "simulator": {"link_mbit": 1000.0, "ack_every": 1}}
    assert origin.command(simulated, ["las"], 1) == (
        "fairq simulate a/b.toml --policy las --link-mbit 1000 --ack-every 1"
    )
    metadata = {**own, "scenario_name": "incast", "overrides": {"rounds": "4"}}
    swept = origin.text(metadata, ["droptail"], axes={"senders": ["1", "2"]})
    assert "scenario incast rounds=4 senders=1,2; " in swept
    assert swept.endswith("command fairq sweep incast senders=1,2 --policy droptail --set rounds=4")
