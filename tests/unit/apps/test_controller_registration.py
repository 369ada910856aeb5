"""The applications register every patch of Ryu's connections and codec."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import fairq_ryu.apps.controller
from ryu.controller import controller
from ryu.ofproto import ofproto_v1_3_parser as parser
print(
    parser.OFPMatch.parser.__func__.__module__,
    parser.NXActionController2.parser.__func__.__module__,
    parser.OFPExperimenterStatsReply.cls_stats_body_cls.__module__,
    controller.datapath_connection_factory.__module__,
)
"""


def test_the_controller_registers_the_patches():
    """In a process of its own: other tests register them, too."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=True
    )
    modules = ("cached_matches", "controller_actions", "experimenter_multipart", "batched_io")
    assert done.stdout.split() == [f"fairq_ryu.ryu_compat.{name}" for name in modules]
