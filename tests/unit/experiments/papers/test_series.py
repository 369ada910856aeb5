"""The series without a network: what is run, kept, continued, refused, judged and drawn."""

import copy
import dataclasses
import json
import re
from pathlib import Path

import pytest

from fairq_ryu.cli import main as cli
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.papers import plan, report, series
from fairq_ryu.experiments.papers.plan import Claim, Experiment, Paper
from fairq_ryu.experiments.report import origin, result
from fairq_ryu.experiments.sweep import sweep
from fairq_ryu.experiments.sweep.schedule import Run
from fairq_ryu.experiments.testbed import Interrupted

STORED = json.loads((Path(__file__).parents[3] / "data/results/incast.json").read_text())
P99 = "mice.fct_ms.p99"


def claim(id, holds, **more):
    return Claim(id, "much sooner", "figure 1", "p99", "p99", holds, **more)


def experiment(id, place=0, **more):
    claims = (
        claim(id, f"droptail:{P99} / fairq:{P99} > 3.16"),
        claim(id, f"fairq:{P99} < 50", differs="the link is slower"),
    )
    settings = {"policies": ("droptail", "fairq"), "repeat": 3, "seconds": 10.0, "set": {"senders": "4"}}
    return Experiment(id=id, scenario="incast", claims=claims, place=place, **{**settings, **more})


A, B, C = experiment("A"), experiment("B", 1, seconds=20.0), experiment("C", 2)


def save(_figure, target, **options):
    """In place of drawing, which takes the longest: what the picture would contain about its origin."""
    about = options["metadata"]
    words = (about.get("Description") or about.get("Subject")).encode()
    if hasattr(target, "write"):
        target.write(b"<svg>" + words + b"</svg>")
    else:
        Path(target).write_bytes(words)


@pytest.fixture
def bench(monkeypatch):
    """A machine on which runs take no time, and a plan of two experiments, of which --quick has one."""

    class Bench:
        made: list[tuple[str, str, int]]
        commit = "c0ffee"

        def __init__(self):
            self.made = []
            self.configs = {}
            self.stop = lambda *_run: None

        def run_policy(self, chosen, variant, logs, config_file, interrupts, report):
            run = (logs.parents[2].name, variant.name, chosen.seed)
            self.configs[run[0]] = config_file and config_file.read_text()
            outcome = self.stop(*run)
            if outcome:
                return {"policy": variant.name, "failed": outcome}
            self.made.append(run)
            found = copy.deepcopy(STORED["policies"][0])
            found["policy"] = variant.name
            found["mice"]["fct_ms"]["p99"] = {"droptail": 1000.0, "fairq": 100.0}[variant.base] + chosen.seed
            return found

        def metadata(self, name, overrides, variants, config_file, files):
            return {
                **STORED["metadata"],
                "scenario_name": name,
                "policy_config": config_file and config_file.read_text(),
                "git_commit": self.commit,
                "git_dirty": False,
                "git_changes": "",
                "overrides": overrides,
                "kernel": "6.18",
            }

    made = Bench()
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)
    monkeypatch.setattr(sweep.runner, "run_policy", made.run_policy)
    monkeypatch.setattr(
        series.runner, "check", lambda _chosen, _variants, out, _file: out.mkdir(exist_ok=True)
    )
    monkeypatch.setattr(machine, "metadata", made.metadata)
    full, quick = Paper("P", "by P", (A, B)), Paper("P", "by P", (experiment("A", repeat=2),), (B,))
    monkeypatch.setattr(plan, "load", lambda quick_one=False: (quick if quick_one else full,))
    return made


def test_every_policy_is_run_as_often_as_planned(bench, tmp_path, capsys):
    assert series.main(tmp_path) == 0
    assert len(bench.made) == len(set(bench.made)) == 2 * 2 * 3
    whole = result.load(tmp_path / "A")
    assert (whole["repeat"], whole["scenario"]["senders"], whole["scenario"]["floor"]) == (3, 4, False)
    assert [each["order"] for each in whole["repetitions"]] == [
        ["droptail", "fairq"],
        ["fairq", "droptail"],
        ["droptail", "fairq"],
    ]
    printed = capsys.readouterr()
    assert "1 of 12: A droptail, 1 of 3; about 3 min left" in printed.err
    assert re.search(r"A +agrees +9.82 \[9.61, 10\] +p99", printed.out)
    assert "4 claims: 2 agree, 2 do not, of 0 these repetitions cannot tell.\n" in printed.out


