import dataclasses

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import checking, scenario


def values(**changes):
    return {**scenario.load("incast").settings, **changes}


@pytest.mark.parametrize("name", scenario.names())
def test_stored_scenarios_are_valid(name):
    assert scenario.load(name).title


def test_incast_is_the_setup_of_the_papers():
    incast = scenario.load("incast")
    assert (incast.senders, incast.rate_mbit, incast.buffer_bytes) == (16, 25.0, 125_000)
    assert (incast.elephants, incast.mice_per_sender, incast.mice_bytes, incast.cc) == (8, 2, 11_500, "cubic")
    assert incast.rounds >= 10


def test_overrides_get_the_type_of_the_setting():
    chosen = scenario.load("incast", {"rounds": "30", "rate_mbit": "50", "cc": "reno", "title": '"7"'})
    assert chosen.rounds == 30
    assert chosen.rate_mbit == 50.0
    assert isinstance(chosen.rate_mbit, float)
    assert chosen.cc == "reno"
    assert chosen.title == "7"


def test_a_scenario_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        scenario.load("incast").rounds = 1


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"round": "3"}, "--set: unknown setting 'round'. Remedy: did you mean rounds?"),
        ({"rounds": "0"}, "rounds is 0, must be from 1 to 100,000. Remedy: write a plain whole number"),
        ({"rounds": "2.5"}, "rounds is 2.5, must be a whole number"),
        ({"rounds": "true"}, "rounds is True, must be a whole number"),
        (
            {"senders": "many"},
            "senders is 'many', must be a whole number. Remedy: write a plain whole number, for",
        ),
        ({"rounds": ""}, "no value"),
        ({"rate_mbit": "nan"}, "rate_mbit is nan, must be from 1"),
        ({"rate_mbit": "inf"}, "rate_mbit is inf, must be from 1"),
        (
            {"rate_mbit": "50M"},
            "--set: rate_mbit is '50M', must be a number in Mbit/s. Remedy: write a plain number, for",
        ),
        ({"buffer_bytes": "1000"}, "buffer_bytes is 1000, must be from 1,514 to"),
        (
            {"topology": "ring"},
            "topology is 'ring', which is unknown. Remedy: known are incast, tor, dumbbell",
        ),
        (
            {"topology": "leafspin"},
            "topology is 'leafspin', which is unknown. Remedy: did you mean leafspine?",
        ),
        ({"topology": "3"}, "topology is 3, must be a text"),
        ({"topology": "fattree", "k": "4", "uplink_mbit": "0"}, "16 senders, but this topology has 1 to 12"),
        ({"topology": "fattree", "k": "5", "uplink_mbit": "0"}, "k is 5, must be even"),
        ({"topology": "fattree", "k": "0", "uplink_mbit": "0"}, "k is 0, must be from 2 to 16"),
        ({"leaves": "3"}, "topology 'incast' has no setting 'leaves'"),
        ({"k": "4", "topology": "dumbbell"}, "topology 'dumbbell' has no setting 'k'"),
        ({"uplink_mbit": "0"}, "topology 'incast' has no setting 'uplink_mbit'"),
        ({"cc": "5"}, "cc is 5, must be a text"),
        ({"sender_cc": "reno"}, "sender_cc is 'reno', must be a list of texts"),
        ({"sender_cc": "[1]"}, "sender_cc is [1], must be a text"),
        ({"elephants": "0", "mice_per_sender": "0"}, "nothing to send"),
        ({"seed": "1\nrounds = 3"}, "seed is"),
        ({"traffic": "rain"}, "traffic is 'rain', which is unknown"),
        ({"repeats": "3"}, "traffic 'incast' has no setting 'repeats'"),
        ({"sizes_bytes": "[100]"}, "traffic 'incast' has no setting 'sizes_bytes'"),
        ({"sack": "1"}, "sack is 1, must be yes or no"),
        ({"sack": "maybe"}, "sack is 'maybe', must be yes or no"),
    ],
)
def test_wrong_settings_are_one_clear_line(overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load("incast", overrides)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_a_missing_setting_is_named():
    incomplete = values()
    del incomplete["buffer_bytes"]
    with pytest.raises(UserError, match="'buffer_bytes' is missing"):
        scenario.build(incomplete)


def test_all_errors_are_reported_at_once_a_line_each():
    wrong = {
        "topology": "incast",
        "sender": 3,
        "rate_mbit": "50M",
        "buffer_bytes": 10,
        "k": 4,
        "elephants": 8,
    }
    with pytest.raises(UserError) as caught:
        scenario.build(wrong, "mine.toml", overridden={"rate_mbit"})
    lines = str(caught.value).splitlines()
    helps = {name: each.metadata["help"] for name, each in checking.KNOWN.items()}
    assert [line.split(". Remedy")[0] for line in lines] == [
        "mine.toml: unknown setting 'sender'",
        "mine.toml: topology 'incast' has no setting 'k'",
        "mine.toml: setting 'senders' is missing",
        "--set: rate_mbit is '50M', must be a number in Mbit/s",
        "mine.toml: buffer_bytes is 10, must be from 1,514 to 1,073,741,824 in bytes",
        "mine.toml: setting 'mice_per_sender' is missing",
        "mine.toml: setting 'mice_bytes' is missing",
    ]
    assert "did you mean senders?" in lines[0]
    assert lines[2].endswith(f"add senders = 16 ({helps['senders']})")
    assert lines[3].endswith(f"for example --set rate_mbit=50 ({helps['rate_mbit']})")


def test_errors_of_set_are_reported_with_those_of_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("senders = 3\n")
    with pytest.raises(UserError) as caught:
        scenario.load(str(path), {"rounds": "", "cc": "reno"})
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("--set rounds: no value")
    assert [line.split("'")[1] for line in lines[1:]] == [
        "rate_mbit", "buffer_bytes", "elephants", "mice_per_sender", "mice_bytes"
    ]  # fmt: skip


def test_settings_of_an_unknown_topology_are_not_checked():
    with pytest.raises(UserError) as caught:
        scenario.build(values(topology="leafspin", leaves=3, spines="two"))
    assert "\n" not in str(caught.value)
    assert "did you mean leafspine?" in caught.value.remedy


def test_missing_settings_have_their_defaults(tmp_path):
    path = tmp_path / "small.toml"
    needed = ("senders", "rate_mbit", "buffer_bytes", "elephants", "mice_per_sender", "mice_bytes")
    path.write_text("".join(f"{name} = {values()[name]}\n" for name in needed))
    chosen = scenario.load(str(path))
    assert chosen.title == "small"
    assert dataclasses.replace(chosen, title=scenario.load("incast").title) == scenario.load("incast")
    fabric = scenario.load(str(path), {"topology": "leafspine"})
    assert (fabric.leaves, fabric.spines, fabric.uplink_mbit) == (3, 2, 0.0)
    assert scenario.load(str(path), {"topology": "fattree", "senders": "12"}).k == 4


@pytest.mark.parametrize("each", checking.KNOWN.values(), ids=lambda each: each.name)
def test_the_example_that_an_error_shows_is_accepted(each):
    owners = [each.metadata["topologies"] or ("incast",), checking.workloads_with(each.name)]
    checked = checking.Checked({"topology": owners[0][0], "traffic": owners[1][0]}, "")
    checked._check(each, each.metadata["example"])
    assert checked.values[each.name] == each.metadata["example"]


@pytest.mark.parametrize("name", scenario.names())
def test_the_settings_of_a_scenario_build_it_again(name):
    chosen = scenario.load(name)
    assert scenario.build(chosen.settings) == chosen
    assert None not in chosen.settings.values()


def test_settings_of_other_topologies_are_absent():
    assert (scenario.load("incast").leaves, scenario.load("incast").uplink_mbit) == (None, None)
    chosen = scenario.load("incast-leafspine", {"uplink_mbit": "300"})
    assert (chosen.leaves, chosen.spines, chosen.uplink_mbit, chosen.k) == (3, 2, 300.0, None)
    assert isinstance(chosen.uplink_mbit, float)


def test_the_other_topologies_have_the_traffic_of_incast():
    incast = scenario.load("incast").settings
    for name in ("incast-dumbbell", "incast-leafspine", "incast-fattree"):
        other = scenario.load(name).settings
        differs = {key for key in incast if other[key] != incast[key]}
        assert differs <= {"title", "topology", "senders", "rate_mbit"}
    assert scenario.load("incast-fattree").senders == 12


@pytest.mark.parametrize(
    ("name", "overrides", "words"),
    [
        ("deadlines", {"sizes_bytes": "[100, 200]"}, "sizes_bytes has 2 entries and deadlines_s 5"),
        ("deadlines", {"sizes_bytes": "100"}, "sizes_bytes is 100, must be a list"),
        ("deadlines", {"sizes_bytes": "[]"}, "sizes_bytes is [], must be a list"),
        (
            "deadlines",
            {"sizes_bytes": "[1, 2, 3, 4, 5]"},
            "sizes_bytes is [1, 2, 3, 4, 5], and its member 1 must be from 64",
        ),
        (
            "deadlines",
            {"sizes_bytes": "[100.5]"},
            "sizes_bytes is [100.5], and its member 100.5 must be a whole number",
        ),
        (
            "deadlines",
            {"deadlines_s": '["soon"]'},
            "deadlines_s is ['soon'], and its member 'soon' must be a number",
        ),
        ("deadlines", {"elephants": "1"}, "traffic 'deadlines' has no setting 'elephants'"),
        ("rounds", {"flows": "[1, 0]"}, "flows is [1, 0], and its member 0 must be from 1 to"),
        ("rounds", {"prepared": "3"}, "prepared is 3, must be yes or no"),
        ("flood", {"senders": "1"}, "a flood needs elephants, and a sender besides"),
        ("flood", {"elephants": "0"}, "a flood needs elephants, and a sender besides"),
        ("flood", {"rounds": "1"}, "traffic 'flood' has no setting 'rounds'"),
        ("messages", {"message_interval_s": "20"}, "no connection sends two messages"),
    ],
)
def test_wrong_settings_of_a_kind_of_traffic(name, overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load(name, overrides)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_without_a_kind_of_traffic_are_still_read():
    old = values()
    for name in ("traffic", "sack", "timestamps", "capture", "after_s"):
        del old[name]
    chosen = scenario.build(old)
    assert (chosen.traffic, chosen.sack, chosen.timestamps) == ("incast", True, True)
    assert (chosen.capture, chosen.after_s) == (False, 0)
    assert chosen == scenario.build(values())


def test_lists_and_texts_get_the_type_of_the_setting():
    chosen = scenario.load("rounds", {"flows": "[100, 200]", "sack": "no", "timestamps": "false"})
    assert (chosen.flows, chosen.sack, chosen.timestamps) == ((100, 200), False, False)
    assert scenario.load("deadlines").deadlines_s == (0.3, 0.8, 1.0, 3.0, 5.0)


def test_the_experiments_are_those_of_the_papers_with_sizes_scaled_as_the_rate_is():
    small, large = scenario.load("deadlines"), scenario.load("deadlines-fanin")
    paper = 1000  # Mbit/s
    assert [paper / small.rate_mbit * size for size in small.sizes_bytes] == [8e6, 12e6, 30e6, 50e6, 64e6]
    assert [paper / large.rate_mbit * size for size in large.sizes_bytes] == [20e3, 60e3, 100e3, 140e3, 200e3]
    assert (small.endless, small.repeats, large.flows) == (1, 10, (1, 5, 10, 15, 20))


def test_a_fan_in_has_a_receiver_for_each_application_where_there_are_several():
    assert scenario.load("deadlines-fanin").plan.receivers == ["h21", "h22", "h23", "h24", "h25"]
    assert scenario.load("incast-dumbbell").plan.receivers == ["h17"]
    assert scenario.load("rounds").plan.receivers == ["r"]


def test_an_unknown_scenario_lists_the_known_ones():
    with pytest.raises(UserError) as caught:
        scenario.load("outcast")
    assert "'outcast'" in caught.value.message
    assert "did you mean incast?" in caught.value.remedy
    with pytest.raises(UserError) as caught:
        scenario.load("zebra")
    assert all(name in caught.value.remedy for name in scenario.names())


def test_a_scenario_by_path(tmp_path):
    path = tmp_path / "mine.toml"
    text = (scenario.STORED / "incast.toml").read_text().replace("senders = 16", "senders = 3")
    path.write_text(text)
    assert scenario.load(str(path)).senders == 3
    path.write_text("senders = = 3")
    with pytest.raises(UserError, match="is not TOML"):
        scenario.load(str(path))
    with pytest.raises(UserError, match="there is no scenario"):
        scenario.load(str(tmp_path / "other.toml"))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not TOML"):
        scenario.load(str(path))


def test_a_stop_of_the_controller_before_volleys_needs_volleys():
    with pytest.raises(UserError, match="controller_stopped_s needs volleys"):
        scenario.load("incast", {"controller_stopped_s": "1", "mice_per_sender": "0"})
    made = scenario.load("incast", {"controller_stopped_s": "1.5", "round_interval_s": "2"})
    assert made.whole_interval_s == 3.5
