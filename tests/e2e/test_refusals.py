"""Controllers and agents that refuse to start: one line says why. No bridge is needed for that."""

import os
import socket
import subprocess

import pytest

from fairq_ryu.experiments.free_ports import free_port
from tests.support.lab import BIN, ENVIRONMENT, Process, fairq

pytestmark = pytest.mark.root
MANAGER = str(BIN / "ryu-manager")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[fairq]\nalfa = 0.2\n", "did you mean alpha?"),
        ("[fairq]\nalpha = 7\n", "more than 1"),
        ("[fairq_ryu]\nlease = soon\n", "is not a whole number"),
        ("[fairqq]\nalpha = 0.2\n", "did you mean [fairq]?"),
    ],
)
def test_a_wrong_setting_ends_the_controller_with_one_line(tmp_path, config, words):
    path = tmp_path / "bad.conf"
    path.write_text(config)
    assert fairq("check", str(path)).returncode == 2
    manager = Process(
        tmp_path / "log",
        MANAGER,
        "--ofp-tcp-listen-port",
        str(free_port()),
        "--wsapi-port",
        "0",
        "--config-file",
        str(path),
        "fairq_ryu.apps.fairq",
    )
    assert manager.process.wait(60) == 2
    lines = [line for line in manager.text.splitlines() if line.startswith("fairq_ryu:")]
    assert len(lines) == 1 and words in lines[0] and "Traceback" not in manager.text


def test_a_busy_port_ends_the_controller_with_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        manager = Process(
            tmp_path / "log",
            MANAGER,
            "--ofp-listen-host",
            "127.0.0.1",
            "--ofp-tcp-listen-port",
            port,
            "--wsapi-port",
            "0",
            "fairq_ryu.apps.fairq",
        )
        assert manager.process.wait(60) == 2
    assert f"port {port} is taken" in manager.text and "Traceback" not in manager.text


@pytest.mark.parametrize(
    ("app", "config", "words"),
    [
        ("sed", "[fairq_ryu]\npolicy = iqm\n", "start fairq_ryu.apps.iqm, or take that line out"),
        ("policy", "", "no policy is named"),
    ],
)
def test_a_contradictory_choice_of_policies_ends_the_controller_with_one_line(tmp_path, app, config, words):
    path = tmp_path / "bad.conf"
    path.write_text(config)
    ports = ("--ofp-tcp-listen-port", str(free_port()), "--wsapi-port", "0")
    manager = Process(
        tmp_path / "log",
        MANAGER,
        *ports,
        "--config-file",
        str(path),
        f"fairq_ryu.apps.{app}",
    )
    assert manager.process.wait(60) == 2
    lines = [line for line in manager.text.splitlines() if line.startswith("fairq_ryu:")]
    assert len(lines) == 1 and words in lines[0] and "Traceback" not in manager.text


def test_a_missing_open_vswitch_is_reported(tmp_path):
    answer = fairq("agent", "--bridge", "fqnone", env={**os.environ, "OVS_RUNDIR": str(tmp_path)})
    assert answer.returncode == 2
    assert "Open vSwitch is not running" in answer.stderr and answer.stderr.count("\n") == 1


def test_missing_root_privileges_are_reported(tmp_path):
    # This user may read everything: the checkout may be where only its owner can.
    reads = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    plain = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *reads]
    environment = {**ENVIRONMENT, "PATH": f"{BIN}:{os.environ['PATH']}"}
    command = [*plain, "fairq", "agent", "--bridge", "fqnone"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 2 and "needs root" in answer.stderr
