"""Services as their units say: run by systemd, or without it by the same command, user and capabilities.

Standard library only, because nothing of the project is there.
"""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UNITS = Path("/lib/systemd/system")
# Not in /tmp, which systemd empties when it starts.
LOGS = Path(tempfile.mkdtemp(prefix="fairq-installed-", dir="/var/log"))


def say(text):
    print(f"test-package: {text}", file=sys.stderr, flush=True)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


# The process of systemd, if it runs: it answers no process outside its own namespaces.
SYSTEMD: list[str] = []


def run_beside(*words):
    """Run a command in the namespaces of systemd if it runs, and here if it does not."""
    if not SYSTEMD:
        return run(*words)
    return run("nsenter", f"--target={SYSTEMD[0]}", "--pid", "--mount", "--", *words)


def until(condition, what, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for: {what}\n{logs()}"
        time.sleep(0.1)
    return value


def logs():
    return "\n".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in sorted(LOGS.glob("*.log")))


def rights(pid):
    """The user, the effective capabilities of a process, and whether it can get no new privileges."""
    text = Path(f"/proc/{pid}/status").read_text()
    values = dict(re.findall(r"^(\w+):\s*(\S+)", text, re.MULTILINE))
    return int(values["Uid"]), int(values["CapEff"], 16), int(values["NoNewPrivs"])


class WithoutSystemd:
    """A service whose process this program starts, and whose manager it is (sd_notify)."""

    def __init__(self, unit, instance=""):
        text = (UNITS / unit).read_text()
        values = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
        self.command = values["ExecStart"].replace("%i", instance).split()
        self.user = values.get("User", "root")
        self.capabilities = values["CapabilityBoundingSet"].split()
        self.log = LOGS / f"{unit}.log"
        self.process = None
        self.before = None
        # The file descriptors that the service has stored, by name.
        self.kept = {}
        self.manager = None
        if values["Type"] == "notify":
            path = LOGS / f"{unit}.notify"
            path.unlink(missing_ok=True)
            self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.manager.bind(str(path))
            self.manager.settimeout(20)

    def start(self):
        names = [name.removeprefix("CAP_").lower() for name in self.capabilities]
        bounds = ",".join(["-all", *(f"+{name}" for name in names)])
        command = ["setpriv", "--no-new-privs", f"--bounding-set={bounds}", "--inh-caps=-all"]
        if self.user != "root":
            command += [f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        command += self.command
        with self.log.open("a") as handle:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, close_fds=False,
                preexec_fn=self._in_the_new_process,
            )  # fmt: skip
        while self.manager is not None and "READY" not in self._notice():
            assert self.process.poll() is None, f"it has ended:\n{self.text()}"

    def _in_the_new_process(self):
        if self.manager is None:
            return
        os.environ["NOTIFY_SOCKET"] = self.manager.getsockname()
        if self.kept:
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in self.kept.values()]
            for number, fd in enumerate(high, 3):
                os.dup2(fd, number)
                os.close(fd)
            names = ":".join(self.kept)
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)), LISTEN_FDNAMES=names)

    def _notice(self):
        """The next thing that the service tells."""
        try:
            data, fds, _, _ = socket.recv_fds(self.manager, 4096, 4)
        except TimeoutError:
            raise AssertionError(f"it says nothing:\n{self.text()}") from None
        values = dict(line.split("=", 1) for line in data.decode().splitlines())
        if "FDSTOREREMOVE" in values and values["FDNAME"] in self.kept:
            os.close(self.kept.pop(values["FDNAME"]))
        elif "FDSTORE" in values:
            (self.kept[values["FDNAME"]],) = fds
        return values

    def text(self):
        return self.log.read_text()

    def rights(self):
        return rights(self.process.pid)

    def kill(self):
        """Kill the process; it is started again, as after a failure."""
        assert self.manager is None or set(self.kept) == {"config", "flows", "silent"}, self.kept
        self.process.kill()
        self.process.wait(10)
        self.start()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        while self.kept:
            self._notice()

    def before_upgrade(self):
        self.before = self.process.pid

    def after_upgrade(self):
        """Nobody restarts the process: it goes on with the old version until it is started again."""
        assert self.process.poll() is None and self.process.pid == self.before, "the upgrade has ended it"
        self.stop()
        self.start()

    def was_ended(self):
        """The process has ended in an orderly way, by somebody else."""
        return self.process.wait(10) == 0


class UnderSystemd:
    """The same as a service of systemd."""

    def __init__(self, unit, instance=""):
        self.name = unit.replace("@", f"@{instance}")
        self.before = None

    def start(self):
        try:
            run_beside("systemctl", "start", self.name)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()[-3000:]}") from None

    def text(self):
        return run_beside("journalctl", "--quiet", f"--unit={self.name}")

    def _main(self):
        """The number of its process, in the process namespace of systemd."""
        return int(run_beside("systemctl", "show", "--property=MainPID", "--value", self.name))

    def rights(self):
        inside = str(self._main())
        for path in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                numbers = re.search(r"^NSpid:\s*(.*)$", path.read_text(), re.MULTILINE)[1].split()
                if len(numbers) > 1 and numbers[-1] == inside:
                    return rights(path.parent.name)
        raise AssertionError(f"{self.name} has no process {inside}")

    def kill(self):
        first = self._main()
        run_beside("systemctl", "kill", "--signal=SIGKILL", self.name)
        until(lambda: self._main() not in (0, first), f"{self.name} to be started again")

    def stop(self):
        run_beside("systemctl", "stop", self.name)
        assert "Failed with result" not in self.text().splitlines()[-1], self.text()

    def before_upgrade(self):
        self.before = self._main()

    def after_upgrade(self):
        assert self._main() not in (0, self.before), "the upgrade has not restarted it"

    def was_ended(self):
        return (
            run_beside("systemctl", "show", "--property=ActiveState", "--value", self.name).strip()
            == "inactive"
        )


@contextlib.contextmanager
def systemd():
    """systemd as the first process of its own namespaces. Returns whether it could be started."""
    hierarchy = Path("/run/fairq-cgroup")
    own = hierarchy / f"fairq-{os.getpid()}"
    hierarchy.mkdir()
    run("mount", "-t", "cgroup2", "none", str(hierarchy))
    own.mkdir()
    script = (
        "mount -t cgroup2 none /sys/fs/cgroup && "
        "exec env -i container=fairq PATH=/usr/sbin:/usr/bin:/sbin:/bin "
        "/lib/systemd/systemd --unit=basic.target --log-target=journal --show-status=no"
    )
    enter = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--mount-proc",
        "--cgroup",
        "sh",
        "-c",
        script,
    ]
    with (LOGS / "systemd.log").open("w") as log:
        process = subprocess.Popen(
            enter, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=lambda: (own / "cgroup.procs").write_text("0"),
        )  # fmt: skip
    try:
        yield _is_up(process)
    finally:
        SYSTEMD.clear()
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        folders = sorted((path for path in own.rglob("*") if path.is_dir()), reverse=True)
        until(lambda: all(map(_removed, (*folders, own))), "the end of systemd's services")
        run("umount", str(hierarchy))
        hierarchy.rmdir()


def _is_up(process, seconds=30.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        enter = ["nsenter", f"--target={children[0]}", "--pid", "--mount", "--"] if children else ["false"]
        state = subprocess.run(
            [*enter, "systemctl", "is-active", "basic.target"], capture_output=True, check=False
        )
        if state.stdout.strip() == b"active":
            SYSTEMD[:] = children[:1]
            return True
        time.sleep(0.2)
    return False


def _removed(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()
