"""What the documents show works: commands, links, configuration files, scenarios, numbers in the text.

Tables and hex dumps are made of the code (``test_generated.py``).
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate.marks import pages
from fairq_ryu import controller_target
from fairq_ryu.agent import controller_connection
from fairq_ryu.agent.layout import CONSTANTS
from fairq_ryu.agent.programs import flow_sweep, program
from fairq_ryu.cli import main
from fairq_ryu.cli.commands import options, run
from fairq_ryu.config import loader
from fairq_ryu.experiments import baselines, runner, scenario, variants
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.papers import plan
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.workloads.common.rows import Row, Shown
from fairq_ryu.experiments.workloads.registry import WORKLOADS
from fairq_ryu.fabric.topology import hosts
from fairq_ryu.openflow import pipeline
from fairq_ryu.policies import base, governed_port
from tests.support.documents import ROOT, blocks, read

TEXTS = {page: page.read_text(encoding="utf-8") for page in pages()}


def shell_lines(text: str) -> list[str]:
    """The lines of the page's shell blocks; one that is continued is one line."""
    return [line for b in blocks(text, "(?:sh|console)") for line in b.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_configuration_examples_are_accepted(page: Path, tmp_path: Path) -> None:
    for text in blocks(TEXTS[page], "ini"):
        (tmp_path / "example.conf").write_text(text)
        loader.load([tmp_path / "example.conf"])


# Commands and names


def subparsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in main.command_line()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Those of a command, and of its actions."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options_of(each)


def test_commands_and_options_in_the_pages_exist() -> None:
    known, seen = subparsers(), set()
    command = re.compile(rf"(?:^|[\s/])fairq ((?:{'|'.join(known)})(?=\s|$)[^|&;>#]*)")
    for page, text in TEXTS.items():
        lines = [*shell_lines(text), *re.findall(r"`([^`\n]+)`", text)]
        for name, *words in (shlex.split(found[1]) for line in lines if (found := command.search(line))):
            seen.add(name)
            options = set(options_of(known[name]))
            used = {word.split("=")[0] for word in words if word.startswith("--")}
            assert used <= options, f"{page.name}: fairq {name} {' '.join(words)}"
    assert seen == set(known), "a command is described nowhere"


def test_runs_in_the_pages_have_a_directory_for_the_result() -> None:
    """A block can be copied as it is; a command within a sentence may be a part of one."""
    lines = [line for text in TEXTS.values() for line in shell_lines(text)]
    runs = [line for line in lines if "/fairq run " in line and "--list" not in line]
    assert runs and [line for line in runs if "--out" not in line] == []


def test_runs_in_the_pages_have_scenarios_settings_and_policies_that_exist() -> None:
    """So what stands beside a figure says of what it is."""
    runs = 0
    # The examples of writing-a-policy.md and writing-a-law.md are tested as packages of their own.
    texts = [text for page, text in TEXTS.items() if not page.name.startswith("writing-")]
    for line in (line for text in texts for line in shell_lines(text)):
        if (found := re.search(r"fairq ((?:run|sweep) [^|&;>#]*)", line)) is None:
            continue
        typed = re.sub(r"\$\w+", "1", found[1])  # a variable of the shell is a number
        args = main.command_line().parse_args(shlex.split(typed))
        if args.scenario is None or args.scenario.endswith(".toml"):
            continue  # a file of the page's own, and `--list`
        runs += 1
        if args.scenario == run.PAPERS:
            assert {each.id for each in plan.chosen(plan.load(), list(filter(None, args.only.split(","))))}
            continue
        scenario.load(args.scenario, options.overrides(args))
        runner.known_variants(variants.split(args.policy), None)
    assert runs > 50


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M))
    for page, text in TEXTS.items():
        assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets, page.name


