"""``fairq shim``: its arguments."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import shim
from fairq_ryu.cli import main


def test_arguments_reach_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[object, ...]] = []

    def run(*given: object) -> int:
        called.append(given)
        return 0

    monkeypatch.setattr(shim, "run", run)
    assert main.main(["shim", "--interface", "eth0"]) == 0
    assert main.main(["shim", "--interface", "eth0", "--mode", "reserved3", "--unify", "0"]) == 0
    assert called == [("eth0", "reserved", None), ("eth0", "reserved3", 0)]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--unify", "15"], "--unify 15: there is no such scale"),
        (["--unify", "-1"], "--unify -1: there is no such scale"),
        (["--mode", "off"], "--mode off without --unify leaves nothing to do"),
    ],
)
def test_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["shim", "--interface", "eth0", *words]) == 2
    assert reason in capsys.readouterr().err
