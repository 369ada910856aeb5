"""The manual pages have every command, option, setting and unit, and are valid roff."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from fairq_ryu.cli.main import command_line
from fairq_ryu.config import schema
from packages import contents, manpages

UNITS = {
    name: (Path(contents.__file__).parent / "data" / name).read_text() for name in contents.UNITS.values()
}
PAGES = manpages.pages(command_line(), UNITS)
(COMMANDS,) = (each for each in command_line()._actions if each.dest == "command")


def readable(page):
    """A page as people read it, as far as words are concerned."""
    text = PAGES[page].replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`").replace("\\e", "\\")
    return re.sub(r"^\.(B|SH|TP|nf|fi|PP)\b ?", "", text, flags=re.MULTILINE)


def test_there_is_a_page_for_everything():
    wanted = {f"fairq-{name}.1" for name in COMMANDS.choices}
    assert set(PAGES) == wanted | {
        "fairq.1",
        "fairq.conf.5",
        "fairq-agent@.service.8",
        "fairq-controller.service.8",
    }


@pytest.mark.parametrize("name", COMMANDS.choices)
def test_the_page_of_a_command_has_its_options_and_their_help(name):
    page = " ".join(readable(f"fairq-{name}.1").split())
    assert f"fairq {name}" in page and f"fairq-{name}(1)" in readable("fairq.1")
    command = COMMANDS.choices[name]
    within = [each for each in command._actions if isinstance(each, argparse._SubParsersAction)]
    parsers = [command, *(parser for each in within for parser in each.choices.values())]
    for action in (action for parser in parsers for action in parser._actions):
        for option in action.option_strings or action.choices or [action.metavar or action.dest]:
            assert option in page or option.upper() in page
        words = " ".join((action.help or "").partition("%")[0].split())
        assert words in page


def test_every_setting_is_explained():
    page = " ".join(readable("fairq.conf.5").split())
    for section, settings in schema.sections().items():
        assert f"SECTION [{section}]" in page
        for setting in settings.values():
            assert f"{setting.name} {setting.help}" in page


@pytest.mark.parametrize("unit", UNITS)
def test_the_page_of_a_unit_says_what_it_runs_and_may_do(unit):
    page = readable(f"{unit}.8")
    (start,) = re.findall(r"^ExecStart=(.*)$", UNITS[unit], re.MULTILINE)
    assert start.replace("%i", "BRIDGE") in page
    for capability in re.findall(r"CAP_\w+", UNITS[unit]):
        assert capability in page


@pytest.mark.parametrize("page", PAGES)
def test_no_line_of_text_is_taken_for_a_request(page):
    """A line that begins with a dot is one of the requests that the generator writes."""
    lines = PAGES[page].splitlines()
    assert lines[0].startswith(".TH ") and lines[1] == ".SH NAME"
    for line in lines[1:]:
        assert not line.startswith("'")
        assert not line.startswith(".") or re.match(r"\.(SH|TP|B|nf|fi|PP)( |$)", line)


def test_text_is_shown_as_it_is():
    assert manpages.escaped(".x -y 'z' \\n") == "\\&.x \\-y \\(aqz\\(aq \\en"