def test_the_files_that_the_tour_names_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:[\w.]+\.\w+)?)`", read("docs/architecture.md"))
    assert len(set(named)) > 40
    # A module of a folder is named within the folder's row.
    places = [ROOT, ROOT / "fairq_ryu", *(ROOT / "fairq_ryu" / name for name in ("fabric", "experiments"))]
    assert [each for each in named if not any((place / each).exists() for place in places)] == []


def test_links_and_pictures_lead_somewhere() -> None:
    for page, whole in TEXTS.items():
        text = re.sub(r"^```.*?^```$", "", whole, flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?://)([^)]+)\)", text):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
                slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
                assert anchor in slugs, f"{page.name}: {target}"


def test_every_policy_has_its_page() -> None:
    for policy in {baselines.of(name).policy for name in machine.known_policies()} - {machine.BARE}:
        page = f"docs/policies/{policy}.md"
        if not (ROOT / page).exists():  # some queue laws share one
            (page,) = (
                path
                for path in ("docs/policies/peers.md", "docs/policies/afq.md", "docs/policies/afcd.md")
                if f"{base.app_of(policy)}`" in read(path)
            )
        assert f"{base.app_of(policy)}`" in read(page)
        assert f"({page})" in read("README.md")


# Experiments


def test_scenario_examples_are_accepted(tmp_path: Path) -> None:
    examples = blocks(read("docs/experiments.md"), "toml")
    assert examples
    for text in examples:
        (tmp_path / "example.toml").write_text(text)
        scenario.load(str(tmp_path / "example.toml"))


def label(row: Row) -> str:
    return f"{row.label} [{row.unit}]" if row.unit else row.label


def printed_tables(page: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """The heads, the labels of the rows and the remarks below of each result table that a page shows."""
    for block in blocks(read(page), "text"):
        if "droptail" in block:
            head, *lines = [line for line in block.splitlines() if line.strip()]
            end = 1 + max(place for place, line in enumerate(lines) if re.search(r"\s{2,}", line))
            yield head.split(), [re.split(r"\s{2,}", line)[0] for line in lines[:end]], lines[end:]


@pytest.mark.parametrize("page", ["README.md", "docs/policies/fairq.md"])
def test_result_tables_have_the_code_s_labels(page: str) -> None:
    """The figures are those of a run; their labels are those of the code."""
    known = {label(row) for each in WORKLOADS.values() for row in each.table.rows}
    known |= {"queue law", "TCP", "changed"}
    tables = list(printed_tables(page))
    assert tables
    for names, labels, remarks in tables:
        assert [each for each in labels if each not in known and " vs " not in each] == []
        for remark in remarks:
            begins = ("Means of ", "Of commit ", *(f"{name}: " for name in names))
            assert remark.startswith(begins) or re.match(r"\d+ of \d+ rows; `fairq report", remark)


def test_the_table_of_the_first_screen_is_the_short_one() -> None:
    _, labels, _ = next(printed_tables("README.md"))
    table = WORKLOADS["incast"].table
    shown = {label(row): row.shown for row in table.rows}
    shown |= {f"{ratio.label} vs droptail": ratio.shown for ratio in table.ratios}
    assert [each for each in labels if shown.get(each) is Shown.FULL] == []
    missing = {each for each in shown if shown[each] is Shown.SHORT} - set(labels)
    assert missing == {"dropped by the queue law"}  # the demo has none


# Numbers in the running text


def test_numbers_in_the_text_are_the_code_s() -> None:
    how, operating, channel = (read(f"docs/{n}.md") for n in ("how-it-works", "operating", "window-channel"))
    priorities = (program.WINDOW_PRIORITY, program.TURN_PRIORITY, program.QUEUE_LAW_PRIORITY)
    for number in (*priorities, program.DROP_PRIORITY):
        assert f"pref {number}" in operating
    assert f"after {governed_port.REST_AFTER_FAILURE:g} s" in how
    assert f"drains, plus {CONSTANTS['FQ_MARGIN_NS'] / 1e6:g} ms" in how
    assert f"copy of {pipeline.COPY_BYTES} bytes" in how
    assert f"silent for {controller_connection.ECHO_INTERVAL:g} s" in channel
    assert f"after {controller_connection.SILENCE_TIMEOUT:g} s" in channel
    assert f"port {controller_target.DEFAULT_PORT}" in channel
    half_open = f"after {flow_sweep.HALF_OPEN_NS / 1e9:g} s"
    assert f"leaves the flow map {half_open}" in " ".join(channel.split())
    assert f"leaves the map {half_open}" in operating
    for page in (how, operating):
        assert f"at most {hosts.HostTable().capacity} hosts" in page
    experiments = read("docs/experiments.md")
    assert f"`incast` has {scenario.load('incast').rounds} volleys" in experiments
    assert f"`{result.SCHEMA}`" in experiments
