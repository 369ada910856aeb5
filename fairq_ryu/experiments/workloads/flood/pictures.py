"""The pictures of a flood of SYNs."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common.pictures import ELEPHANTS, QUEUE

PICTURES = (QUEUE, *ELEPHANTS)
