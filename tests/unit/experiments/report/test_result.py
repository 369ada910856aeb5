import json
import resource

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import origin, result
from tests.support.results import once


def policy(name, p99, rto, goodput, mean_bytes=None):
    fct = {"count": 1, "mean": p99 / 2, "sd": p99 / 4, "p50": 1, "p95": 2, "p99": p99, "max": p99}
    return {
        "policy": name, "failed": None,
        "mice": {"fct_ms": fct, "rto_timeouts": rto, "segments_dropped": 0},
        "elephants": {"goodput_sum_mbit": goodput, "jain": 1.0},
        "queue": {"rounds": {"mean_bytes": mean_bytes} if mean_bytes else None, "qdisc_drops": 4},
    }  # fmt: skip


def test_the_others_are_compared_with_the_first_policy():
    compared = result.compare([policy("droptail", 800, 400, 190), policy("fairq", 20, 2, 185.25)])
    assert set(compared) == {"fairq"}
    assert compared["fairq"]["fct_p99_times_lower"] == pytest.approx(40)
    assert compared["fairq"]["mice_rto_share"] == pytest.approx(0.005)
    assert compared["fairq"]["goodput_share"] == pytest.approx(0.975)
    assert compared["fairq"]["mice_drops_share"] is None  # nothing to divide by
    assert compared["fairq"]["queue_mean_share"] is None
    assert result.compare([]) == {}
    assert result.compare([policy("droptail", 800, 400, 190)]) == {}


def test_failed_policies_are_kept_but_not_compared():
    whole = result.assemble(
        {"title": "t"}, {}, once([{"policy": "droptail", "failed": "no"}, policy("fairq", 20, 2, 185)])
    )
    assert len(whole["policies"]) == 2
    assert whole["comparison"] == {}


def test_a_stored_result_is_read_back(tmp_path):
    whole = result.assemble(
        {"title": "t"}, {"kernel": "6"}, once([policy("a", 8, 1, 2), policy("b", 4, 1, 2)])
    )
    path = result.save(whole, tmp_path)
    assert result.load(tmp_path) == whole == json.loads(path.read_text())
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(("quick", "option"), [(True, " --quick"), (False, "")])
def test_a_part_of_a_series_is_made_by_the_command_of_the_series(tmp_path, quick, option):
    """Its configuration is in no file that its user could name."""
    place = tmp_path / "SD2"
    place.mkdir()
    about = {"scenario_name": "sed-large", "kernel": "6", "overrides": {}, "policy_config": "[sed]"}
    about |= {"git_commit": "c0ffee", "git_changes": "", "git_dirty": False}
    result.save(result.assemble({"title": "t"}, about, once([policy("a", 8, 1, 2)])), place)
    (place / "sweep.json").write_text("{}")
    assert origin.line(result.load(place)).endswith("--policy a --config-file FILE")
    (tmp_path / "papers.json").write_text(json.dumps({"quick": quick}))
    said = origin.line(result.load(place))
    assert said.endswith(f"; command fairq run papers{option} --only SD2")


@pytest.fixture
def full_disk():
    """No file may grow beyond 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_draft_and_the_earlier_result(tmp_path, full_disk):
    result.save({}, tmp_path)
    with pytest.raises(OSError, match="File too large"):
        result.save({"title": "t" * 200}, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text()) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"schema": result.SCHEMA})])
def test_files_that_are_no_result_are_refused(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(UserError) as caught:
        result.load(tmp_path)
    assert "fairq run" in caught.value.remedy
    assert "\n" not in str(caught.value)


def test_no_result_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no"):
        result.load(tmp_path / "nowhere")


def test_drops_are_compared_by_the_round():
    first, other = policy("droptail", 800, 400, 190), policy("fairq", 20, 2, 185)
    first["rounds"], other["rounds"] = {"made": 30}, {"made": 60}
    assert result.compare([first, other])["fairq"]["drops_share"] == pytest.approx(0.5)
    first["rounds"] = other["rounds"] = None  # without mice
    assert result.compare([first, other])["fairq"]["drops_share"] == pytest.approx(1)


@pytest.mark.parametrize("other", ["fairq-result/2", "fairq-result/4", 3])
def test_a_result_of_another_schema_is_refused(tmp_path, other):
    whole = result.assemble({"title": "t"}, {}, once([policy("a", 8, 1, 2)]))
    path = result.save({**whole, "schema": other}, tmp_path)
    with pytest.raises(UserError) as caught:
        result.load(tmp_path)
    assert caught.value.message == (
        f"{path} is of schema {other!r}, and this version of fairq_ryu reads only 'fairq-result/3'"
    )
    assert "repeat the run with this version" in caught.value.remedy


@pytest.mark.parametrize(
    ("full", "words"),
    [(1, "it is in .*/result.json"), (2, "nothing but the table is left. Remedy: make room")],
)
def test_a_result_without_room_is_saved_elsewhere_or_the_error_says_so(tmp_path, monkeypatch, full, words):
    places = []

    def save(_result, directory):
        places.append(directory)
        if len(places) <= full:
            raise OSError(28, "No space left on device")
        return directory / "result.json"

    monkeypatch.setattr(result, "save", save)
    monkeypatch.setattr(result.tempfile, "mkdtemp", lambda prefix: _made(tmp_path / prefix))
    with pytest.raises(
        UserError, match=f"cannot be written to {tmp_path}/out: No space left on device; {words}"
    ):
        result.saved({}, tmp_path / "out")
    spare = tmp_path / "fairq-result-"
    assert places == [tmp_path / "out", spare]
    assert spare.exists() == (full == 1)  # an empty one is not left


def _made(directory):
    directory.mkdir()
    return str(directory)
