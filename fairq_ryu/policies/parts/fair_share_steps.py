"""The arithmetic of the fair share m_f of AFQ and AFCD: Eq. 1, 4 and 5 of the AFCD paper (Xue et al.).

Two keep a share by it: the law that judges packets (:class:`~fairq_ryu.policies.queue_laws.flows.FlowShares`,
the twin of ``agent/bpf/laws/queue_flows.h``) with each packet, and the controller
(:class:`~fairq_ryu.policies.parts.fair_share.FairShare`) with each report of an agent. Integers in the order
of the switch, so that all have the same share after the same updates. Shares are in 1/65536 samples.
"""

from __future__ import annotations

from fairq_ryu.queue_law_spec import FRAME

_NS_PER_S = 1_000_000_000
# alpha and beta of Eq. 1, in tenths, and the least part of b / flows.
_GAIN_OLD, _GAIN_NEW, _LEAST_PART = 17, 18, 8


def share_of_samples(samples: int, flows: int) -> int:
    """Eq. 4: the mean of the samples of a flow."""
    return (samples << 16) // max(flows, 1)


def move(old_bytes: int, backlog: int, target_bytes: int) -> int:
    """Eq. 1, with the queue in packets: alpha (Q_old - Q_t) - beta (Q - Q_t), by which the share grows or
    shrinks. ``old_bytes``: the queue at the last update.
    """
    tenths = _GAIN_OLD * (old_bytes - target_bytes) - _GAIN_NEW * (backlog - target_bytes)
    size = (abs(tenths) << 16) // (10 * FRAME)
    return size if tenths >= 0 else -size


def bounded(fair_q16: int, size: int, flows: int) -> int:
    """The share within its bounds; ``size``: samples in the shadow buffer (b)."""
    return min(max(fair_q16, (size << 16) // (_LEAST_PART * max(flows, 1))), size << 16)


def step_ns(fair_q16: int, rate: int, longest_ns: int) -> int:
    """tau, between two updates in the switch: half of the time in which the share would move the queue by its
    distance from the target, at most ``longest_ns``. ``rate`` in bytes/s; 0 without one, as eBPF divides.
    """
    swing = (2 * _GAIN_OLD << 8) * rate
    return min(longest_ns, (fair_q16 >> 8) * 10 * FRAME * _NS_PER_S // swing if swing else 0)
