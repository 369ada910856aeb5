"""``ryu-manager``: Ryu's own, which says in one line what is wrong with its command line.

Ryu ends with a traceback when a file of ``--config-file`` or an application is not there. setup.py installs
this in the place of Ryu's script; everything else is Ryu's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from fairq_ryu.config import files
from fairq_ryu.errors import UserError
from fairq_ryu.setting import closest

APPS = "fairq_ryu.apps."
_OPTION = "--config-file"


def main() -> int:
    """Run Ryu with the arguments of the command line. Returns the exit code; 2: the user can put it right."""
    try:
        check(sys.argv[1:])
        _run()
    except UserError as error:
        print(f"ryu-manager: {error}", file=sys.stderr)
        return 2
    return 0


def check(arguments: Sequence[str]) -> None:
    """Raise :class:`UserError` if a file that is named is missing or cannot be read, or if there is no such
    application of ours.
    """
    ours = [word for word in arguments if word.startswith("fairq_ryu.")]
    for file in _config_files(arguments):
        if not file.exists():
            raise UserError(
                f"{_OPTION}: there is no file {file}",
                f"create it (it may be empty: touch {file}), or leave the option out",
            )
        if ours:  # what other applications may write, Ryu knows best
            files.read(file)
    for word in ours:
        if not _is_there(word):
            raise _no_app(word)


def _config_files(arguments: Sequence[str]) -> list[Path]:
    after = [following for word, following in pairwise(arguments) if word == _OPTION]
    joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{_OPTION}=")]
    return [Path(name).expanduser() for name in (*after, *joined)]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what should be its package is none
        return False


def _no_app(name: str) -> UserError:
    from fairq_ryu.policies.base import available

    # A policy of another package has no application of its own.
    apps = [each for each in (*available(), "policy") if _is_there(f"{APPS}{each}")]
    close = closest(name.rpartition(".")[2], apps)
    remedy = f"did you mean {APPS}{close}?" if close else f"there are {APPS}{{{','.join(apps)}}}"
    return UserError(f"there is no application {name}", remedy)


def _run() -> None:
    # Ryu's modules change Python's own when they are imported: not before they are needed.
    from oslo_config import cfg
    from ryu import cfg as ryu_cfg
    from ryu.cmd import manager

    try:
        manager.main()
    except ModuleNotFoundError as error:
        named = [*ryu_cfg.CONF.app_lists, *ryu_cfg.CONF.app]
        if not any(f"{app}.".startswith(f"{error.name}.") for app in named):
            raise  # an application is there, and lacks something itself
        app = next(app for app in named if f"{app}.".startswith(f"{error.name}."))
        raise _no_app(app) from None
    except (cfg.Error, OSError) as error:
        # What Ryu's own reader of files makes of them: of options that were abbreviated, for one.
        if isinstance(error, OSError) and error.filename is None:
            raise
        raise UserError(str(error).splitlines()[0], "see ryu-manager --help") from None
