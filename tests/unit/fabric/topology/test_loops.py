"""Which groups of switches have a loop, and which switches are part of one."""

import pytest

from fairq_ryu.fabric.topology import loops
from fairq_ryu.model import PortKey


def heard(*segments):
    """Ports at the same segments, each as (bridge, port); every other direction is missing."""
    return [
        (PortKey(*one), PortKey(*other)) for first, *rest in segments for one in [first] for other in rest
    ]


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([], {(1,): (), (2,): (), (3,): (), (4,): ()}),
        ([[(1, 1), (2, 1)], [(2, 2), (3, 1)], [(2, 3), (4, 1)]], {(1, 2, 3, 4): ()}),
        ([[(1, 1), (2, 1)], [(2, 2), (3, 1)], [(3, 2), (1, 2)]], {(1, 2, 3): (1, 2, 3), (4,): ()}),
        ([[(1, 1), (2, 1)], [(1, 2), (2, 2)], [(2, 3), (3, 1)]], {(1, 2, 3): (1, 2), (4,): ()}),
        ([[(1, 1), (1, 2)], [(2, 1), (3, 1)]], {(1,): (1,), (2, 3): (), (4,): ()}),
        ([[(1, 1), (2, 1), (3, 1)]], {(1, 2, 3): (), (4,): ()}),  # a hub
        ([[(1, 1), (2, 1), (3, 1)], [(1, 2), (3, 2)]], {(1, 2, 3): (1, 3), (4,): ()}),
        ([[(1, 1), (1, 2), (2, 1)]], {(1, 2): (1,), (3,): (), (4,): ()}),
        # Bridges 8 and 9 are others.
        ([[(1, 1), (8, 1)], [(2, 1), (9, 1)]], {(1, 2): (), (3,): (), (4,): ()}),
        ([[(1, 1), (8, 1)], [(2, 1), (9, 1)], [(1, 2), (2, 2)]], {(1, 2): (1, 2), (3,): (), (4,): ()}),
    ],
)
def test_groups_and_their_loops(segments, expected):
    found = loops.groups(range(1, 5), heard(*segments))
    assert {tuple(sorted(group)): tuple(sorted(looped)) for group, looped in found} == expected
