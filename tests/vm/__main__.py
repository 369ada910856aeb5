"""`make test-vm`: the product on the distributions' own kernels, in virtual machines.

    python3 -m tests.vm          every object on every kernel, and one incast on the kernel datapath
    python3 -m tests.vm --all    also doctor, tests/switch, tests/faults, a soak, chosen tests of tests/e2e,
                                 with the kernel's datapath and some with the userspace one
    python3 -m tests.vm --machine debian12 --job "make demo" --job tests/switch
                                 some of these in that machine
    python3 -m tests.vm --machine debian12 -- COMMAND...
                                 COMMAND in that machine, in the checkout with its test tools;
                                 --datapath userspace: without the kernel's datapath

Needs root, apt, and Debian's keyring; installs QEMU and mmdebstrap where they are missing, no package of
Python. Exit code 77: virtual machines cannot be had here, and nothing was tested.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.vm import boot, jobs, roots
from tests.vm.apt import Apt
from tests.vm.kernels import Kernel, kernel
from tests.vm.machines import MACHINES, CannotRun, Machine

CANNOT = 77
# What this needs, and the Debian packages.
_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "cpio": "cpio",
    "mke2fs": "e2fsprogs",
    "depmod": "kmod",
    "setpriv": "util-linux",
    boot.QEMU: "qemu-system-x86",
}


def say(text: str) -> None:
    print(f"test-vm: {text}", file=sys.stderr, flush=True)


def check_machine() -> None:
    """Raises :class:`CannotRun`."""
    if os.geteuid() != 0:
        raise CannotRun("not root")
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    if shutil.which("apt-get") is None:
        raise CannotRun("no apt-get")
    missing = sorted({package for name, package in _PROGRAMS.items() if shutil.which(name) is None})
    if missing:
        say(f"system packages {' '.join(missing)} ...")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *missing]):
            done = subprocess.run(
                ["apt-get", *words], capture_output=True, text=True, env=environment, check=False
            )
            if done.returncode:
                raise CannotRun(f"apt-get {words[0]}: {done.stderr.strip()}")
    boot.check()


class Bench:
    """The machines of one run: their kernels, and the images of their roots, in ``work``."""

    def __init__(self, machines: Sequence[Machine], work: Path, commit: str) -> None:
        self.machines, self.work, self.commit = machines, work, commit
        self.cache = roots.cache_directory()
        self.kernels: dict[str, Kernel] = {}
        self._apts: dict[str, Apt] = {}

    def prepare(self, *arguments: str, whole: bool) -> None:
        """Fetch the kernels, and make an image for each suite, with the objects of every suite's compiler."""
        for each in self.machines:
            say(f"{each.name}: packages ...")
            self._apts[each.name] = apt = Apt(each, self.cache / "apt" / each.name)
            self.kernels[each.name] = kernel(each, apt, self.cache)
        trees: dict[str, Path] = {}
        for machine in {each.suite: each for each in self.machines}.values():
            say(f"{machine.suite}: a root, and set-up of {self.commit[:7]} in it ...")
            work = self.work / machine.suite
            work.mkdir()
            tree = roots.base(machine, self._apts[machine.name], self.cache, whole)
            trees[machine.suite] = roots.set_up(tree, work, self.commit, *arguments)
        compiled = {roots.compiler(tree): roots.objects(tree) for tree in trees.values()}
        for tree in trees.values():
            roots.add_objects(tree, compiled)
        for suite, tree in trees.items():
            roots.finish(tree, self.image(suite))

    def image(self, suite: str) -> Path:
        """The image of a suite's root."""
        return self.work / f"{suite}.ext4"

    def run(self, machine: Machine, job: jobs.Job, how: str) -> jobs.Result:
        """Run a job in a machine. One that ends before it comes to the script is started once more, because
        emulators fail, too; the result says so.
        """
        version = self.kernels[machine.name].version
        for starts in (1, 2):
            say(f"{machine.name}, {version}: {job.name} ...")
            exchange = Path(tempfile.mkdtemp(prefix=f"{machine.name}-", dir=self.work))
            outcome = boot.boot(
                how, self.kernels[machine.name], self.image(machine.suite), job.script, exchange, job.seconds
            )
            result = jobs.Result(machine, version, job, outcome, exchange, starts)
            say(f"{machine.name}: {job.name}: {jobs.verdict(result)[1]} after {outcome.seconds:.0f} s")
            if outcome.code is None:
                print(outcome.console, file=sys.stderr)
            if outcome.started:
                break
        return result


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A directory for one run, removed after it; one run at a time."""
    cache = roots.cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob("run-*"):  # of a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="run-", dir=cache) as name:
            yield Path(name)


def main() -> int:
    """Run what the command line says; the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.vm", description="Tests on stock kernels.")
    most = sum(each.seconds for each in jobs.LONG) / 3600
    parser.add_argument("--all", action="store_true", help=f"everything, at most {most:.0f} hours a machine")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this one (repeatable)")
    names = list(dict.fromkeys(each.name for each in jobs.LONG))
    parser.add_argument("--job", action="append", choices=names, help="only this one (repeatable)")
    parser.add_argument("--commit", default="HEAD", help="what is tested; uncommitted changes never are")
    parser.add_argument(
        "--results", type=Path, help="write the results into this file, for python3 -m tests.vm.results"
    )
    parser.add_argument("--out", type=Path, help="a new directory for what COMMAND leaves in /exchange/out")
    parser.add_argument("--seconds", type=float, default=1800, help="time limit for COMMAND")
    parser.add_argument(
        "--datapath",
        choices=["kernel", "userspace"],
        default="",
        help="of Open vSwitch, for --job or COMMAND",
    )
    parser.add_argument("command", nargs="*", help="run this instead")
    options = parser.parse_args()
    if options.out and not (options.command and len(options.machine or ()) == 1):
        parser.error("--out needs one --machine and a COMMAND")
    if options.command and options.job:
        parser.error("--job and COMMAND exclude each other")
    if options.job and not jobs.chosen(options.job, options.datapath):
        parser.error(f"no --job has datapath {options.datapath}")
    machines = [MACHINES[name] for name in options.machine or MACHINES]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    try:
        check_machine()
        with workspace() as work:
            bench = Bench(machines, work, roots.commit_of(options.commit))
            if options.command:
                datapath = options.datapath or "kernel"
                work_list = [jobs.command(options.command, options.seconds, datapath)]
            elif options.job:
                work_list = jobs.chosen(options.job, options.datapath)
            else:
                work_list = jobs.LONG if options.all else jobs.SHORT
            tools = ["--dev"] if options.all or options.command or options.job else []
            bench.prepare(*tools, whole=not options.all)
            how = boot.accelerator(bench.kernels[machines[0].name])
            say(f"QEMU with {how}; {time.monotonic() - begun:.0f} s until here")
            results: list[jobs.Result] = []
            for machine, job in itertools.product(machines, work_list):
                results.append(bench.run(machine, job, how))
                text, content, passed = jobs.summary(results, bench.commit)
                if options.results:  # after each: a run takes hours
                    content.write(options.results)
            if options.out:
                shutil.copytree(results[0].exchange / "out", options.out, dirs_exist_ok=True)
    except CannotRun as error:
        say(f"cannot be done here: {error}")
        return CANNOT
    if options.command:
        return max(1 if each.outcome.code is None else each.outcome.code for each in results)
    print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