def test_an_experiment_may_have_a_configuration_of_its_own(bench, tmp_path, monkeypatch):
    far = experiment("A", config="[fairq_ryu]\nbase_rtt = 0.1\n")
    monkeypatch.setattr(plan, "load", lambda _quick=False: (Paper("P", "by P", (far, B)),))
    assert series.main(tmp_path) == 0
    assert bench.configs == {"A": far.config, "B": None}
    assert result.load(tmp_path / "A")["metadata"]["policy_config"] == far.config


def test_the_simulator_gets_the_configuration_of_an_experiment(bench, tmp_path, monkeypatch):
    given = []

    class Simulation:
        def __init__(self, chosen, policies, config_file, ack_every):
            self.metadata = {"link_mbit": 1000.0, "ack_every": ack_every}
            given.append((config_file and config_file.read_text(), ack_every))
            self.scenario = chosen

        def run(self, policy, number):
            return {**copy.deepcopy(STORED["policies"][0]), "policy": policy}

    monkeypatch.setattr(series, "Simulation", Simulation)
    scenario = str(plan.program.SOURCES / "scenarios/iqm-25.toml")
    changed = {"scenario": scenario, "simulated": True, "set": {}}
    near = dataclasses.replace(A, **changed, config="[iqm]\ninterval = 0.0005\n", ack_every=1)
    monkeypatch.setattr(
        plan, "load", lambda _quick=False: (Paper("P", "by P", (near, dataclasses.replace(B, **changed))),)
    )
    assert series.main(tmp_path) == 0
    assert given == [(near.config, 1), (None, plan.order.ACK_EVERY)]
    metadata = result.load(tmp_path / "A")["metadata"]
    assert metadata["policy_config"] == near.config and metadata["settings"]["iqm"]["interval"] == 0.0005


def test_a_killed_series_continues_with_what_is_missing(bench, tmp_path):
    def killed(*_run):
        if len(bench.made) == 7:
            raise KeyboardInterrupt  # as if it were SIGKILL: nothing is done about it

    bench.stop = killed
    with pytest.raises(KeyboardInterrupt):
        series.main(tmp_path)
    first, bench.made = bench.made, []
    assert result.load(tmp_path / "A")["repeat"] == 3 and not (tmp_path / "B" / "result.json").exists()
    bench.stop = lambda *_run: None
    assert series.main(tmp_path) == 0
    assert len(bench.made) == 12 - 7 and not set(bench.made) & set(first)
    assert series.main(tmp_path) == 0 and len(bench.made) == 5  # nothing is left


def test_single_experiments_add_up(bench, tmp_path, capsys):
    assert series.main(tmp_path, ids=["B"]) == 0
    assert {name for name, _policy, _seed in bench.made} == {"B"}
    assert "2 more are of experiments or policies that were not run." in capsys.readouterr().out
    assert series.main(tmp_path, ids=["A"]) == 0 and len(bench.made) == 12
    assert "4 claims: " in capsys.readouterr().out


def test_an_interrupted_series_says_how_to_continue(bench, tmp_path, capsys):
    def interrupted(*_run):
        raise Interrupted

    bench.stop = interrupted
    assert series.main(tmp_path) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_a_failed_run_is_told_judged_unknown_and_tried_again(bench, tmp_path, capsys):
    bench.stop = lambda name, policy, seed: "no room" if (name, policy, seed) == ("B", "fairq", 2) else None
    assert series.main(tmp_path) == 1
    assert "2 agree" not in capsys.readouterr().out
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert {each["why"] for each in claims if each["experiment"] == "B"} == {"fairq failed: no room"}
    bench.stop, bench.made = (lambda *_run: None), []
    assert series.main(tmp_path) == 0 and bench.made == [("B", "fairq", 2)]


def test_another_commit_or_the_other_series_is_refused(bench, tmp_path):
    assert series.main(tmp_path, ids=["A"]) == 0
    with pytest.raises(UserError, match=r"run without --quick.*--out|has another sweep"):
        series.main(tmp_path, quick=True)
    bench.commit = "decaf"
    with pytest.raises(UserError, match="git_commit: c0ffee and decaf now"):
        series.main(tmp_path, ids=["A"])


def test_what_is_refused_changes_nothing(bench, tmp_path):
    """The quick series can still be continued."""
    assert series.main(tmp_path, quick=True, ids=["A"]) == 0
    with pytest.raises(UserError, match="run with --quick"):
        series.main(tmp_path)
    assert series.main(tmp_path, quick=True) == 0


def test_a_refused_experiment_leaves_nothing_of_those_before_it(bench, tmp_path):
    assert series.main(tmp_path, ids=["B"]) == 0
    bench.commit = "decaf"
    with pytest.raises(UserError, match="has another sweep"):
        series.main(tmp_path)
    assert not (tmp_path / "A").exists()


