"""The limits of a virtual machine, with a program in QEMU's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vm import boot
from tests.vm.kernels import Kernel

# More than a busy machine needs to start a program.
LONG = 60.0


@pytest.fixture
def run(tmp_path, monkeypatch):
    exchange = tmp_path / "exchange"
    exchange.mkdir()

    def run(program: str, seconds: float = LONG) -> boot.Outcome:
        qemu = tmp_path / "qemu"
        qemu.write_text(f"#!/bin/sh\ncd '{exchange}'\n{program}\n")
        qemu.chmod(0o755)
        monkeypatch.setattr(boot, "QEMU", str(qemu))
        kernel = Kernel("6.1.0", Path("/image"), Path("/initramfs"), Path("/modules"))
        return boot.boot("tcg", kernel, Path("/root.ext4"), "true", exchange, seconds)

    return run


def test_a_machine_that_does_not_come_to_its_script_is_ended_long_before_the_limit_of_the_script(
    run, monkeypatch
):
    monkeypatch.setattr(boot, "BOOT_SECONDS", 0.1)
    hung = run(f"exec sleep {LONG}")
    assert (hung.code, hung.started) == (None, False) and hung.seconds < LONG


def test_the_script_has_its_own_limit(run, monkeypatch, tmp_path):
    monkeypatch.setattr(boot, "BOOT_SECONDS", 0.1)
    (tmp_path / "exchange/started").touch()
    done = run("sleep 1; echo end; echo 3 >code")
    assert (done.code, done.started, done.last) == (3, True, "end")
    hung = run(f"exec sleep {LONG}", seconds=0.1)
    assert (hung.code, hung.started) == (None, True) and hung.seconds < LONG
