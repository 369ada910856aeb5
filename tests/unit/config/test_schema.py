"""The settings: one list, and one clear error for anything in a file that is not in it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from fairq_ryu.cluster.settings import SETTINGS as CLUSTER_SETTINGS
from fairq_ryu.config import loader, schema
from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import AGENT_SETTINGS, CONTROLLER_SETTINGS, sections, settings_of
from fairq_ryu.errors import UserError
from fairq_ryu.laws.fairq.policy import FairQ, FairQParameters
from fairq_ryu.policies.base import own
from fairq_ryu.policies.common_settings import SHARED
from fairq_ryu.setting import Setting

ROOT = Path(__file__).parents[3]
SETTINGS = [
    *CONTROLLER_SETTINGS,
    *(setting for name in own() for setting in schema.declared(name).values()),
    *CLUSTER_SETTINGS,
    *AGENT_SETTINGS,
]
NUMBERS = [s for s in SETTINGS if isinstance(s.default, (int, float)) and not isinstance(s.default, bool)]


def label(setting: Setting) -> str:
    return f"{setting.section}.{setting.name}"


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "fairq.conf") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        loader.load([path])
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


@pytest.mark.parametrize("setting", SETTINGS, ids=label)
def test_every_setting_takes_its_default(setting):
    value = setting.parse(f" {setting.default} ")
    assert value == setting.default
    assert type(value) is type(setting.default)
    assert setting.help.endswith(".")


@pytest.mark.parametrize("setting", NUMBERS, ids=label)
def test_every_number_has_bounds_and_keeps_them(setting):
    assert setting.minimum is not None
    assert setting.maximum is not None
    low, high = (type(setting.default)(bound) for bound in (setting.minimum, setting.maximum))
    assert setting.parse(str(low)) == low
    assert setting.parse(str(high)) == high
    with pytest.raises(ValueError, match="is less than"):
        setting.parse(str(low - 1))
    with pytest.raises(ValueError, match="is more than"):
        setting.parse(str(high * 2 + 1))
    for word in ("", "many", "1,5", "0x10", "nan", "inf", "-inf"):
        with pytest.raises(ValueError, match=r"is not a|is less than|is more than"):
            setting.parse(word)


@pytest.mark.parametrize("setting", SETTINGS, ids=label)
def test_every_help_says_when_to_change_the_setting(setting):
    *what, when = re.split(r"(?<=\.) (?=[A-Z])", setting.help)
    assert what and re.match(r"(Set|Raise|Lower|Make) ", when), setting.help


def test_whole_numbers_are_whole():
    with pytest.raises(ValueError, match=r"'2\.5' is not a whole number"):
        sections()["fairq-paper"]["increments"].parse("2.5")


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", True), ("TRUE", True), ("on", True), ("1", True), ("no", False), ("Off", False)],
)
def test_yes_and_no(text, value):
    assert sections()["fairq-paper"]["slow_start"].parse(text) is value


def test_a_value_that_is_neither_yes_nor_no():
    with pytest.raises(ValueError, match="'2' is not yes or no"):
        sections()["fairq-paper"]["slow_start"].parse("2")


def test_texts_with_choices():
    setting = Setting("s", "n", "a", "", "Help.", choices=("a", "b"))
    assert (setting.parse("b"), setting.type_name) == ("b", "text")
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        setting.parse("c")


def test_names_are_unique():
    assert len({(s.section, s.name) for s in SETTINGS}) == len(SETTINGS)


def test_without_files_all_are_defaults():
    settings = loader.load([])
    assert settings.as_dict() == {
        section: {s.name: s.default for s in SETTINGS if s.section == section} for section in sections()
    }


def test_a_file_and_one_after_it(write):
    first = write(
        "[fairq]\nalpha = 0.5\n# a comment\n; another\n[fairq_ryu]\nturns: on\n[agent]\nflows=100\n"
    )
    second = write("[fairq]\nalpha = 0.1\n", "second.conf")
    settings = loader.load([first, str(second)])
    assert settings.section("fairq")["alpha"] == 0.1
    assert settings.value("fairq_ryu", "turns") == "on"
    assert settings.number("agent", "flows") == 100.0
    assert settings.value("agent", "ports") == 1024


def test_sections_of_other_programs_are_ignored(write):
    path = write("[DEFAULT]\nalpha = high\nverbose = %(x)s\n[restapi]\nport = none\n[fairq]\nalpha = 1\n")
    settings = loader.load([path])
    assert settings.value("fairq", "alpha") == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fairq]\nalhpa = 1\n", "[fairq] has no setting alhpa. Remedy: did you mean alpha?"),
        ("[fairq]\nAlpha = 1\n", "has no setting Alpha. Remedy: did you mean alpha?"),
        ("[fairswitch]\nxyz = 1\n", "has no setting xyz. Remedy: known are law, alpha"),
        (
            "[sed]\nbase_rtt = 1\n",
            "[sed] has no setting base_rtt. Remedy: set it in section [fairq_ryu], for",
        ),
        ("[fair_q]\nalpha = 1\n", "unknown section [fair_q]. Remedy: did you mean [fairq]?"),
        ("[agents]\n", "did you mean [agent]?"),
        ("[FAIRQ]\nalpha = 1\n", "unknown section [FAIRQ]. Remedy: did you mean [fairq]?"),
        ("[Fairq_Ryu]\n", "did you mean [fairq_ryu]?"),
        ("[PORTS]\n", "did you mean [ports]?"),
        ("[Service.web]\nport = 80\n", "unknown section [Service.web]. Remedy: did you mean [service.web]?"),
        ("[service web]\nport = 80\n", "did you mean [service.web]?"),
        ("[services]\nport = 80\n", "did you mean [service.NAME]?"),
        ("[fairq-paper]\nSLOW_START = yes\n", "has no setting SLOW_START. Remedy: did you mean slow_start?"),
        (
            "[agent]\ncontrollers = tcp:127.0.0.1 127.0.0.1:6653\n",
            "[agent] controllers: '127.0.0.1:6653' is not a controller's address. Remedy: write tcp:",
        ),
        (
            "[fairq]\nalpha = big\n",
            "[fairq] alpha: 'big' is not a number. Remedy: give a number; the default is 0.25",
        ),
        ("[fairq]\nalpha = 2\n", "alpha: 2 is more than 1."),
        ("[iqm]\ninterval = 0\n", "interval: 0 is less than 0.0005 s. Remedy: give a number, in s"),
        ("[fairq]\nalpha =\n", "'' is not a number"),
        ("[fairq]\nalpha = 1\n  2\n", "is not a number"),
        ("[fairq]\nalpha = nan\n", "alpha: nan is"),
        ("[fairq-paper]\nslow_start = maybe\n", "'maybe' is not yes or no"),
        ("[fairq]\nalpha = 1\nalpha = 1\n", "line 3: [fairq] has alpha already"),
        ("[fairq]\nalpha = 1\n[fairq]\n", "line 3: there is a section [fairq] already"),
        ("alpha = 1\n", "line 1 is before the first [section]"),
        ("[fairq]\nalpha\n", "line 2 is not name = value"),
        (b"[fairq]\nalpha = \xff\n", "it is not UTF-8 text"),
    ],
)
def test_an_error_is_one_line(write, text, words):
    assert words in refusal(write(text))


def test_files_that_cannot_be_read(tmp_path):
    assert "No such file" in refusal(tmp_path / "missing.conf")
    assert "Is a directory" in refusal(tmp_path)


def test_a_config_holds_known_settings_only():
    assert Config({("fairq", "alpha"): 0.5}).value("fairq", "alpha") == 0.5
    with pytest.raises(KeyError, match="alhpa"):
        Config({("fairq", "alhpa"): 0.5})
    with pytest.raises(KeyError):
        Config().value("fairq", "alhpa")


# Every setting is used


class Asked(dict):
    """Records which keys were read."""

    def __init__(self, values: dict[str, schema.Value]) -> None:
        super().__init__(values)
        self.keys_asked: set[str] = set()

    def __getitem__(self, key: str) -> schema.Value:
        self.keys_asked.add(key)
        return super().__getitem__(key)


def test_fairq_uses_all_its_settings_and_no_others():
    values = Asked(Config().section("fairq"))
    policy = FairQ(values)
    assert values.keys_asked == set(settings_of("fairq"))
    assert {f.name for f in dataclasses.fields(FairQParameters)} == set(settings_of("fairq"))
    assert dataclasses.asdict(policy.parameters) == Config().section("fairq")
    changed = {"alpha": 0.75, "base_rtt": 0.25, "turns": "on"}
    assert dataclasses.asdict(FairQ(changed).parameters) == changed


@pytest.mark.parametrize(
    ("section", "where"), [("fairq_ryu", ["apps", "control", "rest"]), ("agent", ["cli/commands/agent.py"])]
)
def test_every_setting_is_used_and_no_other_is_asked_for(section, where):
    places = [ROOT / "fairq_ryu" / each for each in where]
    files = [
        path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    ]
    files.append(ROOT / "fairq_ryu/config/loader.py")  # the loader reads the policy's name and the lease
    text = "".join(path.read_text() for path in files)
    asked = set(re.findall(rf'(?:number|value)\(\s*"{section}",\s*"(\w+)"', text))
    # Policies use those that they share.
    assert asked == {each.name for each in sections()[section].values() if each not in SHARED}


def test_a_shared_setting_is_the_same_for_all_policies(write):
    config = loader.load([write("[fairq_ryu]\nbase_rtt = 0.02\n")])
    users = [name for name in own() if "base_rtt" in settings_of(name)]
    assert {"fairq", "fairswitch", "las", "sed", "afcd", "codel"} <= set(users)
    for name in users:
        assert "base_rtt" not in schema.declared(name)
        assert config.section(name)["base_rtt"] == 0.02
        assert config.changed(name, {"base_rtt": 0.03}).value("fairq_ryu", "base_rtt") == 0.03
    assert "base_rtt" not in config.as_dict()["fairq"]


@pytest.mark.parametrize("way", ["windows", "normal"])
def test_what_needs_the_tables_of_bridges_is_refused_where_they_are_left_alone(write, way):
    with pytest.raises(UserError, match=f"way = {way}"):
        loader.load([write(f"[fairq_ryu]\nway = {way}\nsyn = hold\n")])
    for other in ("way = paths", "way ="):
        loader.load([write(f"[fairq_ryu]\n{other}\nsyn = hold\n")])


def test_a_way_that_does_not_exist_is_refused(write):
    text = refusal(write("[fairq_ryu]\nway = window\n"))
    assert "is none of windows, normal, paths" in text and "the default is empty" in text


@pytest.mark.parametrize("way", ["", "windows", "normal"])
def test_one_scale_needs_paths(write, way):
    path = write(f"[fairq_ryu]\nway = {way}\n[agent]\nunify_scale = 7\n")
    with pytest.raises(UserError, match=r"unify_scale needs paths .* set \[fairq_ryu\] way = paths"):
        loader.load([path])
    loader.load([write(f"[fairq_ryu]\nway = {way}\n[agent]\nunify_scale = 14\n")])
    loader.load([write("[fairq_ryu]\nway = paths\n[agent]\nunify_scale = 7\n")])
