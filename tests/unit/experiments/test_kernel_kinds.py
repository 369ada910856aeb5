"""Whether the kernel has a qdisc: asked in a network namespace of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fairq_ryu.experiments import kernel_kinds


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs in place of the system's: ``unshare`` starts the rest, ``ip`` and ``tc`` are written by the
    test.
    """

    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    write("unshare", '[ "$1 $2" = "-n --" ] || exit 9; shift 2; exec "$@"')
    write("ip", "exit 0")
    write(
        "tc",
        """case "$*" in
*" fq_codel"*) echo Error: Specified qdisc kind is unknown. >&2; exit 2;;
*" red limit 1"*) printf 'Error: Invalid\\nparameter.\\n' >&2; exit 2;;
*" sfb"*) echo RTNETLINK answers: No such file or directory >&2; exit 2;;
*" cake"*) echo 'Unknown qdisc "cake", hence option "bandwidth" is unparsable' >&2; exit 1;;
esac""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_each_that_is_refused_has_its_reason(tools: Path) -> None:
    wanted = {
        "fq_codel": "fq_codel limit 82",
        "kernel-red": "red limit 1",
        "kernel-sfb": "sfb",
        "cake": "cake bandwidth 1mbit",
        "pie": "pie",
    }
    assert kernel_kinds.refused(wanted) == {
        "fq_codel": "the kernel has no fq_codel (module sch_fq_codel)",
        "kernel-red": "tc refuses red: Invalid parameter",
        "kernel-sfb": "the kernel has no sfb (module sch_sfb)",
        "cake": "the kernel has no cake (module sch_cake)",
    }
    assert kernel_kinds.refused({"pie": "pie"}) == {}


def test_without_a_namespace_nothing_is_said_of_the_kernel(tools: Path) -> None:
    (tools / "ip").write_text("#!/bin/sh\necho RTNETLINK answers: Operation not permitted >&2; exit 2\n")
    with pytest.raises(OSError, match="Operation not permitted"):
        kernel_kinds.refused({"pie": "pie"})


def test_the_option_of_a_kind_is_linux_s() -> None:
    assert kernel_kinds.option("fq_codel") == "CONFIG_NET_SCH_FQ_CODEL"


def test_a_namespace_that_hangs_is_an_error(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_arguments: object, **_options: object) -> None:
        raise subprocess.TimeoutExpired("unshare", 60)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(OSError, match="took more than 60 s"):
        kernel_kinds.refused({"pie": "pie"})
