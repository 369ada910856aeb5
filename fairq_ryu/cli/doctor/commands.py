"""Commands that checks run, and remedies that they name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Half of the tools are in sbin, which is not on a plain user's PATH.
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Output:
    """The output of a command: `code` is its exit status, 127 if it is not found and 124 after a timeout.
    `text` is what it wrote to stdout, and `errors` what it wrote to stderr: a warning there is no part of an
    answer.
    """

    code: int
    text: str
    errors: str = ""

    @property
    def first_line(self) -> str:
        """The first line that is not blank, of stdout if there is one; else an empty string."""
        return next(iter(_lines(self.text) + _lines(self.errors)), "")

    @property
    def last_line(self) -> str:
        """The last line that is not blank, or an empty string: where programs print their error. Of
        stderr if the command failed and wrote to it, else of stdout if it can be.
        """
        streams = (self.text, self.errors) if self.code else (self.errors, self.text)
        return next(reversed(_lines(streams[0]) + _lines(streams[1])), "")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def search_path() -> str:
    """PATH, followed by the sbin directories."""
    return os.pathsep.join([os.environ.get("PATH", ""), *SBIN])


def which(command: str) -> str | None:
    """The full path of a command, searched for in the sbin directories too; None if it is not found."""
    return shutil.which(command, path=search_path())


def run(command: Sequence[str], timeout: float = 10.0) -> Output:
    """Run a command (`timeout` in seconds). Raises nothing."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "PATH": search_path(), "LC_ALL": "C"},
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Output(124, "", f"{command[0]} did not finish within {timeout:g} s")
    except OSError as error:
        return Output(127, "", f"{command[0]}: {error.strerror or error}")
    text, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    return Output(done.returncode, text, errors)


def install(package: str) -> str:
    """The remedy for a missing Debian package."""
    return f"apt-get install {package}"


def as_root() -> str:
    """The remedy for missing root: this command with sudo."""
    return f"sudo {Path(sys.executable).with_name('fairq')} doctor"
