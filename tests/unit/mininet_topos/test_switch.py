"""Mininet must not change the loggers of other modules."""

import subprocess
import sys


def test_loggers_made_after_mininet_are_plain():
    code = (
        "import logging, mininet_topos.switch;"
        "log = logging.getLogger('fairq_ryu.anything');"
        "assert type(log) is logging.Logger, type(log);"
        "assert log.level == logging.NOTSET"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
