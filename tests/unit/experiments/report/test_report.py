import html
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from fairq_ryu.cli import main
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.report import origin, report, result, table
from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.deadlines import figures as deadlines
from fairq_ryu.experiments.workloads.fanin import figures as fanin
from fairq_ryu.experiments.workloads.incast import pictures
from tests.support.results import once

STORED = Path(__file__).parents[3] / "data/results/incast.json"


@pytest.fixture
def directory(tmp_path):
    shutil.copy(STORED, tmp_path / "result.json")
    return tmp_path


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A directory with the report of the result, drawn once: nothing is changed in it."""
    made = tmp_path_factory.mktemp("drawn")
    shutil.copy(STORED, made / "result.json")
    assert report.main(made) == 0
    return made


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures are created without drawing, which takes the longest: for tests of the rest of a report."""

    def save(self, target, **_options):
        if hasattr(target, "write"):
            target.write(b"<svg></svg>" if isinstance(target, io.BytesIO) else "<svg></svg>")
        else:
            Path(target).touch()

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


def rewrite(directory, change):
    whole = result.load(directory)
    change(whole)
    result.save(whole, directory)


def test_everything_is_drawn_from_the_result_alone(drawn):
    made = {each.name for each in drawn.iterdir()} - {"result.json"}
    files = {
        f"{name}.{kind}" for name in ("fct_cdf", "fct_p99", "queue", "goodput") for kind in ("png", "pdf")
    }
    assert made == files | {"report.html"}
    for name in files:
        start = (drawn / name).read_bytes()[:4]
        assert start == (b"\x89PNG" if name.endswith("png") else b"%PDF")


def test_the_page_needs_nothing_else(drawn):
    page = (drawn / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert len(sources) == 4
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "http" not in page.replace("http-equiv", "")
    for words in ("droptail", "fairq", "mice FCT p99 [ms]", "524288", "buffer_bytes", "kernel"):
        assert words in page


def test_the_same_result_gives_the_same_files(directory, drawn, capsys):
    report.main(directory)
    first, second = (
        {each.name: each.read_bytes() for each in where.iterdir()} for where in (drawn, directory)
    )
    assert first == second
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0].endswith("report.html")
    assert "mice FCT p99" in printed.out and "mice FCT p95" not in printed.out


def test_text_from_the_result_is_escaped(directory, undrawn):
    def change(whole):
        whole["scenario"]["title"] = "<script>alert(1)</script>"
        whole["policies"].append({"policy": "iqm", "failed": "the <agent> ended"})

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    assert "<script>" not in page
    assert "iqm failed: the &lt;agent&gt; ended" in page


@pytest.mark.parametrize(
    ("part", "missing"),
    [("mice", {"fct_cdf", "fct_p99"}), ("elephants", {"goodput"})],
)
def test_figures_that_were_not_measured_are_omitted(directory, undrawn, part, missing):
    def change(whole):
        for policy in whole["policies"]:
            policy[part] = None

    rewrite(directory, change)
    report.main(directory)
    drawn = {each.stem for each in directory.glob("*.png")}
    assert drawn == {"fct_cdf", "fct_p99", "queue", "goodput"} - missing


def test_disturbed_rounds_are_shown(directory, undrawn):
    def change(whole):
        droptail, fairq = whole["policies"]
        droptail["rounds"] = {"wanted": 2, "made": 3, "disturbed": 1, "counted_disturbed": 0}
        fairq["rounds"] = {"wanted": 2, "made": 4, "disturbed": 3, "counted_disturbed": 1}
        droptail["mice_left_out"], fairq["mice_left_out"] = droptail["mice"], None

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    remark = "; rounds that the host disturbed are {}: droptail 1 of 3, fairq 3 of 4"
    assert [remark.format("left out") + " (1 counted, as too few others)" in each for each in captions] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [each.endswith(remark.format("included")) for each in captions] == [False, False, True, True]
    shown = {line[0]: line[1:] for line in table.rows(result.load(directory), full=True)}
    assert shown["rounds made"] == ["3", "4"]
    assert shown["rounds disturbed (host took CPU)"] == ["1", "3"]
    assert shown["disturbed rounds kept"] == ["0", "1"]
    assert shown["left out: mice FCT p99 [ms]"] == [shown["mice FCT p99 [ms]"][0], "-"]
    out = io.StringIO()
    table.show(result.load(directory), False, Console(file=out))
    assert "fairq: the host took CPU away in 1 of the 2 rounds counted" in out.getvalue()
    assert "droptail: the host" not in out.getvalue()


