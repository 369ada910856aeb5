"""``ryu-manager``: Ryu's own, with one-line errors for its command line.

Ryu ends with a traceback when a file of ``--config-file`` or an application does not exist. setup.py installs
this in place of Ryu's script; everything else is Ryu's.
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
    """Run Ryu with the arguments of the command line. Returns the exit code; 2: an error that the user can
    correct.
    """
    try:
        check(sys.argv[1:])
        _run()
    except UserError as error:
        print(f"ryu-manager: {error}", file=sys.stderr)
        return 2
    return 0


def check(arguments: Sequence[str]) -> None:
    """Raise :class:`UserError` if a named file is missing or cannot be read, or if an application of this
    project does not exist.
    """
    ours = [word for word in arguments if word.startswith("fairq_ryu.")]
    for file in _config_files(arguments):
        if not file.exists():
            raise UserError(
                f"{_OPTION}: there is no file {file}",
                f"create it (it may be empty: touch {file}), or leave the option out",
            )
        if ours:  # the files of other applications are read by Ryu only
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
    except ModuleNotFoundError:  # its parent is not a package
        return False


def _no_app(name: str) -> UserError:
    from fairq_ryu.policies.base import app_of, available

    # A policy of another package has no application of its own.
    modules = [app_of(each) for each in (*available(), "policy")]
    apps = [each.removeprefix(APPS) for each in modules if _is_there(each)]
    close = closest(name.rpartition(".")[2], apps)
    remedy = f"did you mean {APPS}{close}?" if close else f"there are {APPS}{{{','.join(apps)}}}"
    return UserError(f"there is no application {name}", remedy)


def _run() -> None:
    # Importing Ryu's modules changes Python's own, so they are imported only when they are needed.
    from oslo_config import cfg
    from ryu import cfg as ryu_cfg
    from ryu.cmd import manager

    try:
        manager.main()
    except ModuleNotFoundError as error:
        named = [*ryu_cfg.CONF.app_lists, *ryu_cfg.CONF.app]
        if not any(f"{app}.".startswith(f"{error.name}.") for app in named):
            raise  # the application exists, and a module that it imports is missing
        app = next(app for app in named if f"{app}.".startswith(f"{error.name}."))
        raise _no_app(app) from None
    except (cfg.Error, OSError) as error:
        # Errors of Ryu's own reader of files, for example about abbreviated options.
        if isinstance(error, OSError) and error.filename is None:
            raise
        raise UserError(str(error).splitlines()[0], "see ryu-manager --help") from None
