"""Each flood of the table, beside an incast with elephants: nothing is lost, all is bounded and answers.

Here each lasts two seconds, and what flows keep of their rate is not looked at: other tests run meanwhile.
`make test-floods` measures it.
"""

from __future__ import annotations

import pytest

from tests.floods.run import SHORT, make
from tests.floods.site import made_flood_site
from tests.floods.table import FLOODS

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


def test_every_flood() -> None:
    """One test, so that no agent of it runs beside a test that has the machine for itself."""
    with made_flood_site() as site:
        for flood in FLOODS:
            measured = make(site, flood, SHORT)
            assert measured.sent > 0, flood.name