def test_means_of_disturbed_rounds_are_readable(directory, undrawn):
    """Of several repetitions, such a number is a mean."""

    def change(whole):
        for policy in whole["policies"]:
            policy["rounds"] = {"wanted": 3.0, "made": 4.0, "disturbed": 5 / 3, "counted_disturbed": 2 / 3}

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    assert "droptail 1.7 of 4 (0.7 counted, as too few others), fairq 1.7 of 4 (0.7 counted" in page
    out = io.StringIO()
    table.show(result.load(directory), False, Console(file=out, width=200))
    assert "fairq: the host took CPU away in 0.7 of the 3 rounds counted" in out.getvalue()


@pytest.mark.parametrize("rounds", [{"wanted": 2, "made": 2, "disturbed": 0, "counted_disturbed": 0}, None])
def test_without_disturbed_rounds_there_is_no_such_remark(directory, undrawn, rounds):
    def change(whole):
        for policy in whole["policies"]:
            policy["rounds"] = rounds

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    assert "that the host disturbed" not in page
    assert "left out" not in page
    assert ("disturbed rounds kept" in page) == (rounds is not None)


def test_loaded_congestion_controls_are_named_below_the_table(directory):
    whole = result.load(directory)
    ran = {"cubic": "cubic, of the kernel", "dctcp": "fairq_dctcp, loaded for this run"}
    whole["policies"][1]["tcp"] = ran
    told = [each for each in table.remarks(whole) if "hosts with" in each]
    assert told == ["fairq: hosts with dctcp ran fairq_dctcp, loaded for this run"]


def test_windows_reduced_without_the_congestion_control_are_told_below_the_table(directory):
    whole = result.load(directory)
    whole["policies"][0]["tcp_left_out"] = {"dctcp": 0}
    whole["policies"][1]["tcp_left_out"] = {"dctcp": 3, "hstcp": 0}
    told = [each for each in table.remarks(whole) if "without asking" in each]
    assert len(told) == 1 and told[0].startswith(
        "fairq: this kernel has reduced 3 windows without asking dctcp:"
    )


def test_a_damaged_result_is_one_clear_line(directory, undrawn):
    rewrite(directory, lambda whole: whole["policies"][0].pop("queue"))
    with pytest.raises(UserError) as caught:
        report.main(directory)
    assert "is damaged" in caught.value.message
    with pytest.raises(UserError, match="there is no"):
        report.main(directory / "elsewhere")


SHORT = [
    "mice FCT p50 [ms]",
    "mice FCT p99 [ms]",
    "mice FCT max [ms]",
    "mice RTO timeouts",
    "elephants goodput [Mbit/s]",
    "elephants RTO timeouts",
    "drops at the bottleneck",
    "queue mean [bytes]",
    "switch's thread, of one CPU [%]",
    "switch's thread during volleys [%]",
    "FCT p99, times lower vs droptail",
]


def labels(whole, full):
    return [line[0] for part in table.sections(whole, full) for line in part]


def printed(whole, full):
    out = io.StringIO()
    table.show(whole, full, Console(file=out))
    return out.getvalue().splitlines()


def test_the_short_table_has_what_matters_and_names_the_way_to_the_rest():
    whole = json.loads(STORED.read_text())
    short, full = printed(whole, False), printed(whole, True)
    assert labels(whole, False) == SHORT
    rows = labels(whole, True)
    for lines, listed in ((short, SHORT), (full, rows)):
        assert [re.split(r"\s{2,}", line)[0] for line in lines[1 : 1 + len(listed)]] == listed
        assert lines[1 + len(listed)].startswith("Rivals win: mice FCT mean")
        assert lines[2 + len(listed)].startswith("After FairQ, experiment 3")
    assert short[-1] == full[-1] == f"Of commit {origin.commit(whole['metadata'])}."
    assert short[-2].startswith(f"{len(SHORT)} of {len(rows)} rows; `fairq report DIR --full` prints all")
    assert not any("--full" in line for line in full)


def test_what_should_not_happen_is_in_the_short_table_when_it_does():
    whole = json.loads(STORED.read_text())
    for policy in whole["policies"]:
        policy["capture"] = {"acks": 100, "beyond": 0, "bad_checksums": 0, "missed": 0}
    assert labels(whole, False) == SHORT
    whole["policies"][0]["mice"]["unfinished"] = 1
    whole["policies"][1]["capture"]["bad_checksums"] = 2
    assert set(labels(whole, False)) - set(SHORT) == {"mice unfinished", "captured: wrong TCP checksums"}


def test_the_short_table_names_what_differs_beside_the_policy():
    whole = json.loads(STORED.read_text())
    whole["policies"][1]["tcp"] = {"dctcp": "dctcp, of the kernel"}
    assert labels(whole, False) == ["TCP", *SHORT]
    assert labels(whole, True)[:2] == ["queue law", "TCP"]


