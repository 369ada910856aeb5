"""``fairq shim``: its arguments."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import shim
from fairq_ryu.agent.programs.program import UNIFY_GRACE_S
from fairq_ryu.cli import main
from fairq_ryu.cli.commands import shim as shim_command
from fairq_ryu.config import schema
from fairq_ryu.packet.tcp_options import MAX_WSCALE


def test_arguments_reach_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[object, ...]] = []

    def run(*given: object) -> int:
        called.append(given)
        return 0

    monkeypatch.setattr(shim, "run", run)
    assert main.main(["shim", "--interface", "eth0"]) == 0
    assert main.main(["shim", "--interface", "eth0", "--mode", "reserved3", "--unify", "0"]) == 0
    assert main.main(["shim", "--interface", "eth0", "--unify", "7", "--unify-grace", "200"]) == 0
    grace = UNIFY_GRACE_S
    assert called[:2] == [("eth0", "reserved", None, grace), ("eth0", "reserved3", 0, grace)]
    assert called[2] == ("eth0", "reserved", 7, 200.0)


def test_times_and_scales_are_those_of_the_agents_settings() -> None:
    grace, scale = (schema.settings_of("agent")[name] for name in ("unify_grace", "unify_scale"))
    assert (grace.default, grace.maximum) == (shim_command._GRACE_S, shim_command._LONGEST_S)
    assert shim_command._LARGEST == scale.default == scale.maximum == MAX_WSCALE
    assert grace.default == UNIFY_GRACE_S


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--unify", "15"], "--unify 15: there is no such scale"),
        (["--unify", "-1"], "--unify -1: there is no such scale"),
        (["--unify", "7", "--unify-grace", "-1"], "--unify-grace -1 is no useful time"),
        (["--unify", "7", "--unify-grace", "nan"], "--unify-grace nan is no useful time"),
        (["--mode", "off"], "--mode off without --unify leaves nothing to do"),
    ],
)
def test_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["shim", "--interface", "eth0", *words]) == 2
    assert reason in capsys.readouterr().err
