"""Sweeps without a network: what is run, kept, continued, refused and shown."""

import copy
import html
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from fairq_ryu.cli import main as cli
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.sweep import pictures, store, sweep, table
from fairq_ryu.experiments.sweep import report as sweep_report
from fairq_ryu.experiments.testbed import Interrupted

STORED = json.loads((Path(__file__).parents[3] / "data/results/incast.json").read_text())
POLICIES = ["droptail", "fairq[alpha=0.5]"]


def figures(chosen, variant):
    """Those of a stored result, changed by what they are of."""
    found = copy.deepcopy(STORED["policies"][POLICIES.index(variant.name)])
    found["policy"] = variant.name
    found["mice"]["fct_ms"]["p99"] = 100.0 * chosen.senders + 10 * chosen.seed
    found["mice"]["goodput_mbit"] = 20.0 - chosen.senders
    found["mice"]["timeout_share"] = 0.25 if variant.base == "droptail" else 0.0
    return found


@pytest.fixture
def bench(monkeypatch):
    """A machine on which runs take no time; what is run is listed, and ``stop`` says what a run does before
    it ends.
    """

    class Bench:
        made: list[tuple[int, str, int]]
        commit = "c0ffee"

        def __init__(self):
            self.made = []
            self.stop = lambda *_run: None

        def run_policy(self, chosen, variant, logs, config_file, interrupts, report):
            run = (chosen.senders, variant.name, chosen.seed)
            outcome = self.stop(*run)
            if outcome:
                return {"policy": variant.name, "failed": outcome}
            self.made.append(run)
            report("measuring", 0.5)
            return figures(chosen, variant)

        def metadata(self, name, overrides, variants, config_file, files):
            own = {each.name: {each.section: dict(each.settings)} for each in variants if each.settings}
            about = {"scenario_name": name, "git_commit": self.commit, "overrides": overrides}
            return {**STORED["metadata"], **about, "variants": own}

    made = Bench()
    monkeypatch.setattr(sweep.runner, "run_policy", made.run_policy)
    monkeypatch.setattr(
        sweep.runner, "check", lambda _chosen, _variants, out, _file: out.mkdir(exist_ok=True)
    )
    monkeypatch.setattr(machine, "metadata", made.metadata)
    return made


def run(out, axes=("senders=2,4",), policies=POLICIES, repeat=2, **more):
    return sweep.main("incast", list(axes), policies, out, repeat=repeat, **more)


