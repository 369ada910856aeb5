"""Each fault of the table, in the middle of an incast: nothing is lost, and control comes back.

`make test-faults` makes all of them, as often as FAIRQ_FAULT_ROUNDS says; `make test` the most telling ones.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mininet_topos.patience import patient
from tests.faults.site import LEASE, Site, made_site
from tests.faults.table import FAULTS, Fault, Forwarding, Windows
from tests.faults.unruled import Unruled
from tests.support.kept import Kept
from tests.support.lab import until
from tests.support.traces import processes

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
ROUNDS = int(os.environ.get("FAIRQ_FAULT_ROUNDS", "0"))
BACK = 3.0
"""Normal control is back after so long, seconds."""


@pytest.fixture(scope="module")
def sites() -> Iterator[Kept]:
    kept = Kept(lambda _key: made_site())
    with leaving_no_programs():
        yield kept
        kept.close()


@contextlib.contextmanager
def leaving_no_programs() -> Iterator[None]:
    before = processes()
    yield
    assert until(lambda: processes().keys() <= before.keys()), processes()


if ROUNDS:

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
    @pytest.mark.parametrize("number", range(ROUNDS))
    def test_nothing_is_lost_and_control_comes_back(
        sites: Kept, fault: Fault, number: int, record_property: Any
    ) -> None:
        try:
            record_property("back", make(sites.of("site"), fault))
        except BaseException:
            sites.close()  # the next test has a new one
            raise

else:

    def test_the_most_telling_faults() -> None:
        """One test, so that no agent of it runs beside a test that has the machine for itself."""
        with leaving_no_programs(), made_site() as site:
            for fault in FAULTS:
                if fault.short:
                    make(site, fault)


def make(site: Site, fault: Fault) -> float:
    """Make the fault in the middle of traffic. How long normal control took to come back, seconds."""
    site.see_bpf()
    before, resets = site.lasting(), site.resets()
    with site.load() as load, contextlib.ExitStack() as looks:
        site.wait_until_governed(load)
        volleys = load.done.copy()
        limit = lambda: LEASE + load.timeout()  # noqa: E731
        unruled = Unruled(site, load)
        if fault.windows is Windows.OPEN:
            looks.enter_context(unruled)
        fault.begin(site, load)
        if fault.forwarding is Forwarding.CONTINUES:
            then = load.acknowledged()
            passes = lambda: all(now > old for now, old in zip(load.acknowledged(), then, strict=True))  # noqa: E731
            assert until(passes), f"no data passes\n{site.explained(load)}"
        if fault.windows is Windows.END:
            free = site.within(lambda: site.is_free(load), limit())
            assert free is not None, f"windows are lowered after {limit():.1f} s\n{site.explained(load)}"
        elif fault.windows is Windows.STAY:
            time.sleep(patient(LEASE))  # no rule lives longer by itself
            site.see_bpf()
            assert not site.is_free(load), f"windows have ended\n{site.explained(load)}"
        assert until(lambda: fault.begun(site, load)), f"while it lasts\n{site.explained(load)}"
        fault.end(site, load)
        took = site.within(site.governs(load), BACK)
        assert took is not None, f"no normal control after {BACK:g} s\n{site.explained(load)}"
        looks.close()
        assert unruled.longest <= patient(limit()), f"lowered without a law for {unruled.longest:.1f} s"
        assert until(lambda: fault.ended(site, load)), f"afterwards\n{site.explained(load)}"
        assert until(lambda: all(load.done[kind] > volleys[kind] for kind in ("mouse", "deadline flow")))
        assert load.finish() == [], site.logs()
    assert site.resets() == resets
    assert until(lambda: site.inventory() == before), site.differs(before)
    assert until(lambda: not site.left_of_bpf()), site.left_of_bpf()
    return took
