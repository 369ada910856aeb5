"""The benchmark of takeover with real controllers and a real database, once."""

import contextlib

import pytest

from bench.owners import Case, Running
from bench.takeover import take_over


@pytest.mark.timeout(300)
def test_a_killed_controller_is_replaced_and_started_again(tmp_path):
    case = Case(controllers=2, bridges=2, ports=2, connections=1, rate=20.0)
    with contextlib.ExitStack() as stack:
        run = Running(case, tmp_path, stack)
        run.wait(lambda: run.known() > case.all_ports, "new connections")
        found = take_over(run)
        assert 1 <= len(found.seconds) <= case.bridges
        run.wait(lambda: sum(each["alive"] for each in run.cluster()["controllers"]) == 2, "it")
