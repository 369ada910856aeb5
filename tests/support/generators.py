"""Traffic generators on this machine instead of in Mininet's hosts."""

import contextlib
import subprocess

from fairq_ryu.experiments.traffic.workers import Worker, end_all


class Here:
    """This machine instead of a Mininet host."""

    name = "loopback"

    def popen(self, command, **options):
        return subprocess.Popen(command, **options)


@contextlib.contextmanager
def generators(folder):
    """Starts a generator of a role; the worker, and the port that it says it uses. All end at the end."""
    workers = []

    def begin(role, *arguments):
        worker = Worker(Here(), role, folder / "traffic.log", *arguments)
        workers.append(worker)
        return worker, worker.receive("ready", 20).get("port")

    yield begin
    end_all(workers)
    assert all(worker.process.returncode is not None for worker in workers)
