"""The plan of the series: complete, readable, and with --quick short enough."""

import re
import tomllib
from pathlib import Path

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario, variants
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.papers import expression, plan
from fairq_ryu.experiments.simulator import laws, order, runner
from fairq_ryu.experiments.simulator.program import find_ns3

QUICK_S = 25 * 60
REPORT_S = 60
"""For the report, and to start."""
EVERY = [each for paper in plan.load() for each in paper.experiments]
QUICK = [each for paper in plan.load(quick=True) for each in paper.experiments]
BOTH = [
    pytest.param(each, id=f"{each.id}-{kind}")
    for kind, all in (("full", EVERY), ("quick", QUICK))
    for each in all
]


def test_every_experiment_of_the_papers_is_there():
    ids = {each.id for each in EVERY} | {claim.id for each in EVERY for claim in each.claims}
    wanted = {"FQ": 5, "IQ": 4, "SD": 5, "AF": 5, "CT": 3}
    assert ids >= {f"{name}{number}" for name, count in wanted.items() for number in range(1, count + 1)}
    assert ids >= {"RW2", "RW3", "RW4"}


def test_every_file_is_in_the_plan():
    assert {path.stem for path in plan.FOLDER.glob("*.toml")} == set(plan._ORDER)


def test_names_are_those_of_one_directory_each():
    for papers in (EVERY, QUICK):
        ids = [each.id for each in papers]
        assert len(set(ids)) == len(ids) and all(each.isalnum() for each in ids)


def test_quick_takes_less_than_25_minutes():
    seconds = sum(len(each.policies) * each.repeat * each.seconds for each in QUICK)
    assert seconds + REPORT_S < QUICK_S
    assert all(each.repeat >= 3 for each in QUICK)  # with two, hardly an interval says anything
    for paper in plan.load(quick=True):
        assert paper.experiments, paper.name  # each paper has its part


@pytest.mark.parametrize("experiment", BOTH)
def test_an_experiment_can_be_run(experiment, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[4])
    chosen = scenario.load(experiment.scenario, experiment.set)
    assert chosen.source and chosen.claim
    given = tomllib.loads(Path(_path(experiment)).read_text())
    assert given["scale"] == chosen.scale  # k is in the file
    (tmp_path / "experiment.conf").write_text(experiment.config)
    variants.read(experiment.policies, machine.known_policies(), tmp_path / "experiment.conf")
    assert scenario.load(experiment.given, experiment.set) == chosen  # from the project's directory
    if experiment.simulated:
        assert experiment.given.startswith("simulator/scenarios/")
        order.check(chosen)
        for policy in experiment.policies:
            runner._scenario(chosen, policy)
            config = runner.loader.load([tmp_path / "experiment.conf"])
            laws.laws_of(policy, config, chosen.rate_mbit, order.round_trip_ms(chosen))
        find_ns3()


def test_a_claim_below_a_table_is_of_what_was_run():
    """What a paper found with 50 elephants, or with other deadlines, is not below the table of 200."""
    regime = {"elephants", "deadlines_s", "tenant_flows", "tenant_weights", "groups"}
    other = [each for each in EVERY if regime & each.set.keys()]
    assert {each.id for each in other} == {"RW3", "IQ4", "IQ4b", "SD3", "CT1c"}
    for each in other:
        assert {"source", "claim"} <= each.set.keys(), each.id


def test_long_round_trips_are_told_to_the_laws():
    far = [each for each in EVERY if scenario.load(each.scenario, each.set).rtt_ms >= 50]
    assert len(far) == 8
    for each in far:
        rtt_ms = scenario.load(each.scenario, each.set).rtt_ms
        assert tomllib.loads(each.config)["fairq_ryu"]["base_rtt"] == rtt_ms / 1000


def _path(experiment):
    return experiment.scenario if experiment.simulated else scenario.STORED / f"{experiment.scenario}.toml"


@pytest.mark.parametrize("experiment", EVERY, ids=lambda each: each.id)
def test_claims_are_of_policies_and_flows_that_are_run(experiment):
    assert experiment.claims
    flows = list(getattr(scenario.load(experiment.scenario, experiment.set), "flows", ()))
    for claim in experiment.claims:
        for other, policy in map(expression.of_other, claim.expression.policies):
            of = plan.chosen(plan.load(), [other])[0] if other else experiment
            assert policy in of.policies, claim.holds
            assert of.repeat == experiment.repeat
        named = [int(part.split(".")[0]) for part in claim.holds.split("sweep.n=")[1:]]
        assert set(named) <= set(flows)
        assert claim.words and claim.paper and claim.ours and len(claim.short) <= 18


