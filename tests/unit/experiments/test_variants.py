"""Policies with settings of their own in brackets: how they are read, checked and passed on."""

import pytest

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario, variants
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.testbed import config_files
from fairq_ryu.experiments.variants import Variant

KNOWN = machine.known_policies()


def read(*names, config_file=None):
    return variants.read(names, KNOWN, config_file)


def faults(*names, config_file=None):
    with pytest.raises(UserError) as caught:
        read(*names, config_file=config_file)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("droptail,fairq", ["droptail", "fairq"]),
        (" droptail , , fairq,", ["droptail", "fairq"]),
        ("fairq,fairq[alpha=0.5, pace=yes],sed", ["fairq", "fairq[alpha=0.5, pace=yes]", "sed"]),
        ("fairq[alpha=0.5", ["fairq[alpha=0.5"]),
        ("", []),
    ],
)
def test_a_list_is_split_at_commas_outside_of_brackets(text, parts):
    assert variants.split(text) == parts


def test_settings_in_brackets_have_the_types_of_the_section():
    plain, own, red, mark = read(
        "fairq", "fairq[alpha=0.5, base_rtt=0.002]", "kernel-red[gentle=no]", "mark-dctcp[threshold=30]"
    )
    assert plain == Variant("fairq", "fairq")
    assert own == Variant("fairq[alpha=0.5, base_rtt=0.002]", "fairq", {"alpha": 0.5, "base_rtt": 0.002})
    # A baseline has the section of the policy, or that of the law whose settings its qdisc takes.
    assert (red.section, dict(red.settings)) == ("red", {"gentle": False})
    assert (mark.section, mark.baseline.policy) == ("mark", "mark")


def test_all_faults_are_told_and_name_what_exists():
    told = faults("fairq[alfa=1,alpha=7]", "magic", "bare[alpha=1]", "sed", "fq_codel[limit=3]")
    assert len(told) == 5
    assert told[0].startswith("--policy fairq[alfa=1,alpha=7]: [fairq] has no setting alfa")
    assert "did you mean alpha?" in told[0]
    assert "[fairq] alpha: 7 is more than 1" in told[1]
    assert "there is no policy 'magic'" in told[2] and "known are" in told[2]
    assert "bare has no settings" in told[3] and "fq_codel has no settings" in told[4]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fairq[alpha=0.5", "is not NAME or NAME[SETTING=VALUE,...]"),
        ("fairq[alpha=0.5]x", "is not NAME or NAME[SETTING=VALUE,...]"),
        ("fairq[alpha]", "'alpha' is not SETTING=VALUE"),
        ("fairq[]", "nothing is set. Remedy: write for example fairq[alpha=0.5]; known are alpha,"),
        ("fairq[alpha=0.5,alpha=0.6]", "alpha is set twice"),
        ("fairq[zzzzzz=1]", "[fairq] has no setting zzzzzz. Remedy: known are alpha,"),
        ("fairq-paper[interval=0.9]", "is too long for [fairq_ryu] lease"),
        ("red[low=0.9]", "[red] low: 0.9 is more than 0.333333"),
    ],
)
def test_a_wrong_variant_is_refused(name, words):
    (told,) = faults(name)
    assert words in told


def test_the_same_variant_twice_is_refused():
    assert faults("fairq", "fairq") == ["policy 'fairq' is named twice. Remedy: name each once"]
    (told,) = faults("fairq[alpha=0.5]", "fairq[ alpha = 0.50 ]")
    assert "before as 'fairq[alpha=0.5]'" in told
    assert len(read("fairq", "fairq[alpha=0.5]", "fairq[alpha=0.4]")) == 3
    assert "no policy given" in faults()[0]


def test_settings_must_fit_the_configuration_of_the_run(tmp_path):
    given = tmp_path / "given.conf"
    given.write_text("[fairq_ryu]\nlease = 60\n")
    assert read("fairq-paper[interval=0.9]", config_file=given)[0].settings == {"interval": 0.9}
    given.write_text("[fairq]\nalfa = 1\n")
    assert "did you mean alpha?" in faults("fairq", config_file=given)[0]


def test_controller_and_agents_get_the_settings_last(tmp_path):
    given = tmp_path / "given.conf"
    given.write_text("[fairq_ryu]\nbase_rtt = 0.002\n[fairq]\nalpha = 0.3\n")
    (own,) = read("fairq[alpha=0.5]", config_file=given)
    files = config_files(scenario.load("incast"), tmp_path / "logs", given, own)
    config = loader.load(files)
    assert (config.value("fairq", "alpha"), config.value("fairq_ryu", "base_rtt")) == (0.5, 0.002)
    assert config.value("fairq_ryu", "way") == "paths"
    (own,) = read("fairq[base_rtt=0.1,alpha=0.4]", config_file=given)
    config = loader.load(config_files(scenario.load("incast"), tmp_path / "logs", given, own))
    assert (config.value("fairq", "alpha"), config.value("fairq_ryu", "base_rtt")) == (0.4, 0.1)
    (red,) = read("red[gentle=no]")
    assert (
        loader.load(config_files(scenario.load("incast"), tmp_path, None, red)).value("red", "gentle")
        is False
    )


def test_its_settings_are_recorded(tmp_path):
    own = read("fairq", "fairq[alpha=0.5]", "kernel-red[gentle=no]", "las[base_rtt=0.1]")
    found = machine.metadata("incast", {}, own, None, [])
    assert found["variants"] == {
        "fairq[alpha=0.5]": {"fairq": {"alpha": 0.5}},
        "kernel-red[gentle=no]": {"red": {"gentle": False}},
        "las[base_rtt=0.1]": {"fairq_ryu": {"base_rtt": 0.1}},
    }
    assert found["settings"]["fairq"]["alpha"] == 0.25 and found["changed"] == {}


def test_what_a_baseline_changes_is_recorded():
    found = machine.metadata("incast", {}, read("droptail-iw2", "red-ecn", "fairq"), None, [])
    assert found["changed"] == {"droptail-iw2": {"initcwnd": 2}, "red-ecn": {"ecn": True}}
    assert found["variants"] == {"red-ecn": {"red": {"ecn": True}}}


def test_a_directory_has_no_character_of_a_shell():
    (own,) = read("fairq[alpha=0.5, base_rtt=0.002]")
    assert own.directory == "fairq-alpha=0.5,-base_rtt=0.002"
    assert Variant("x[y=../../z]", "x").directory == "x-y=..-..-z"