def test_the_page_has_the_short_table_and_below_it_all_rows(drawn):
    page = (drawn / "report.html").read_text()
    first, second = re.findall(r"<table>(.*?)</table>", page, flags=re.S)[:2]
    whole = json.loads(STORED.read_text())
    for text, full in ((first, False), (second, True)):
        assert re.findall(r"<tr><td>(.*?)</td>", html.unescape(text)) == labels(whole, full)
    assert page.index("<details>") < page.index("mice FCT p95")
    assert f"<summary>All {len(labels(whole, True))} rows</summary>" in page


def test_the_command_prints_the_full_table_when_asked_to(directory, undrawn, capsys):
    assert main.main(["report", str(directory), "--full"]) == 0
    assert "mice FCT p95" in capsys.readouterr().out


def test_the_table_on_a_pipe_is_plain_columns():
    out = io.StringIO()
    table.show(json.loads(STORED.read_text()), False, Console(file=out))
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["droptail", "fairq"]
    assert any(line.startswith("mice FCT p99 [ms]") for line in lines)
    remark = next(place for place, line in enumerate(lines) if line.startswith("Rivals win"))
    assert len({len(line) for line in lines[:remark] if line.strip()}) == 1
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("FairQ, figure 5", ["After FairQ, figure 5; k = 5.", "What it found: FCT is shorter"]),
        ("ours, after FairQ", ["Ours, after FairQ; k = 5.", "Expected: FCT is shorter"]),
        ("ours", ["Ours; k = 5.", "Expected: FCT is shorter"]),
    ],
)
def test_what_a_source_found_is_not_what_we_expect(source, words):
    whole = json.loads(STORED.read_text())
    whole["scenario"] |= {"source": source, "scale": 5.0, "claim": "FCT is shorter"}
    told = [each for each in table.remarks(whole) if "; k = " in each or "FCT is shorter" in each]
    assert told == words


@pytest.mark.parametrize("width", [120, 50])
@pytest.mark.parametrize("full", [False, True])
def test_the_table_on_a_terminal_has_the_same_figures(full, width):
    """On a narrow one there are several tables, each with the labels of the rows."""
    out = io.StringIO()
    whole = json.loads(STORED.read_text())
    table.show(whole, full, Console(file=out, force_terminal=True, width=width))
    assert (out.getvalue().count("mice FCT p99 [ms]") > 1) == (width == 50)
    for line in [*table.rows(whole, full), *table.ratio_rows(whole, full)]:
        for text in line:
            assert text in out.getvalue()


MEASURED = {**json.loads(STORED.read_text())["policies"][0], "mice": None, "rounds": None, "elephants": None}
MEASURED["queue"] |= {"rounds": None, "alone": None}


def outcome(ms, deadline):
    return Outcome(Flow(0, 0, 1_600_000, 1, deadline), ms, 1, None, 0, 0)


def with_deadlines(name, missed):
    run = {
        "flows": [deadlines.flow_figures(outcome(500 if missed else 100, 0.3))],
        "endless": [{"goodput_mbit": 50.0, "longest_gap_ms": 9.0}],
    }
    return {**MEASURED, "policy": name, "deadlines": deadlines.deadlines_figures([run, run], 2)}


def with_fanin(name, p50s):
    sweep = [
        {"n": n, "qdisc_drops": 0, "queue": None, **fanin.rounds_figures([[outcome(p50, 0.2)]], 0, 1)}
        for n, p50 in zip((1, 20), p50s, strict=True)
    ]
    return {**MEASURED, "policy": name, "fanin": fanin.fanin_figures(sweep, 0)}


def assembled(name, policies):
    """A result of a stored scenario."""
    metadata = json.loads(STORED.read_text())["metadata"]
    return result.assemble(scenario.load(name).settings, metadata, once(policies))


def all_rows(directory):
    """The labels of both tables, with the texts of their policies."""
    whole = result.load(directory)
    return {line[0]: line[1:] for part in table.sections(whole, full=True) for line in part}


def test_flows_with_deadlines_have_rows_and_pictures_of_their_own(tmp_path):
    policies = [with_deadlines("droptail", True), with_deadlines("sed", False)]
    result.save(assembled("deadlines", policies), tmp_path)
    report.main(tmp_path)
    assert {each.stem for each in tmp_path.glob("*.png")} == {"completion", "silence"}
    rows = all_rows(tmp_path)
    assert rows["deadlines missed"] == ["2", "0"]
    assert rows["1.6 MB in 0.3 s: mean [ms]"] == ["500", "100"]
    assert rows["deadlines missed vs droptail"] == ["-", "0.0%"]


