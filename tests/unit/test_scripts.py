"""What shell scripts and the Makefile leave behind. Programs that need root are replaced by others here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "ipv4/tcp_allowed_congestion_control": "reno cubic\n",
    "ipv4/tcp_available_congestion_control": "reno cubic bbr\n",
    "core/wmem_default": "212992\n",
    "core/rmem_default": "212992\n",
}


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def programs(at: Path, **scripts: str) -> dict[str, str]:
    """An environment in which these programs are found first."""
    for name, script in scripts.items():
        write(at / name.replace("_", "-"), f"#!/bin/bash\n{script}\n", 0o755)
    return os.environ | {"PATH": f"{at}:{os.environ['PATH']}"}


def test_clean_removes_what_root_has_made_as_well(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    gone = (".hypothesis/x", "bench/__pycache__/a.pyc", "tests/unit/__pycache__/a.pyc", "dist/it.whl")
    gone += (".venv/bin/python", "fairq_ryu/agent/bpf/far.bpf.o", "mininet_topos/delayline/.stamp-delayline")
    kept = ("results/a/__pycache__/b", "fairq_ryu/agent/bpf/far.bpf.c", "mininet_topos/delayline/a.c")
    for each in (*gone, *kept):
        write(tmp_path / each, "")
    # A user may remove nothing of it.
    rm = '[ -n "$ROOT" ] && PATH=${PATH#*:} exec rm "$@"'
    env = programs(tmp_path / "bin", id="echo 1000", sudo='ROOT=1 exec "$@"', rm=rm)
    done = subprocess.run(["make", "clean"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [each for each in gone if (tmp_path / each).exists()] == []
    assert all((tmp_path / each).exists() for each in kept)


@pytest.mark.parametrize("at", ["read", "run"])
def test_a_test_in_a_fresh_root_that_is_ended_leaves_the_settings_of_the_machine(tmp_path, at):
    """``read``: while the script still reads settings; ``run``: when all are changed."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    script, net = tmp_path / "scripts" / "test-fresh.sh", tmp_path / "net"
    text = script.read_text()
    assert "NET=/proc/sys/net\n" in text
    script.write_text(text.replace("NET=/proc/sys/net\n", f"NET={net}\n"))
    for name, value in SETTINGS.items():
        write(net / name, value)
    run = f"cp -r {net} {tmp_path}/during; kill -TERM $STARTED; sleep 9"
    env = programs(
        tmp_path / "bin",
        id="echo 0",
        setpriv='shift 2; exec "$@"',
        unshare=f'[ "${{@: -1}}" = true ] || {{ {run}; }}',
        cat=f'[ {at}$1 != read{net}/core/rmem_default ] || kill -TERM $STARTED; exec /bin/cat "$@"',
        **dict.fromkeys(("apt_get", "nsenter", "pivot_root", "mount", "umount", "mmdebstrap"), ""),
    )
    env |= {"FAIRQ_FRESH": "1", "TMPDIR": str(tmp_path)}
    command = ["bash", "-c", f"STARTED=$$ exec {script} --packages"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode in (143, -15), done.stderr
    assert {name: (net / name).read_text() for name in SETTINGS} == SETTINGS
    assert not list(tmp_path.glob("fairq-fresh.*"))
    if at == "run":
        changed = (tmp_path / "during" / "ipv4" / "tcp_allowed_congestion_control").read_text()
        assert changed == "reno cubic bbr\n"
