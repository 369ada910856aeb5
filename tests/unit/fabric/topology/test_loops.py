"""Which groups of switches have a loop."""

import pytest

from fairq_ryu.fabric.topology import loops


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([], {"a": False, "b": False, "c": False, "d": False}),
        ([("a", "b"), ("b", "c"), ("b", "d")], {"abcd": False}),
        ([("a", "b"), ("b", "c"), ("c", "a")], {"abc": True, "d": False}),
        ([("a", "b"), ("a", "b"), ("c", "d")], {"ab": True, "cd": False}),
        ([("a", "a"), ("b", "c")], {"a": True, "bc": False, "d": False}),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], {"abcd": True}),
    ],
)
def test_groups_and_their_loops(links, expected):
    assert {"".join(sorted(group)): loop for group, loop in loops.groups("abcd", links)} == expected
