"""Set-up and doctor know every program that the project starts (fairq_ryu/config/programs.txt)."""

import os
import subprocess

import pytest

from fairq_ryu.cli.doctor import commands, tools
from fairq_ryu.config import programs
from fairq_ryu.experiments.measure import machine
from tests.support import program_calls

# Programs of .venv, of the project itself, or made by the test that starts them.
OWN = {
    *(
        "clang-format",
        "delayline",
        "fairq",
        "make-root.sh",
        "python",
        "python3",
        "ryu-manager",
        "schemathesis",
        "simulate",
    ),
    *("bins", "no-such-command-anywhere", "tell"),
}
KNOWN = {each.name: each for each in programs.known()}


@pytest.fixture(scope="module")
def starts():
    return program_calls.Search(program_calls.python_files()).starts


def test_started_programs_are_recognised(starts):
    assert [start.where for start in starts if not start.program] == []
    assert len(starts) > 150  # otherwise the search does not work


def test_every_program_that_python_starts_is_known(starts):
    unknown = {
        start for start in starts if start.program not in KNOWN.keys() | OWN | program_calls.ALWAYS | {""}
    }
    assert not unknown, f"put these into fairq_ryu/config/programs.txt: {sorted(unknown)}"


@pytest.mark.parametrize("path", program_calls.scripts(), ids=lambda path: path.name)
def test_every_program_that_a_script_starts_is_known(path):
    found = program_calls.in_script(path.read_text())
    assert not found - KNOWN.keys() - OWN - program_calls.ALWAYS


@pytest.mark.parametrize(
    ("place", "purposes"),
    [
        # Doctor checks compilers, and the benchmark compiles the laws for the host.
        (("fairq_ryu/cli/doctor/", "bench/"), {"run", "build", "optional", "system"}),
        (("fairq_ryu/", "mininet_topos/"), {"run", "optional", "system"}),
        (("tests/",), {"run", "build", "test", "optional", "system"}),
    ],
)
def test_programs_are_listed_with_the_purpose_of_their_callers(starts, place, purposes):
    for program, where in starts:
        if where.startswith(place) and program in KNOWN and "doctor/" not in where.removeprefix(place[0]):
            assert KNOWN[program].purpose in purposes, (program, where)


def test_tests_do_not_need_optional_programs(starts):
    """Except for those of packages, in a root where they are installed, and for virtual machines."""
    elsewhere = ("tests/package/", "tests/vm/")
    places = [start for start in starts if not start.where.startswith(elsewhere)]
    started_by_tests = {start.program for start in places if start.where.startswith("tests/")}
    assert {name for name in started_by_tests if name in KNOWN and KNOWN[name].purpose == "optional"} == set()


def print_missing(*absent):
    """The packages that set-up would install on this machine without these programs."""
    words = " ".join(absent)
    # Set-up finds a program by `command -v NAME`.
    function = f'() {{ case " {words} " in *" $2 "*) return 1 ;; *) builtin command "$@" ;; esac; }}'
    done = subprocess.run(
        ["bash", "scripts/setup.sh", "--dev", "--print-missing"],
        cwd=program_calls.ROOT,
        env={**os.environ, "BASH_FUNC_command%%": function},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_set_up_installs_missing_packages():
    absent = programs.needed("run", "build", "test")
    packages = {each.package for each in absent}
    assert packages <= set(print_missing(*(each.name for each in absent)))


def test_set_up_does_not_install_optional_packages():
    before = print_missing()
    assert print_missing(*(each.name for each in programs.needed("optional", "system"))) == before


def test_doctor_names_missing_programs_and_the_effect(monkeypatch):
    monkeypatch.setattr(commands, "which", lambda name: None)
    checks = {check.name: check for check in tools.check_programs()}
    for kind, status, purposes in (
        ("programs to run", "fail", ("run", "system")),
        ("programs to build", "warn", ("build",)),
    ):
        for each in programs.needed(*purposes):
            assert each.name in checks[kind].found and each.package in checks[kind].remedy
        assert checks[kind].status == status
    for each in programs.needed("optional"):
        assert f"without {each.name}: {each.use}" in checks["programs"].found


def test_a_run_names_missing_programs(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.shutil, "which", lambda name: None if name == "ifconfig" else f"/bin/{name}")
    with pytest.raises(machine.UserError, match="ifconfig is not installed") as raised:
        machine.check_machine([])
    assert "net-tools" in raised.value.remedy


@pytest.mark.parametrize("line", ["tc", "tc iproute2", "tc iproute2 somewhen x", "tc iproute2 run"])
def test_an_incomplete_line_is_refused(line):
    with pytest.raises(ValueError, match="not a program, a package, a purpose and a use"):
        list(programs.parse(line))


# The search


@pytest.mark.parametrize(
    "code",
    [
        'subprocess.run(["bpftool", "prog"])',
        'subprocess.check_output("bpftool prog", shell=True)',
        'subprocess.Popen(args=["bpftool"])',
        'host.cmd("cd /; x=1 bpftool prog | head")',
        'host.cmd(f"bpftool {what}")',
        'host.cmd("bpftool", "prog")',
        'os.execvp("bpftool", [])',
        'subprocess.run(["unshare", "-n", "--", "sh", "-c", "true && bpftool prog"])',
        'def show(*words):\n    subprocess.run(words)\nshow("bpftool", "prog")',
        'def show(words):\n    first(list(words))\ndef first(argv):\n    host.popen(argv)\nshow(["bpftool"])',
        'class Here:\n    def __init__(self, log, *argv):\n        subprocess.run(argv)\nHere(1, "bpftool")',
        'COMMAND = ["bpftool"]\ndef show():\n    subprocess.run([*COMMAND, "prog"])',
        'for command in (["true"], ["bpftool"]):\n    subprocess.run(command)',
        'subprocess.run(["bpftool"] if new else ["true"])',
    ],
)
def test_a_program_is_found_in_every_kind_of_call(tmp_path, code):
    path = tmp_path / "code.py"
    path.write_text(code)
    assert "bpftool" in {start.program for start in program_calls.Search([path]).starts}


def test_calls_with_an_unknown_program_are_listed(tmp_path):
    path = tmp_path / "code.py"
    path.write_text("subprocess.run(invent())")
    assert {start.program for start in program_calls.Search([path]).starts} == {""}