LAWS = ("FairQ", "IQM", "RSED", "SED", "AFQ", "AFCD")
"""Those that there are in two forms: as published, and this project's."""
OF_PAPERS = [each for each in EVERY if not each.id.startswith("CT")]


@pytest.mark.parametrize("experiment", OF_PAPERS, ids=lambda each: each.id)
def test_a_claim_says_which_law_it_is_about(experiment):
    """The one as published, or this project's."""
    for claim in experiment.claims:
        bases = {
            policy.partition("[")[0] for _id, policy in map(expression.of_other, claim.expression.policies)
        }
        for law in LAWS:
            ours, published = law.lower() in bases, f"{law.lower()}-paper" in bases
            assert (f"this project's {law}" in claim.ours) == ours, claim.ours
            assert (re.search(rf"\b{law} as published", claim.ours) is not None) == published, claim.ours


@pytest.mark.parametrize("experiment", EVERY, ids=lambda each: each.id)
def test_a_law_as_published_is_judged_where_it_is_run(experiment):
    """Not only this project's form of it."""
    judged = {policy for claim in experiment.claims for policy in claim.expression.policies}
    assert {each for each in experiment.policies if each.endswith("-paper")} <= judged


@pytest.mark.parametrize("experiment", BOTH)
def test_drops_are_claimed_for_each_round(experiment):
    """A disturbed round is made again, so policies may have made different numbers of them."""
    for claim in experiment.claims:
        assert claim.holds.count("qdisc_drops") == claim.holds.count("rounds.made")


@pytest.mark.parametrize("experiment", QUICK, ids=lambda each: each.id)
def test_quick_judges_many_claims_of_what_it_runs(experiment):
    there = [set(claim.expression.policies) <= set(experiment.policies) for claim in experiment.claims]
    assert sum(there) * 3 >= len(there)
    full = next(each for each in EVERY if each.id == experiment.id)
    assert set(experiment.policies) <= set(full.policies)
    assert experiment.claims == full.claims and experiment.seconds <= full.seconds


def test_an_experiment_like_another_has_its_parts():
    other, like = plan.chosen(plan.load(), ["FQ3", "FQ3b"])
    assert (like.scenario, like.repeat, like.seconds) == (other.scenario, other.repeat, other.seconds)
    assert like.set == {"buffer_bytes": "125000"} and like.policies == ("droptail", "fairq")
    both = [each for each in other.claims if set(each.expression.policies) <= set(like.policies)]
    assert 0 < len(both) < len(other.claims)
    assert [each.holds for each in like.claims] == [each.holds for each in both]
    assert {each.id for each in like.claims} == {"FQ3b"}
    modern = plan.chosen(plan.load(), ["IQ1m"])[0]
    assert modern.set == {"hosts": "modern", "rto_min_ms": "0"}
    assert "FQ3b" not in [each.id for each in QUICK]


def test_experiments_are_chosen_by_id():
    assert plan.chosen(plan.load(), []) == EVERY
    assert [each.id for each in plan.chosen(plan.load(), ["SD2", "FQ3"])] == ["FQ3", "SD2"]
    with pytest.raises(UserError, match=r"there is no experiment 'FQ33'.*FQ3"):
        plan.chosen(plan.load(), ["FQ33"])
    with pytest.raises(UserError, match="--quick has no experiment SD1"):
        plan.chosen(plan.load(quick=True), ["SD1"])


def test_the_page_names_every_scenario():
    page = (Path(__file__).parents[4] / "docs/reproducing.md").read_text()
    names = {Path(each.scenario).name for each in EVERY}
    assert {name for name in names if f"`{name}`" not in page and f"/{name}`" not in page} == set()


@pytest.mark.parametrize("name", ["IQ1s", "IQ2s"])
def test_simulated_ports_mark_where_those_of_the_bench_do(name, tmp_path):
    """At 17 % of the buffer, as IQM's paper."""
    experiment = plan.chosen(plan.load(), [name])[0]
    (tmp_path / "experiment.conf").write_text(experiment.config)
    config = runner.loader.load([tmp_path / "experiment.conf"])
    law = laws.laws_of("mark-dctcp", config, 1000, 0.5).queue
    assert law.mark_ppm == 170_000
    bench = plan.chosen(plan.load(), [name[:-1]])[0]
    assert "mark-dctcp[fraction=0.17]" in bench.policies
