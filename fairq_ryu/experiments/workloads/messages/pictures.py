"""The pictures of messages beside elephants."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common.pictures import ELEPHANTS, QUEUE

PICTURES = (QUEUE, *ELEPHANTS)
