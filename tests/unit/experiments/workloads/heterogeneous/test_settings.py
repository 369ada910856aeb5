import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.heterogeneous.settings import Group


def test_flows_are_numbered_over_all_groups():
    chosen = scenario.load("mixed-30", {"group_flows": "[2, 1, 3]", "group_starts_s": "[0, 5, 0.5]"})
    assert chosen.members == (
        Group("cubic", range(2), 0.0),
        Group("hstcp", range(2, 3), 5.0),
        Group("reno", range(3, 6), 0.5),
    )
    assert not any(group.udp for group in chosen.members)


def test_a_group_is_one_flow_from_the_start_by_default():
    chosen = scenario.load("mixed-udp", {"group_starts_s": "[]", "groups": '["cubic", "udp", "cubic"]'})
    assert chosen.members == (
        Group("cubic", range(1), 0.0),
        Group("udp", range(1, 2), 0.0),
        Group("cubic", range(2, 3), 0.0),
    )
    assert chosen.members[1].udp
    # What is loaded and checked: UDP has none, and hosts need theirs.
    assert chosen.long_controls == ("cubic",)
    assert scenario.load("mixed", {"cc": "bbr"}).controls == ("bbr", "cubic", "reno")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"groups": "cubic"}, "groups is 'cubic', must be a list of texts"),
        ({"groups": "[]"}, "groups is [], must be a list of texts"),
        (
            {"groups": '["cubik", "reno"]'},
            "groups has 'cubik', which is unknown. Remedy: did you mean cubic?",
        ),
        ({"group_flows": "[1]"}, "groups has 2 entries and group_flows 1. Remedy: give one entry"),
        ({"group_flows": "[1, 0]"}, "group_flows is [1, 0], and its member 0 must be from 1 to 1,000"),
        ({"group_flows": "[600, 500]"}, "group_flows has 1,100 flows in all"),
        ({"group_starts_s": "[0, 1, 2]"}, "groups has 2 entries and group_starts_s 3"),
        ({"group_starts_s": "[0, 150]"}, "a group starts at 150 s, and the measurement ends at 150 s"),
        ({"udp_mbit": "60"}, "udp_mbit is given, but no group is udp"),
        ({"groups": '["cubic", "udp"]'}, "there is a group udp, and udp_mbit is 0"),
        ({"short_least_bytes": "20_000_000"}, "short_least_bytes is 20000000, and short_most_bytes 10000000"),
        ({"sender_cc": '["reno"]'}, "whatever the sender. Remedy: remove sender_cc"),
        ({"group_starts": "[0, 1]"}, "unknown setting 'group_starts'. Remedy: did you mean group_starts_s?"),
    ],
)
def test_wrong_settings_are_one_clear_line(overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load("mixed", overrides)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_contradictions_are_reported_at_once():
    wrong = {"groups": '["cubik", "upd"]', "group_flows": "[1]", "udp_mbit": "60", "senders": "250"}
    wrong |= {"topology": "fattree", "way": "normal"}
    with pytest.raises(UserError) as caught:
        scenario.load("mixed", wrong)
    lines = str(caught.value).splitlines()
    assert ["did you mean" in line for line in lines] == [False, True, True, False, False]
    assert "250 senders" in lines[0] and "did you mean udp?" in lines[2]
    assert all(line.startswith("mixed.toml: ") for line in lines)


def test_a_window_is_what_is_under_way_and_in_the_queue():
    # 25 Mbit/s for 120 ms are 375,000 bytes, and the buffer holds as many.
    assert scenario.load("mixed").window_bytes == 750_000