def test_a_fan_in_has_rows_and_pictures_of_its_own(tmp_path):
    policies = [with_fanin("droptail", (100, 400)), with_fanin("sed", (50, 100))]
    result.save(assembled("rounds", policies), tmp_path)
    report.main(tmp_path)
    assert {each.stem for each in tmp_path.glob("*.png")} == {
        "missed", "last_byte", "fanin_goodput", "fanin_timeouts",
    }  # fmt: skip
    rows = all_rows(tmp_path)
    assert rows["n = 20: last byte p50 [ms]"] == ["400.0", "100.0"]
    assert rows["n = 20: deadlines missed"] == ["1", "0"]
    assert rows["last byte p50, times sooner, worst n vs droptail"] == ["-", "2.0"]


def test_a_failed_policy_does_not_affect_the_rows_of_others(tmp_path):
    failed = {"policy": "sed", "failed": "no"}
    whole = assembled("rounds", [failed, with_fanin("droptail", (100, 400))])
    assert ["n = 1: flows", "-", "1"] in table.rows(whole, full=True)


def test_a_result_of_an_unknown_workload_is_one_clear_line(directory, undrawn):
    rewrite(directory, lambda whole: whole["scenario"].update(traffic="rain"))
    with pytest.raises(UserError, match="of traffic 'rain', which this version does not know"):
        report.main(directory)


def test_elephants_afterwards_are_drawn(directory, undrawn):
    def change(whole):
        for policy in whole["policies"]:
            policy["elephants"] |= {"after_sum_mbit": 180.0, "after_share": 0.95}

    rewrite(directory, change)
    report.main(directory)
    assert (directory / "phases.png").exists()
    shown = {line[0]: line[1:] for line in table.rows(result.load(directory), full=True)}
    assert shown["afterwards / alone: goodput"] == ["95.0%", "95.0%"]


def test_the_report_can_be_written_elsewhere(directory, tmp_path, undrawn):
    out = tmp_path / "new" / "place"
    assert report.main(directory, out) == 0
    assert {each.name for each in out.iterdir()} <= set(report.WRITTEN)
    assert not (directory / "report.html").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write to"):
        report.main(directory, tmp_path / "file")


def test_the_page_shows_settings_as_a_table_and_explains_its_terms(directory, undrawn):
    def change(whole):
        settings = {"fairq-paper": {"alpha": 0.25, "slow_start": True}, "sed": {"missed": ""}}
        whole["metadata"]["settings"] = settings
        whole["metadata"]["overrides"] = {"rounds": "2", "cc": "reno"}
        whole["scenario"]["flows"] = [1, 5]

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    assert "{" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    for cells in (
        ("[fairq-paper]", "alpha", "0.25"),
        ("[fairq-paper]", "slow_start", "yes"),
        ("[sed]", "missed", "-"),
        ("overrides", "rounds = 2, cc = reno"),
        ("flows", "1, 5"),
    ):
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    terms = re.findall(r"<dt>(.*?)</dt>", page)
    assert {"mouse, mice", "elephant", "alone", "Jain&#x27;s index"} <= set(terms)
    assert "n" not in terms  # this result has no fan-in


def test_an_unsound_policy_is_marked_on_the_page(directory, undrawn):
    rewrite(directory, lambda whole: whole["policies"][1].update(unsound="the policy failed once"))
    report.main(directory)
    assert "fairq: the policy failed once; these figures" in (directory / "report.html").read_text()


def test_the_tail_is_dots_on_its_logarithmic_axis(directory):
    whole = result.load(directory)
    (axes,) = pictures.P99.figure(whole["policies"], whole["scenario"]).axes
    assert axes.get_xscale() == "log" and not axes.patches
    assert [line.get_xdata()[0] for line in axes.lines] == [
        each["mice"]["fct_ms"]["p99"] for each in whole["policies"]
    ]


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((59.4, 59.9), None),
        ((60.0, 20.0), "used 60 % of a CPU (60 % or more)"),
        ((12.0, 68.0), "used 68 % of a CPU during volleys (60 % or more)"),
        ((70.0, 80.0), "used 70 % of a CPU (60 % or more)"),
        ((None, None), None),
    ],
)
def test_a_table_says_that_the_machine_was_measured_also_when_pauses_hide_it(directory, shares, told):
    whole = result.load(directory)
    for policy in whole["policies"]:
        policy["cpu"] = dict(
            zip(("switch_thread_percent", "switch_thread_volleys_percent"), shares, strict=True)
        )
    found = [each for each in table.remarks(whole) if "this measured the machine" in each]
    assert len(found) == (len(whole["policies"]) if told else 0)
    assert all(told in each for each in found)
