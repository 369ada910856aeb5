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
from fairq_ryu.config import loader
from fairq_ryu.experiments import baselines, scenario
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.workloads.common.rows import Shown
from fairq_ryu.experiments.workloads.registry import WORKLOADS
from fairq_ryu.fabric.topology import hosts
from fairq_ryu.openflow import pipeline
from fairq_ryu.policies import base, governed_port
from tests.support.documents import ROOT, blocks, read

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configuration_examples_are_accepted(page: Path, tmp_path: Path) -> None:
    for text in blocks(page.read_text(encoding="utf-8"), "ini"):
        file = tmp_path / "example.conf"
        file.write_text(text)
        loader.load([file])


# Commands


def subparsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in main.command_line()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every `fairq ...` command of every page, with its page."""
    names = "|".join(subparsers())
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [
            line
            for block in blocks(text, "(?:sh|console)")
            for line in block.replace("\\\n", " ").splitlines()
        ]
        lines += re.findall(r"`([^`\n]+)`", text)
        for line in lines:
            if found := re.search(rf"(?:^|[\s/])fairq ((?:{names})(?=\s|$)[^|&;>#]*)", line):
                yield page.name, shlex.split(found[1])


def test_the_files_that_the_tour_names_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:[\w.]+\.\w+)?)`", read("docs/architecture.md"))
    assert len(set(named)) > 40
    # A module of a folder is named within the folder's row.
    places = [ROOT, ROOT / "fairq_ryu", *(ROOT / "fairq_ryu" / name for name in ("fabric", "experiments"))]
    assert [each for each in named if not any((place / each).exists() for place in places)] == []


def test_commands_and_options_in_the_pages_exist() -> None:
    known = subparsers()
    seen = set()
    for page, words in commands():
        seen.add(words[0])
        options = {option for action in known[words[0]]._actions for option in action.option_strings}
        for word in words[1:]:
            if word.startswith("--"):
                assert word.split("=")[0] in options, f"{page}: fairq {' '.join(words)}"
    assert seen == set(known), "a command is described nowhere"


def test_runs_in_the_pages_have_a_directory_for_the_result() -> None:
    """A block can be copied as it is; a command within a sentence may be a part of one."""
    runs = [
        line
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"), "(?:sh|console)")
        for line in block.replace("\\\n", " ").splitlines()
        if "/fairq run " in line and "--list" not in line
    ]
    assert runs and [line for line in runs if "--out" not in line] == []


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.name}: make {target}"


def test_links_and_pictures_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if re.match(r"https?://", target):
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
                slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
                assert anchor in slugs, f"{page.name}: {target}"


# Experiments


def test_scenario_examples_are_accepted(tmp_path: Path) -> None:
    examples = blocks(read("docs/experiments.md"), "toml")
    assert examples
    for text in examples:
        file = tmp_path / "example.toml"
        file.write_text(text)
        scenario.load(str(file))


def test_every_policy_has_its_page() -> None:
    for policy in {baselines.of(name).policy for name in machine.known_policies()} - {machine.BARE}:
        page = f"docs/policies/{policy}.md"
        if not (ROOT / page).exists():  # the small queue laws share one
            page = "docs/policies/peers.md"
            assert f"table settings {policy}:" in read(page)
        assert f"{base.app_of(policy)}`" in read(page)
        assert f"({page})" in read("README.md")


def test_the_schema_is_named_as_in_the_code() -> None:
    assert f"`{result.SCHEMA}`" in read("docs/experiments.md")


def test_result_tables_have_the_code_s_labels() -> None:
    """The figures are those of a run; their labels are those of the code. Remarks follow below them."""
    shown = [row for workload in WORKLOADS.values() for row in workload.table.rows]
    labels = {"queue law", "TCP"} | {f"{label} [{unit}]" if unit else label for label, unit, *_ in shown}
    for page in ("README.md", "docs/policies/fairq.md"):
        for block in blocks(read(page), "text"):
            if "droptail" in block:
                names = block.split("\n", 1)[0].split()
                lines = [line for line in block.splitlines()[1:] if line.strip()]
                table_ends = max(place for place, line in enumerate(lines) if re.search(r"\s{2,}", line))
                printed = [re.split(r"\s{2,}", line)[0] for line in lines[: table_ends + 1]]
                assert printed
                assert all(each in labels or " vs " in each for each in printed)
                for remark in lines[table_ends + 1 :]:
                    known = ("Means of ", *(f"{name}: " for name in names))
                    assert remark.startswith(known) or re.match(r"\d+ of \d+ rows; `fairq report", remark)


def test_the_table_of_the_first_screen_is_the_short_one() -> None:
    block = next(each for each in blocks(read("README.md"), "text") if "droptail" in each)
    table = WORKLOADS["incast"].table
    shown = {f"{row.label} [{row.unit}]" if row.unit else row.label: row.shown for row in table.rows}
    shown |= {f"{ratio.label} vs droptail": ratio.shown for ratio in table.ratios}
    printed = [re.split(r"\s{2,}", line)[0] for line in block.splitlines()[1:]]
    found = [label for label in printed if label in shown]
    assert [label for label in found if shown[label] is Shown.FULL] == []
    missing = {label for label in shown if shown[label] is Shown.SHORT} - set(found)
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
    incast = scenario.load("incast")
    assert f"`incast` has {incast.rounds} volleys" in read("docs/experiments.md")
