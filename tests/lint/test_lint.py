"""Lint as a test: it runs beside the tests that use the machine's network, instead of before all of them."""

import os
import subprocess

import pytest

from tests.support.lab import ROOT


@pytest.mark.timeout(600)  # without mypy's cache, on a busy machine
def test_the_project_is_clean():
    # Under sudo as the caller, who could not write root's caches later.
    owner = int(os.environ.get("SUDO_UID", os.geteuid()))
    answer = subprocess.run(
        ["make", "lint"],
        cwd=ROOT,
        user=owner,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout
