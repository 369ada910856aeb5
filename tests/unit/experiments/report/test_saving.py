"""What a run does when there is no room for its result."""

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import result


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
