"""Requests generated from the OpenAPI document, and the answers checked against it, over a real
connection.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.restsite import TOKEN

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 8


@pytest.mark.timeout(110)
def test_answers_conform_to_the_openapi_document(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-W", "ignore", "-m", "tests.support.restsite", "0"]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as site,
    ):
        try:
            assert site.stdout is not None
            url = site.stdout.readline().strip()
            done = subprocess.run(
                [
                    str(Path(sys.executable).parent / "schemathesis"),
                    *("--config-file", str(ROOT / "tests/schemathesis.toml")),
                    *("run", f"{url}/openapi.json", "--exclude-path", "/v1/live"),
                    *("--header", f"Authorization: Bearer {TOKEN}"),
                    *("--max-time", str(SECONDS), "--no-color", "--warnings", "off"),
                    *("--generation-database", ":memory:", "--seed", "1"),
                ],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            assert site.poll() is None, "the controller has ended"
        finally:
            site.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout or "No issues found" in done.stdout, done.stdout
    assert "Traceback" not in log.read_text(), log.read_text()