def test_every_point_has_the_result_of_a_run(bench, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(out) == 0
    assert len(bench.made) == len(set(bench.made)) == 2 * 2 * 2
    assert {seed for _senders, _policy, seed in bench.made} == {1, 2}  # one for each repetition
    whole = result.load(out / "senders=4")
    assert whole["scenario"]["senders"] == 4 and whole["scenario"]["floor"] is False
    assert (whole["repeat"], whole["metadata"]["seeds"]) == (2, [1, 2])
    assert [each["policy"] for each in whole["policies"]] == POLICIES
    assert [each["order"] for each in whole["repetitions"]] == [POLICIES[::-1], POLICIES]
    assert whole["policies"][0]["mice"]["fct_ms"]["p99"] == pytest.approx(415)
    printed = capsys.readouterr()
    assert "1 of 8: senders = 2, droptail, 1 of 2; time left not yet known" in printed.err
    assert re.search(r"\n  senders = 4 +415.0 ± 63.5 +415.0 ± 63.5\n", printed.out)
    assert "Means of 2 repetitions" in printed.out


def test_the_points_at_which_a_rival_wins_are_in_the_first_lines(bench, tmp_path, monkeypatch):
    def measured(chosen, variant, *_rest):
        found = figures(chosen, variant)
        found["mice"]["unfinished"] = 0
        found["mice"]["fct_ms"]["mean"] = 50.0
        if (chosen.senders, variant.base) == (4, "droptail"):
            found["mice"]["fct_ms"]["p99"] = 5.0 + chosen.seed
        return found

    monkeypatch.setattr(sweep.runner, "run_policy", measured)
    assert run(tmp_path) == 0
    found = store.Store.load(tmp_path)
    first, second = list(table.remarks(found.points, found.results()))[:2]
    assert first.startswith(
        "senders = 4: Rivals win: mice FCT p99 is lower than that of fairq[alpha=0.5], our best, under"
        " droptail ("
    )
    assert second.startswith("Means of 2 repetitions")


def test_a_killed_sweep_continues_with_what_is_missing(bench, tmp_path):
    def killed(senders, policy, _seed):
        if len(bench.made) == 3:
            raise KeyboardInterrupt  # as if it were SIGKILL: nothing is done about it

    bench.stop = killed
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    first, bench.made = bench.made, []
    assert not (tmp_path / "senders=4" / "result.json").exists()
    assert result.load(tmp_path / "senders=2")["repeat"] == 1
    bench.stop = lambda *_run: None
    assert run(tmp_path) == 0
    assert len(bench.made) == 8 - 3 and not set(bench.made) & set(first)
    assert run(tmp_path) == 0 and len(bench.made) == 5  # nothing is left
    assert run(tmp_path, repeat=3) == 0 and len(bench.made) == 5 + 4
    assert result.load(tmp_path / "senders=4")["repeat"] == 3


def test_each_point_records_the_settings_of_its_controller(bench, tmp_path):
    assert run(tmp_path, ("syn=copy,hold",), repeat=1) == 0
    found = [result.load(tmp_path / f"syn={syn}")["metadata"]["settings"] for syn in ("copy", "hold")]
    assert [each["fairq_ryu"]["syn"] for each in found] == ["copy", "hold"]


def test_what_differs_between_points_is_said_of_none(bench, tmp_path):
    assert run(tmp_path, ("hosts=modern,period", "syn=copy,hold"), repeat=1) == 0
    found = store.Store.load(tmp_path)
    assert not found.description.scenario.keys() & {"hosts", "syn", "cc", "rto_min_ms"}
    assert {"senders", "rate_mbit", "title"} < found.description.scenario.keys()
    settings = found.description.metadata["settings"]["fairq_ryu"]
    assert "syn" not in settings and "way" in settings
    assert sweep_report.main(found, tmp_path) == 0
    page = (tmp_path / "report.html").read_text()
    assert "<td>cc</td>" not in page and "<td>senders</td>" in page


@pytest.mark.parametrize("change", [{"policy": "las"}, {"failed": "no room"}])
def test_a_run_of_another_policy_or_a_failed_one_is_refused(bench, tmp_path, change):
    assert run(tmp_path) == 0
    path = tmp_path / "senders=2" / "runs" / "1.1.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "figures": {**kept["figures"], **change}}))
    with pytest.raises(UserError, match=r"1\.1\.json is damaged"):
        run(tmp_path)


def test_runs_without_a_description_are_not_continued(bench, tmp_path):
    assert run(tmp_path) == 0
    (tmp_path / store.FILE_NAME).unlink()
    with pytest.raises(UserError, match=r"has runs and no sweep\.json"):
        run(tmp_path)


def test_an_interrupted_sweep_says_how_to_continue(bench, tmp_path, capsys):
    def interrupted(*_run):
        raise Interrupted

    bench.stop = interrupted
    assert run(tmp_path) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_a_failed_run_is_told_and_tried_again(bench, tmp_path, capsys):
    bench.stop = lambda senders, policy, seed: "no room" if (senders, policy) == (4, "droptail") else None
    assert run(tmp_path, repeat=1) == 1
    printed = capsys.readouterr().out
    assert re.search(r"\n  senders = 4 +failed +410.0\n", printed)
    assert "senders = 4: droptail failed: no room" in printed
    bench.stop, bench.made = (lambda *_run: None), []
    assert run(tmp_path, repeat=1) == 0
    assert bench.made == [(4, "droptail", 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"overrides": {"rounds": "5"}}, "rounds: 8 and 5 now"),
        (
            {"policies": ["droptail", "fairq[alpha=0.4]"]},
            "policies: [droptail, fairq[alpha=0.5]] and [droptail",
        ),
        ({"axes": ["senders=2,4,8"]}, "[axes] senders: [2, 4] and [2, 4, 8] now"),
        ({"commit": "decaf"}, "git_commit: c0ffee and decaf now"),
    ],
)
def test_another_sweep_in_the_same_place_is_refused(bench, tmp_path, change, words):
    run(tmp_path, repeat=1, overrides={"rounds": "8"})
    bench.commit = change.pop("commit", bench.commit)
    before = (tmp_path / store.FILE_NAME).read_text()
    with pytest.raises(UserError) as caught:
        run(tmp_path, **{"overrides": {"rounds": "8"}, **change}, repeat=1)
    assert words in str(caught.value) and str(tmp_path) in str(caught.value)
    assert (tmp_path / store.FILE_NAME).read_text() == before and len(bench.made) == 4


def test_faults_of_all_points_are_told_before_anything_runs(bench, tmp_path):
    with pytest.raises(UserError) as caught:
        run(tmp_path / "out", axes=["senders=200..300/50", "rounds=0,1"])
    lines = str(caught.value).splitlines()
    assert (
        len(lines) == 2 and "senders is 300" in lines[0] + lines[1] and "rounds is 0" in lines[0] + lines[1]
    )
    for more, words in (({"senders": "3"}, "--set gives it one value"), ({"floor": "yes"}, "volleys alone")):
        with pytest.raises(UserError, match=words):
            run(tmp_path / "out", overrides=more)
    assert not (tmp_path / "out").exists() and bench.made == []


def test_what_varies_need_not_be_in_the_file(bench, tmp_path):
    own = tmp_path / "own.toml"
    text = (scenario.STORED / "incast.toml").read_text()
    own.write_text("".join(line for line in text.splitlines(keepends=True) if "senders" not in line))
    assert sweep.main(str(own), ["senders=2,4"], ["droptail"], tmp_path / "out") == 0
    assert [senders for senders, _policy, _seed in bench.made] == [2, 4]


