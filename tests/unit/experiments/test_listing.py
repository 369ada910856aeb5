import io

import pytest
from rich.console import Console

from fairq_ryu.cli import main
from fairq_ryu.experiments import listing, scenario
from fairq_ryu.experiments.measure import machine


def test_every_scenario_and_policy_is_listed():
    out = io.StringIO()
    listing.show(Console(file=out, width=160))
    lines = [line.split() for line in out.getvalue().splitlines() if line.strip()]
    names = [line[0] for line in lines]
    assert names == ["scenario", *scenario.names(), "policy", *machine.known_policies()]
    incast = lines[names.index("incast")]
    assert incast[1:3] == ["incast", "incast"]
    assert " ".join(incast[3:]) == scenario.load("incast").title


def test_every_policy_has_a_description():
    descriptions = dict(listing.policies())
    assert all(len(words) > 20 for words in descriptions.values()), descriptions
    assert descriptions["droptail"].startswith("no windows at all")
    assert descriptions["fairq"].startswith("equal windows")


def test_policies_of_one_module_have_descriptions_of_their_own():
    described = dict(listing.policies())
    assert len({described[name] for name in ("red", "codel", "sfb", "mark")}) == 4


def test_a_policy_that_cannot_be_loaded_is_listed_all_the_same(monkeypatch):
    entry = listing.importlib.metadata.EntryPoint("lost", "no_such_module:Lost", "fairq_ryu.policies")
    monkeypatch.setattr(listing.importlib.metadata, "entry_points", lambda group: [entry])
    assert listing._about("lost").startswith("cannot be loaded: ")


def test_the_command(capsys):
    assert main.main(["run", "--list"]) == 0
    assert "incast-leafspine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no scenario given. Remedy: name one of"),
        (["incast"], "no directory for the result. Remedy: add --out DIR, for example --out results/incast"),
        (["incst", "--out", "x"], "there is no scenario 'incst'. Remedy: did you mean incast?"),
        (
            ["incast", "--out", "x", "--policy", "fairk"],
            "there is no policy 'fairk'. Remedy: did you mean fairq?",
        ),
    ],
)
def test_missing_or_wrong_arguments_are_one_line(capsys, arguments, words):
    assert main.main(["run", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_help_shows_the_default_policies(capsys):
    with pytest.raises(SystemExit):
        main.main(["run", "--help"])
    assert "(default: droptail,droptail-rto5,fairq)" in " ".join(capsys.readouterr().out.split())
