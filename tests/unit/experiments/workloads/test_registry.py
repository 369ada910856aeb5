"""Every workload has all its parts, and a run or a report loads only what it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.measurement import Measurement
from fairq_ryu.experiments.workloads.common.pictures import Picture
from fairq_ryu.experiments.workloads.common.rows import Shown

FOLDER = Path(registry.__file__).parent
ROOT = FOLDER.parents[2]
every = pytest.mark.parametrize("workload", registry.WORKLOADS.values(), ids=registry.WORKLOADS)


def test_the_folders_are_those_that_are_registered():
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")} - {"common"}
    assert folders == set(registry.WORKLOADS)


@every
def test_a_workload_has_settings_a_measurement_rows_and_pictures(workload):
    assert issubclass(workload.scenario, Scenario) and workload.scenario is not Scenario
    assert issubclass(workload.measurement(), Measurement)
    assert workload.table.rows and workload.table.ratios
    assert workload.pictures() and all(isinstance(each, Picture) for each in workload.pictures())


@every
def test_the_short_table_has_few_rows_and_what_every_workload_costs(workload):
    table = workload.table
    short = [row.label for row in (*table.rows, *table.ratios) if row.shown is Shown.SHORT]
    grouped = [row for group in table.groups for row in group.rows if row.shown is Shown.SHORT]
    assert len(short) + len(grouped) <= 14
    assert {"drops at the bottleneck", "queue mean", "switch's thread, of one CPU"} < set(short)
    assert all(ratio.label for ratio in table.ratios if ratio.shown is not Shown.FULL)


@every
def test_headlines_are_rows_of_the_table_and_some_are_drawn(workload):
    rows = set(workload.table.rows)
    found = workload.table.headlines
    assert {each.row.label for each in found} > {"queue mean"} and any(each.drawn for each in found)
    if workload.name != "pairs":  # its table has times by rate only
        assert {each.row._replace(shown=Shown.FULL) for each in found} <= {
            row._replace(shown=Shown.FULL) for row in rows
        }


@every
def test_a_scenario_has_the_class_of_its_workload(workload):
    stored = [scenario.load(name) for name in scenario.names()]
    found = [each for each in stored if each.traffic == workload.name]
    assert found and all(type(each) is workload.scenario for each in found)


def test_only_volleys_have_a_floor():
    stored = {name: scenario.load(name) for name in ("incast", "rounds", "deadlines", "flood")}
    floors = {name: registry.WORKLOADS[each.traffic].floor(each) for name, each in stored.items()}
    assert {name for name, floor in floors.items() if floor is not None} == {"incast", "rounds"}


@pytest.mark.parametrize("name", ["incast", "rounds"])
def test_a_scenario_can_do_without_its_floor(name):
    chosen = scenario.load(name, {"floor": "no"})
    assert registry.WORKLOADS[chosen.traffic].floor(chosen) is None


def test_a_ratio_of_several_workloads_appears_once():
    names = [each.name for each in registry.ratios()]
    assert len(names) == len(set(names))
    assert "queue_mean_share" in names and "last_byte_times_lower" in names


def loaded(program, *options):
    """The modules that a program has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, *options, "-c", f"import sys, {program}; print(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("runner", "matplotlib"),
        ("report.table", "matplotlib"),
        ("report.report", "fairq_ryu.experiments.testbed"),
    ],
)
def test_modules_that_are_not_needed_are_not_loaded(module, absent):
    assert absent not in loaded(f"fairq_ryu.experiments.{module}")


def test_a_generator_loads_the_standard_library_only():
    """The generator is started in every host."""
    modules = loaded("fairq_ryu.experiments.traffic.generator", "-S", "-s")
    modules -= {"mininet_topos", "mininet_topos.patience"}  # standard library only, too
    assert {each.partition(".")[0] for each in modules} - sys.stdlib_module_names == {"__main__", "fairq_ryu"}
