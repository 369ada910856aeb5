"""Settings of policies: which policy governs which port, the sizes of services, and the settings that
policies declare.
"""

from __future__ import annotations

import pytest

from fairq_ryu.cli import main
from fairq_ryu.config import loader
from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import sections, settings_of
from fairq_ryu.errors import UserError
from fairq_ryu.laws.fairq.policy import FairQ
from fairq_ryu.model import Announcement, FlowKey, PortMode, Service
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import choose
from fairq_ryu.setting import Setting


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "fairq.conf"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


PORTS = """
[ports]
leaf1-eth* = fairq
Leaf2-eth1 = droptail
[ab]x-eth? = fixed
role:host = fixed
role:link: droptail
* = fairq
"""


def test_patterns_keep_their_order_and_their_case(write):
    settings = loader.load([write(PORTS)])
    assert settings.port_policies() == (
        ("leaf1-eth*", "fairq"),
        ("Leaf2-eth1", "droptail"),
        ("[ab]x-eth?", "fixed"),
        ("role:host", "fixed"),
        ("role:link", "droptail"),
        ("*", "fairq"),
    )
    assert settings.as_dict()["ports"]["role:host"] == "fixed"
    assert loader.load([]).port_policies() == ()


def test_a_later_file_s_ports_replace_the_earlier_ones(write):
    later = write("[ports]\n* = fixed\n[fairq]\nalpha: 0.5\n", "later.conf")
    settings = loader.load([write(PORTS), later])
    assert settings.port_policies() == (("*", "fixed"),)
    assert settings.value("fairq", "alpha") == 0.5


MODES = """
[fairq_ryu]
mode = observe

[modes]
tap[0-9]* = act
bridge:rack7* = act
bridge:1f : observe
policy:fixed = observe
"""


def test_modes_keep_their_order(write):
    settings = loader.load([write(MODES)])
    assert settings.mode() is PortMode.OBSERVE and settings.observes
    assert settings.port_modes() == (
        ("tap[0-9]*", PortMode.ACT),
        ("bridge:rack7*", PortMode.ACT),
        ("bridge:1f", PortMode.OBSERVE),
        ("policy:fixed", PortMode.OBSERVE),
    )
    assert settings.as_dict()["modes"]["bridge:1f"] == "observe"
    assert settings.changed("fairq", {"alpha": 0.5}).port_modes() == settings.port_modes()
    later = loader.load([write(MODES), write("[modes]\n* = act\n", "later.conf")])
    assert later.port_modes() == (("*", PortMode.ACT),)


def test_a_colon_is_an_equals_sign_in_other_lines(write):
    assert loader.load([write("[fairq_ryu]\npolicy: fairq\nmode: observe\n")]).policy() == "fairq"
    assert loader.load([write("[fairq_ryu]\npolicy:fairq\n")]).policy() == "fairq"


def test_ports_act_by_default():
    settings = Config()
    assert settings.mode() is PortMode.ACT and not settings.observes and settings.port_modes() == ()


SERVICES = """
[service.Search]
port = 8080
size = 20000
deadline = 0.2

[service.backup]
host: FE80::0:1
port: 873
direction = to-server
size = 1000000000

[service.rack]
host = 10.0.0.9
deadline = 1.5
"""


def test_services(write):
    found = loader.load([write(SERVICES)]).services()
    assert found == (
        Service("Search", 8080, "", 20000, 0.2),
        Service("backup", 873, "fe80::1", 1_000_000_000, None, True),
        Service("rack", 0, "10.0.0.9", None, 1.5),
    )
    search, backup, rack = found
    data = FlowKey("10.0.0.9", "10.0.0.1", 8080, 40000)
    assert search.covers(data)
    assert rack.covers(data)
    assert not search.covers(data.reversed)
    assert not rack.covers(data.reversed)
    assert not search.covers(data._replace(sport=8081))
    there = FlowKey("fe80::2", "fe80::1", 40000, 873)
    assert backup.covers(there)
    assert not backup.covers(there.reversed)
    assert not backup.covers(there._replace(dst="fe80::3"))
    assert search.announcement(10.0) == Announcement(20000, 10.2)
    assert backup.announcement(10.0) == Announcement(1_000_000_000, None)
    assert rack.announcement(10.0) == Announcement(None, 11.5)


