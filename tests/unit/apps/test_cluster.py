"""What a controller among others has of its settings."""

import logging

import pytest
from ryu import cfg

from fairq_ryu.apps import cluster
from fairq_ryu.cluster.ownership import Together
from fairq_ryu.config.loader import load
from fairq_ryu.errors import UserError
from fairq_ryu.ryu_compat.batched_io import SwitchConnection


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(SwitchConnection, "owned", True)
    monkeypatch.setattr(cfg.CONF, "wsapi_host", "127.0.0.1", raising=False)
    monkeypatch.setattr(cfg.CONF, "wsapi_port", 8080, raising=False)


def owners(tmp_path, text):
    path = tmp_path / "fairq.conf"
    path.write_text(text)
    nothing = lambda *_: None  # noqa: E731
    log = logging.getLogger("test")
    return cluster.owners(load([path]), nothing, nothing, nothing, lambda _: 1, log)


UPLINK = "[uplink.u]\nrate = 1gbit\nports = br0/eth0, br1/eth0\n"
SHARED = "[cluster]\ndatabase = unix:/nowhere/fairq.sock\nname = a\n"


def test_one_that_is_alone_has_nothing_of_it(tmp_path):
    assert owners(tmp_path, "") is None
    assert SwitchConnection.owned


@pytest.mark.parametrize(
    ("text", "together", "agents_only"),
    [
        ("", Together.CONNECTED, False),
        ("[fairq_ryu]\nway = windows\n", Together.NONE, True),
        ("[fairq_ryu]\nway = paths\n", Together.CONNECTED, False),
        (f"[fairq_ryu]\nway = windows\n{UPLINK}", Together.ALL, True),
        (UPLINK, Together.ALL, False),
    ],
)
def test_bridges_are_together_where_something_needs_one_view_of_them(tmp_path, text, together, agents_only):
    made = owners(tmp_path, text + SHARED)
    assert made.together is made.ownership.together is together
    assert made.agents_only is agents_only
    assert not SwitchConnection.owned
    assert made.member.name == "a" and made.member.id.startswith("a/")
    assert made.member.rest == "http://127.0.0.1:8080"
    assert made.lease == 2 and 6 * made.beat < made.lease


def test_two_processes_of_one_name_are_two(tmp_path):
    one, other = owners(tmp_path, SHARED), owners(tmp_path, SHARED)
    assert one.member.id != other.member.id and one.member.settings == other.member.settings


def test_settings_differ_but_not_by_what_is_each_one_s_own(tmp_path):
    one = owners(tmp_path, SHARED)
    assert owners(tmp_path, SHARED.replace("= a", "= b")).member.settings == one.member.settings
    assert owners(tmp_path, "[fairq]\nalpha = 0.3\n" + SHARED).member.settings != one.member.settings


def test_the_address_of_rest_must_be_one_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(cfg.CONF, "wsapi_host", "0.0.0.0", raising=False)
    with pytest.raises(UserError, match=r"REST is served: on 0\.0\.0\.0"):
        owners(tmp_path, SHARED)
    made = owners(tmp_path, f"{SHARED}rest = http://192.0.2.1:8081/\n")
    assert made.member.rest == "http://192.0.2.1:8081"
    monkeypatch.setattr(cfg.CONF, "wsapi_host", "fd00::1", raising=False)
    assert owners(tmp_path, SHARED).member.rest == "http://[fd00::1]:8080"