def test_the_directory_of_a_run_is_not_taken(bench, tmp_path):
    result.save(STORED, tmp_path)
    with pytest.raises(UserError, match="the result of a run"):
        run(tmp_path)


def test_a_damaged_run_is_named(bench, tmp_path):
    run(tmp_path, repeat=1)
    (tmp_path / "senders=2" / "runs" / "1.1.json").write_text("{")
    with pytest.raises(UserError, match=r"1\.1\.json is damaged"):
        run(tmp_path, repeat=1)


def test_the_default_directory_names_the_scenario_and_what_varies():
    assert sweep.default_directory("own/my.toml", ["senders=1,2", "cc=reno"]) == Path(
        "results/sweep-my-senders-cc"
    )


def test_the_report_has_a_picture_for_each_value_of_a_second_axis(bench, tmp_path, capsys):
    run(tmp_path, axes=["senders=2..8", "cc=cubic,reno"])
    found = store.Store.load(tmp_path)
    assert sweep_report.main(found, tmp_path) == 0
    drawn = {each.name for each in tmp_path.iterdir() if each.is_file()}
    assert drawn == {"sweep.json", "report.html", "sweep.png", "sweep.pdf", "sweep-2.png", "sweep-2.pdf"}
    assert drawn - {"sweep.json"} <= set(sweep_report.written(found))
    page = (tmp_path / "report.html").read_text()
    assert "By senders, with cc = cubic" in page and "By senders, with cc = reno" in page
    assert "mice with RTO timeouts, share" in page and "Means of 2 repetitions" in page
    first = (tmp_path / "sweep.png").read_bytes()
    sweep_report.main(found, tmp_path)
    assert (tmp_path / "sweep.png").read_bytes() == first


def test_table_page_and_pictures_say_what_they_are_of(bench, tmp_path, capsys):
    run(tmp_path)
    assert capsys.readouterr().out.endswith("\nOf commit c0ffee+.\n")
    found = store.Store.load(tmp_path)
    sweep_report.main(found, tmp_path)
    assert capsys.readouterr().out.endswith("\nOf commit c0ffee+.\n")
    about = Image.open(tmp_path / "sweep.png").info["Description"]
    assert "; 2 repetitions; " in about and " --repeat 2" in about
    page = (tmp_path / "report.html").read_text()
    assert html.unescape(page.partition("<table>")[0]).endswith(f"</h1>\n<p>{about}</p>\n")


def test_a_picture_has_the_drawn_headlines_and_every_policy(bench, tmp_path):
    run(tmp_path, axes=["senders=2..8"])
    found = store.Store.load(tmp_path)
    (drawn,) = pictures.pictures(found.points, found.results())
    panels = drawn.figure.axes
    assert [panel.get_ylabel() for panel in panels] == [
        "goodput of volleys\n[Mbit/s]", "mice FCT p99\n[ms]", "mice with RTO timeouts\n[%]",
    ]  # fmt: skip
    assert [panel.get_yscale() for panel in panels] == ["linear", "log", "linear"]
    assert panels[-1].get_xscale() == "log" and panels[-1].get_xlabel() == "senders"
    p99 = panels[1].containers[0].lines[0]
    assert list(p99.get_xdata()) == [2, 4, 8] and list(p99.get_ydata()) == pytest.approx([215, 415, 815])
    assert [len(panel.containers) for panel in panels] == [2, 2, 2]
    shares = [list(each.lines[0].get_ydata()) for each in panels[2].containers]
    assert shares == [[25, 25, 25], [0, 0, 0]]


def test_a_sweep_has_no_records_of_flows(bench, tmp_path, capsys):
    run(tmp_path, repeat=1)
    before = sorted(tmp_path.iterdir())
    assert cli.main(["report", str(tmp_path), "--flows"]) == 2
    assert "is a sweep, and --flows is for a run or a series" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_a_sweep_and_a_series_have_no_full_table(bench, tmp_path, capsys):
    run(tmp_path, repeat=1)
    other = tmp_path / "series"
    other.mkdir()
    (other / "papers.json").write_text('{"schema": "fairq-papers/1", "quick": true}')
    for directory in (tmp_path, other):
        assert cli.main(["report", str(directory), "--full"]) == 2
        assert f"{directory} is a sweep or a series, and --full is for a run" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path / "senders=2"), "--full"]) == 0


def test_a_sweep_that_has_just_begun_has_no_report(bench, tmp_path):
    run(tmp_path)
    found = store.Store.load(tmp_path)
    for place in range(2):
        (found.point_directory(place) / "result.json").unlink()
    with pytest.raises(UserError, match=r"no point of .* has a result yet"):
        sweep_report.main(found, tmp_path)
    out = io.StringIO()
    run(tmp_path, repeat=2)  # what was measured is still there
    (found.point_directory(1) / "result.json").unlink()
    table.show(found, found.results(), Console(file=out))
    assert "1 of 2 points have no result yet." in out.getvalue()
    assert len(bench.made) == 8