def test_a_later_file_s_service_replaces_the_earlier_one(write):
    later = write("[service.rack]\nport = 1\nsize = 2\n", "later.conf")
    settings = loader.load([write(SERVICES), later])
    assert settings.services()[2] == Service("rack", 1, "", 2, None)
    assert settings.as_dict()["service.rack"]["host"] == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[ports]\nleaf* = nonsense\n", "[ports] leaf*: there is no policy 'nonsense'. Remedy: known are"),
        ("[ports]\nleaf* =\n", "there is no policy ''"),
        (
            "[ports]\nbridge:s1 = fairq\n",
            "[ports] has no patterns that begin with bridge:. Remedy: write role:NAME",
        ),
        ("[fairq_ryu]\nmode = watch\n", "[fairq_ryu] mode: 'watch' is none of act, observe"),
        (
            "[modes]\ntap3 = disabled\n",
            "[modes] tap3: there is no mode 'disabled'. Remedy: write act or observe",
        ),
        ("[modes]\npolicy:fair = act\n", "[modes] policy:fair: there is no policy 'fair'. Remedy: known are"),
        (
            "[modes]\nrole:host = act\n",
            "[modes] has no patterns that begin with role:. Remedy: write bridge:NAME or",
        ),
        ("[mode]\ntap3 = act\n", "unknown section [mode]. Remedy: did you mean [modes]?"),
        ("[ports]\nrole:edge = fairq\n", "there is no such role. Remedy: write role:host or role:link"),
        ("[ports]\nrole:hosts = fairq\n", "there is no such role"),
        ("[ports]\na = fairq\na = fixed\n", "[ports] has a already"),
        ("[ports]\nrole:host = fairq\nrole:host = fixed\n", "[ports] has role:host already"),
        ("[ports]\nleaf1\n", "line 2 is not name = value"),
        ("[port]\na = fairq\n", "unknown section [port]. Remedy: did you mean [ports]?"),
        ("[fairq_ryu]\npolicy = nonsense\n", "there is no policy 'nonsense'. Remedy: known are"),
        ("[service.a]\nport = 70000\nsize = 1\n", "[service.a] port: 70000 is more than 65535"),
        ("[service.a]\nport = 80\nsize = 1\nspeed = 1\n", "[service.a] has no setting speed"),
        ("[service.a]\nport = 80\ndead_line = 1\n", "did you mean deadline?"),
        ("[service.a]\nport = 80\nsize = -1\n", "size: -1 is less than 0 bytes"),
        ("[service.a]\nport = 80\nsize = many\n", "'many' is not a whole number"),
        ("[service.a]\nport = 80\ndeadline = nan\n", "deadline: nan is"),
        ("[service.a]\nport = 80\n", "[service.a] has neither size nor deadline. Remedy: give it a size"),
        ("[service.a]\nsize = 1\n", "[service.a] covers all flows. Remedy: give it a port"),
        ("[service.a]\nhost = example.org\nsize = 1\n", "'example.org' is not an IP address"),
        ("[service.a]\nhost = 10.0.0.0/8\nsize = 1\n", "is not an IP address"),
        ("[service.a]\nhost = fe80::1%eth0\nsize = 1\n", "'fe80::1%eth0' is not an IP address"),
        ("[service.a]\nport = 80\nsize = 1\ndirection = up\n", "none of to-client, to-server"),
        ("[service.]\nport = 80\nsize = 1\n", "[service.] has no name"),
        ("[service]\nport = 80\n", "did you mean [service.NAME]?"),
        ("[services]\nport = 80\n", "did you mean [service.NAME]?"),
        ("[droptail]\n", "policy droptail has no settings. Remedy: take section [droptail] out"),
        ("[fairq-paper]\ninterval = 1\n", "[fairq-paper] interval = 1 s is too long"),
        ("[sed]\nrecovery = both\n", "[sed] has no setting recovery"),
        ("[sed]\nmissed = reset\n", "'reset' is none of demote, pause"),
        ("[rsed]\nmargin = 1\n", "[rsed] has no setting margin. Remedy: set it in section [sed], for all"),
        ("[rsed-paper]\nrtt = 1\n", "rsed-paper has no settings of its own. Remedy: they are in [sed-paper]"),
        ("[rsed]\nrecovery = all\n", "'all' is none of dupack, reinject, both, none"),
        ("[fairq] junk\n", "line 1 is before the first [section]"),
    ],
)
def test_an_error_is_one_line(write, text, words, capsys):
    path = write(text)
    with pytest.raises(UserError) as caught:
        loader.load([path])
    assert words in str(caught.value)
    assert str(path) in str(caught.value) or "is too long" in words
    assert "\n" not in str(caught.value)
    assert main.main(["check", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_rsed_has_the_settings_of_sed_in_its_section(write):
    assert sections()["rsed"].keys() == settings_of("rsed").keys() - settings_of("sed").keys() == {"recovery"}
    config = loader.load([write("[sed]\nthreshold = 0.4\n[rsed]\nrecovery = none\n")])
    assert config.section("rsed") == {**config.section("sed"), "recovery": "none"}
    assert config.section("rsed")["threshold"] == 0.4
    assert settings_of("rsed-paper") == settings_of("sed-paper") and "rsed-paper" not in sections()
    assert loader.load([write("[sed-paper]\nrtt = 0.2\n")]).section("rsed-paper")["rtt"] == 0.2


# The choice of policies


def test_the_application_s_policy_is_for_all_ports():
    choice = choose("fairq", Config())
    assert isinstance(choice.default, FairQ)
    assert choice.rules == ()


def test_the_file_s_policy_and_its_ports(write):
    settings = loader.load([write("[fairq_ryu]\npolicy = fixed\n[fairq]\nalpha = 0.5\n" + PORTS)])
    choice = choose("", settings)
    assert choice.default.name == "fixed"
    assert [(pattern, policy.name) for pattern, policy in choice.rules] == list(settings.port_policies())
    # One policy of each name, with its own settings.
    assert choice.rules[2][1] is choice.default
    assert choice.rules[0][1].parameters.alpha == 0.5
    assert choose("fixed", settings).default.name == "fixed"


def test_the_application_and_the_file_must_agree(write):
    settings = loader.load([write("[fairq_ryu]\npolicy = fixed\n")])
    with pytest.raises(UserError, match=r"the application is fairq_ryu\.apps\.fairq, but .* policy = fixed"):
        choose("fairq", settings)
    with pytest.raises(UserError, match="no policy is named"):
        choose("", Config())
    with pytest.raises(UserError, match="there is no policy nonsense"):
        choose("nonsense", Config())


# Policies of others


class Foreign:
    """A policy of another package that declares its settings."""

    name = "foreign"
    settings = (
        Setting("foreign", "share", 0.5, "", "A share.", 0.1, 1),
        Setting("foreign", "interval", 0.05, "s", "How often.", 0.001, 10),
    )

    def __init__(self, parameters):
        self.parameters = dict(parameters)
        self.interval = parameters["interval"]

    def port_law(self, port):
        return base.PortLaw()


@pytest.fixture
def foreign(monkeypatch):
    class Entry:
        name, value = "foreign", "foreign:Foreign"
        loaded: type = Foreign

        def load(self):
            return self.loaded

    entry = Entry()
    known = base.installed()
    monkeypatch.setattr(base, "installed", lambda: (*known, entry))
    return entry


def test_a_foreign_policy_s_settings_are_checked_like_ours(write, foreign):
    settings = loader.load([write("[foreign]\nshare = 0.7\n[ports]\na* = foreign\n")])
    assert settings.section("foreign") == {"share": 0.7, "interval": 0.05}
    assert settings.as_dict()["foreign"] == {"share": 0.7, "interval": 0.05}
    assert choose("fairq", settings).rules[0][1].parameters == {"share": 0.7, "interval": 0.05}
    # Without a section it has its defaults.
    assert choose("foreign", Config()).default.parameters == {"share": 0.5, "interval": 0.05}
    for text, words in (
        ("[foreign]\nshare = 2\n", "share: 2 is more than 1"),
        ("[foreign]\nshape = 2\n", "did you mean share"),
        ("[foreing]\nshare = 2\n", r"did you mean \[foreign\]"),
        ("[foreign]\ninterval = 0.6\n", "is too long"),
    ):
        with pytest.raises(UserError, match=words):
            loader.load([write(text)])


def test_a_foreign_policy_may_have_no_settings(write, foreign, monkeypatch):
    monkeypatch.delattr(Foreign, "settings")
    assert Config().section("foreign") == {}
    with pytest.raises(UserError, match="policy foreign has no settings"):
        loader.load([write("[foreign]\nshare = 1\n")])
    with pytest.raises(UserError, match="policy foreign cannot be made: KeyError: 'interval'"):
        choose("foreign", Config())


@pytest.mark.parametrize("declared", [("share",), (Setting("other", "share", 1, "", "A share.", 0, 1),)])
def test_a_foreign_policy_declares_settings_of_its_own_section_only(write, foreign, monkeypatch, declared):
    monkeypatch.setattr(Foreign, "settings", declared)
    with pytest.raises(UserError, match=r"is not a setting of section \[foreign\]"):
        loader.load([write("[foreign]\nshare = 1\n")])


def test_a_foreign_policy_s_interval_must_fit_the_lease(foreign, monkeypatch):
    for interval in (0.6, 0, float("nan")):
        monkeypatch.setattr(
            Foreign, "settings", (Setting("foreign", "interval", interval, "s", "How often."),)
        )
        with pytest.raises(UserError, match="wants the queue every"):
            choose("foreign", Config())


@pytest.mark.parametrize("section", ["restapi", "service_user", "service_token"])
def test_the_section_of_an_unknown_program_is_ignored(write, foreign, section):
    assert loader.load([write(f"[{section}]\nport = none\n")]).as_dict() == Config().as_dict()
