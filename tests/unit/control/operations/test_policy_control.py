"""The policy over REST: it is shown, and changed completely or not at all."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.config.schema import settings_of
from fairq_ryu.control.operations import policy_control
from fairq_ryu.control.reports.events import Kind
from fairq_ryu.errors import UserError
from fairq_ryu.laws.tenants.policy import Tenants
from fairq_ryu.model import PortKey
from fairq_ryu.policies import base
from fairq_ryu.policies.base import available
from fairq_ryu.setting import Setting
from tests.support.restsite import RestSite


def change(site: RestSite, wanted: Any, **environ: Any) -> Any:
    body = wanted if isinstance(wanted, bytes) else json.dumps(wanted).encode()
    return site.ask("/v1/policy", "PATCH", body, **environ)


def value(site: RestSite, name: str) -> Any:
    (row,) = [each for each in site.ask("/v1/policy").json["parameters"] if each["name"] == name]
    return row["value"]


def plans(site: RestSite) -> set[str]:
    """The plans in force."""
    return {view.plan for view in site.windows.engine.view().values() if view.plan}


@pytest.fixture
def site() -> RestSite:
    return RestSite("fairq")


@pytest.mark.parametrize("policy", available())
def test_the_policy_and_its_parameters_are_shown(policy):
    answer = RestSite(policy).ask("/v1/policy").json
    assert (answer["policy"], answer["available"]) == (policy, available())
    settings = settings_of(policy)
    assert [row["name"] for row in answer["parameters"]] == list(settings)
    for row in answer["parameters"]:
        setting = settings[row["name"]]
        assert (row["value"], row["default"], row["unit"]) == (setting.default, setting.default, setting.unit)
        assert (row["minimum"], row["maximum"]) == (setting.minimum, setting.maximum)
        assert row["choices"] == list(setting.choices)


def test_installed_policies_are_looked_up_once(site, monkeypatch):
    def slow(**_: Any) -> Any:
        raise AssertionError("this reads the files of every package")

    monkeypatch.setattr(base, "entry_points", slow)
    assert site.ask("/v1/policy").status_code == 200


def test_a_parameter_is_changed(site):
    target = site.ask("/v1/ports").json["ports"][2]["target_bytes"]
    wanted = {"alpha": 0.5, "turns": "on"}
    assert change(site, {"parameters": wanted}).status_code == 200
    assert (value(site, "alpha"), value(site, "turns"), value(site, "base_rtt")) == (0.5, "on", 0.001)
    site.sample()
    assert site.windows.engine.policy.parameters.alpha == 0.5
    site.service.ports._until = 0
    assert site.ask("/v1/ports").json["ports"][2]["target_bytes"] == 2 * target


def test_a_whole_number_may_be_written_with_a_point(site):
    wanted = {"policy": "iqm", "parameters": {"initcwnd": 4.0}}
    assert change(site, wanted).status_code == 200
    assert repr(value(site, "initcwnd")) == "4"


def test_a_change_is_reported_once_and_only_if_it_changes_something(site, caplog):
    caplog.set_level("INFO")
    for _ in range(2):
        assert change(site, {"policy": "fairq", "parameters": {"alpha": 0.5}}).status_code == 200
    (event,) = site.streams.history.since(kind=Kind.POLICY)
    assert event.message == "now policy fairq with alpha = 0.5, was fairq"
    assert [record.message for record in caplog.records if "REST" in record.message] == [
        "REST: now policy fairq with alpha = 0.5, was fairq"
    ]
    assert change(site, {}).status_code == 200
    assert change(site, {"policy": None, "parameters": {}}).status_code == 200
    assert len(site.streams.history.since(kind=Kind.POLICY)) == 1


def test_another_policy_leaves_no_rule_of_the_old(site):
    assert site.windows.engine.view()[(2, 1)].plan.rule
    site.log.clear()
    answer = change(site, {"policy": "droptail"})
    assert (answer.status_code, answer.json["policy"], answer.json["parameters"]) == (200, "droptail", [])
    assert not any(view.plan for view in site.windows.engine.view().values())
    # For each port the rule, and the law that it refers to.
    rules = [message for _, message in site.log if type(message).__name__ == "OFPFlowMod"]
    assert rules and 2 * len(rules) == len(site.log)
    assert all(message.command == message.datapath.ofproto.OFPFC_DELETE_STRICT for message in rules)
    assert site.ask("/v1/health").json["policy"] == "droptail"


def test_every_policy_can_be_chosen_and_left_again(site):
    for policy in (*available(), "fairq"):
        assert change(site, {"policy": policy}).json["policy"] == policy
        site.sample()
        assert {row["policy"] for row in site.ask("/v1/ports").json["ports"]} <= {
            policy,
            "fairq",
            *available(),
        }
    assert value(site, "alpha") == 0.25


def test_changed_parameters_are_kept_for_a_later_choice(site):
    change(site, {"parameters": {"alpha": 0.5}})
    change(site, {"policy": "sed"})
    change(site, {"policy": "fairq"})
    assert value(site, "alpha") == 0.5


REFUSED: list[tuple[Any, int, str]] = [
    (
        {"policy": "nonsense"},
        422,
        "there is no policy 'nonsense'. Remedy: known are acdc, afcd, afcd-paper, afq, ",
    ),
    ({"policy": ""}, 422, "there is no policy ''"),
    ({"policy": 5}, 400, "policy: 5 is not a text"),
    ({"policy": "x" * 101}, 400, "policy: 'xxx"),
    ({"parameters": []}, 400, "parameters: [] is not a JSON object"),
    ({"parameters": {"alfa": 0.5}}, 422, "[fairq] has no setting alfa. Remedy: did you mean alpha?"),
    ({"parameters": {"alpha": 7}}, 422, "[fairq] alpha: 7 is more than 1"),
    ({"parameters": {"alpha": 0}}, 422, "[fairq] alpha: 0 is less than 0.01"),
    ({"parameters": {"alpha": "0.5"}}, 422, "[fairq] alpha: '0.5' is not a number"),
    ({"parameters": {"alpha": True}}, 422, "[fairq] alpha: True is not a number"),
    ({"parameters": {"alpha": None}}, 400, "parameters.alpha"),
    ({"parameters": {"alpha": [1]}}, 400, "parameters.alpha"),
    ({"parameters": {"alpha": 10**400}}, 422, "[fairq] alpha: 1000"),
    (b'{"parameters": {"alpha": 1e999}}', 422, "inf is more than 1"),
    (b'{"parameters": {"alpha": NaN}}', 400, "NaN is not a number"),
    (
        {"policy": "iqm", "parameters": {"initcwnd": 2.5}},
        422,
        "initcwnd: 2.5 is not a whole number",
    ),
    ({"policy": "fairq-paper", "parameters": {"slow_start": 1}}, 422, "slow_start: 1 is not yes or no"),
    (
        {"policy": "fairq-paper", "parameters": {"interval": 0.6}},
        422,
        "interval = 0.6 s is too long for [fairq_ryu] lease = 2 s",
    ),
    ({"policy": "droptail", "parameters": {"alpha": 0.5}}, 422, "policy droptail has no parameters"),
    ({"policy": "sed", "parameters": {"missed": "cry"}}, 422, "'cry' is none of demote, pause"),
    ({"policy": "sed", "parameters": {"missed": True}}, 422, "[sed] missed: True is not a text"),
    ({"polcy": "sed"}, 400, "unknown field 'polcy': known are policy, parameters"),
    (b"[]", 400, "not a JSON object"),
    (b"", 400, "not JSON"),
]


@pytest.mark.parametrize(("wanted", "status", "why"), REFUSED, ids=str)
def test_an_invalid_request_changes_nothing(site, wanted, status, why):
    before, choice = site.ask("/v1/policy").json, site.windows.engine.choice
    if isinstance(wanted, dict) and isinstance(wanted.get("parameters"), dict) and "policy" not in wanted:
        # The valid part of the request is not applied either.
        wanted = {**wanted, "parameters": {"turns": "on", **wanted["parameters"]}}
    site.log.clear()
    response = change(site, wanted)
    assert response.status_code == status, response.body
    assert why in response.json["detail"]
    assert len(response.json["detail"]) < 400
    assert site.ask("/v1/policy").json == before
    assert site.windows.engine.choice is choice
    assert site.log == [] and not site.streams.history.since(kind=Kind.POLICY)


def test_a_policy_that_cannot_be_made_changes_nothing(site, monkeypatch):
    def fail(*_: Any) -> None:
        raise UserError("policy fairq cannot be made", "correct it")

    monkeypatch.setattr(policy_control, "make", fail)
    before = site.ask("/v1/policy").json
    response = change(site, {"parameters": {"alpha": 0.5}})
    assert response.status_code == 422 and "cannot be made" in response.json["detail"]
    assert site.ask("/v1/policy").json == before


def test_a_shared_setting_changes_for_every_policy(site):
    site.config._ports = (("role:link", "tenants"),)
    for wanted in {"alpha": 0.5}, {"base_rtt": 0.005}:
        assert change(site, {"parameters": wanted}).status_code == 200
        site.sample()
    assert {policy.name for policy in site.windows.engine.choice.policies} == {"fairq", "tenants"}
    laws = {view.plan.rule.law.base_rtt_us for view in site.windows.engine.view().values() if view.plan}
    assert laws == {5000}
    change(site, {"policy": "las"})
    assert value(site, "base_rtt") == 0.005


def test_ports_of_their_own_policy_stay():
    site = RestSite()
    site.config._ports = (("role:link", "fixed"),)
    change(site, {"policy": "sed"})
    answer = site.ask("/v1/policy").json
    assert answer["ports"] == [{"match": "role:link", "policy": "fixed"}]
    assert [row["policy"] for row in site.ask("/v1/ports").json["ports"]] == ["sed", "fixed"] * 2


def test_a_layer_on_other_ports_follows_the_policy_below():
    site = RestSite("fairq")
    site.config._ports = (("role:link", "tenants"), ("role:host", "fixed"))
    change(site, {"parameters": {"turns": "on"}})
    layer, fixed = (policy for _, policy in site.windows.engine.choice.rules)
    assert layer.below.parameters.turns == "on"
    assert change(site, {"parameters": {"alpha": 0.5}}).status_code == 200
    (_, after), (_, same) = site.windows.engine.choice.rules
    assert after.below.parameters.alpha == site.windows.engine.policy.parameters.alpha == 0.5
    assert same is fixed
    # What has no part in it keeps its state.
    change(site, {"policy": "iqm", "parameters": {"initial_window": 4}})
    assert [policy for _, policy in site.windows.engine.choice.rules] == [after, fixed]


def test_a_layer_on_a_layer_follows_the_policy_at_the_bottom(monkeypatch):
    """Other packages may have such layers: their entry points are policies like ours."""

    class Upper(Tenants):
        name = "groups"
        settings = (Setting("groups", "above", "tenants", "", "", choices=("tenants",)),)

        def __init__(self, parameters, below):
            self.below, self.parameters = below, (parameters, below.parameters)

    class Entry(NamedTuple):
        name: str
        value: str
        policy: type

        def load(self):
            return self.policy

    policies = [*base.installed(), Entry("groups", "elsewhere", Upper)]
    monkeypatch.setattr(base, "installed", lambda: policies)
    site = RestSite("fairq")
    site.config._ports = (("role:link", "groups"),)
    for alpha in 0.5, 0.75:
        assert change(site, {"parameters": {"alpha": alpha}}).status_code == 200
        ((_, upper),) = site.windows.engine.choice.rules
        assert upper.below.below.parameters.alpha == alpha


def test_a_queue_law_beside_the_policies_changes_with_its_own():
    """It runs at ports whose policy has none, so it is in no line of the choice."""
    site = RestSite("fairq", queue_law="codel")
    laws = site.windows.queue_laws
    before = laws._law_of(laws._beside, PortKey(1, 1))
    for wanted in {"policy": "codel", "parameters": {"delay_target": 0.02}}, {"policy": "fairq"}:
        assert change(site, wanted).status_code == 200
        found = laws._law_of(laws._beside, PortKey(1, 1))
        assert found != before and found.target_us == 20_000


def test_the_token_is_needed(site):
    assert change(site, {"policy": "sed"}, HTTP_AUTHORIZATION=None).status_code == 401
    assert site.windows.engine.policy.name == "fairq"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
NAMES = st.sampled_from([name for section in ("fairq", "sed") for name in settings_of(section)])


@given(
    policy=st.sampled_from([*available(), "x"]) | st.none() | json_values,
    parameters=st.dictionaries(NAMES | st.text(max_size=5), json_values, max_size=3) | json_values,
)
def test_garbage_is_never_a_server_error(policy, parameters):
    response = change(GARBAGE, {"policy": policy, "parameters": parameters})
    assert response.status_code in (200, 400, 422), response.body


GARBAGE = RestSite()