def test_what_quick_leaves_out_is_listed(bench, tmp_path):
    assert series.main(tmp_path, quick=True) == 0
    assert len(bench.made) == 2 * 2
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert [(each["experiment"], each["why"]) for each in claims if each["verdict"] == "cannot tell"][-1] == (
        "B",
        "--quick leaves it out",
    )


def test_the_time_that_is_left():
    left = [(A, Run(0, 1, "fairq")), (B, Run(0, 0, "droptail"))]
    assert series.seconds_left(left, {}, [A, B]) == 30.0  # as planned
    took = {("A", Run(0, 0, "droptail")): 20.0}  # twice as long as planned: so will all others
    assert series.seconds_left(left, took, [A, B]) == 60.0
    took[("A", Run(0, 0, "fairq"))] = 8.0  # of the same policy it is known; the others by 28 for 20
    assert series.seconds_left(left, took, [A, B]) == 8.0 + 1.4 * 20.0


def test_each_claim_names_its_scenario_policies_and_commit(bench, tmp_path):
    series.main(tmp_path)
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert len(claims) == 4
    for each in claims:
        assert (each["scenario"], each["overrides"]) == ("incast", {"senders": "4"})
        assert set(each["policies"]) <= {"droptail", "fairq"} and each["policies"]
        assert (each["git_commit"], each["repeat"]) == ("c0ffee", 3)
        assert each["interval"] is not None and each["why"]
    assert "the link is slower" in claims[1]["why"] and "the link is slower" not in claims[0]["why"]


def test_the_page_stands_alone_and_says_what_its_figures_are_of(bench, tmp_path):
    series.main(tmp_path)
    page = (tmp_path / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert len(sources) == 1 + 2 * 4 and all(
        each.startswith("data:image/svg+xml;base64,") for each in sources
    )
    assert (
        page.count(
            "scenario incast senders=4; policies droptail, fairq; 3 repetitions; Linux 6.18; commit c0ffee"
        )
        == 2
    )
    assert "much sooner" in page and "4 claims" in page


def test_each_picture_contains_its_scenario_policies_and_commit(bench, tmp_path):
    series.main(tmp_path)
    words = "scenario incast senders=4; policies droptail, fairq; 3 repetitions; Linux 6.18; commit c0ffee"
    pictures = [*tmp_path.glob("**/*.png"), *tmp_path.glob("**/*.pdf")]
    assert len(pictures) == 2 * (1 + 2 * 4)
    assert all(words in each.read_text() for each in pictures)


def test_the_report_of_a_series_and_of_its_experiments(bench, tmp_path, capsys):
    series.main(tmp_path)
    for path in tmp_path.glob("**/*.png"):
        path.unlink()
    assert cli.main(["report", str(tmp_path)]) == 0
    assert "4 claims" in capsys.readouterr().out
    lines = (tmp_path / "claims.md").read_text().splitlines()
    assert lines[0].startswith("4 claims: ") and lines[-1] == "<sub>commit c0ffee</sub>"
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert [line.count("|") for line in lines[2:-2]] == [8] * (2 + len(claims))
    assert all(
        f" {each['verdict']} | {each['why']} |" in line
        for each, line in zip(claims, lines[4:-2], strict=True)
    )
    assert cli.main(["report", str(tmp_path / "A")]) == 0  # as of a run
    assert (tmp_path / "A" / "report.html").exists() and (tmp_path / "claims.png").exists()


def test_an_empty_series_has_no_report(bench, tmp_path):
    with pytest.raises(UserError, match=r"no experiment of .* has a result yet"):
        report.main(tmp_path, False, tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["papers"], "--out results/papers"),
        (["papers", "--out", "x", "--policy", "fairq"], "takes no --policy"),
        (["papers", "--out", "x", "--set", "a=1", "--repeat", "2"], "takes no --set and no --repeat"),
        (["incast", "--out", "x", "--quick"], "--quick and --only are of `fairq run papers`"),
        (["incast", "--out", "x", "--only", "FQ1"], "--quick and --only are of `fairq run papers`"),
        (["papers", "--out", "x", "--only", "XX9"], "there is no experiment 'XX9'"),
    ],
)
def test_what_does_not_fit_is_refused(options, words, capsys):
    assert cli.main(["run", *options]) == 2
    assert words in capsys.readouterr().err


def test_an_origin_without_a_commit():
    metadata = {**STORED["metadata"], "git_commit": None, "git_changes": "", "git_dirty": True}
    assert "commit unknown+" in origin.line({**STORED, "metadata": metadata})
