"""RED, CoDel, SFB and step marking: queue laws that the papers compare theirs with, as policies.

They set no windows. The laws run in the switch (``agent/bpf/laws/queue_*.h``), each in a module of its own
that names its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import (
    QueuePolicy,
    delay_settings,
    ecn,
    ecn_flag,
    microseconds,
    millionths,
)
from fairq_ryu.queue_law_spec import (
    FRAME,
    NO_QUEUE_FLAGS,
    QueueLawFlags,
    QueueLawKind,
    QueueLawSpec,
)
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class RedParameters:
    """``low`` and ``high`` fractions of the buffer."""

    low: float = 0.0833
    high: float = 0.25
    max_p: float = 0.1
    weight_shift: int = 9
    by_bytes: bool = False
    gentle: bool = True
    ecn: bool = False


class Red(QueuePolicy):
    """Random early detection (Floyd and Jacobson 1993), "gentle" if it is not told otherwise."""

    name: ClassVar[str] = "red"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "red",
            "low",
            0.0833,
            "",
            "min_th: mean queue from which packets are dropped, of the buffer. Lower it for a shorter "
            "queue; raise it where flows do not fill the link.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "high",
            0.25,
            "",
            "max_th: mean queue with the probability max_p, of the buffer. Set it with low, to about "
            "three times as much.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "max_p",
            0.1,
            "",
            "Probability at max_th. Raise it where many flows keep the mean queue above high.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "weight_shift",
            9,
            "",
            "The weight of a packet in the mean is 2 to the power of minus this. Raise it where bursts that "
            "the buffer holds must pass without drops.",
            1,
            16,
        ),
        Setting(
            "red",
            "by_bytes",
            False,
            "",
            "Long packets are more likely to be dropped. Set it where flows with short packets should have "
            "as many bytes.",
        ),
        Setting(
            "red",
            "gentle",
            True,
            "",
            "From max_th the probability grows to 1 at twice max_th; no: it is 1 from max_th on, as in "
            "Linux. Set no to compare with the kernel's RED.",
        ),
        ecn("red"),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[red]``."""
        self.parameters = typed_parameters(RedParameters, parameters)
        if self.parameters.low >= self.parameters.high:
            raise ValueError(f"low {self.parameters.low:g} is not below high {self.parameters.high:g}")

    def spec(self) -> QueueLawSpec:
        """The queue law of every port."""
        p = self.parameters
        flags = ecn_flag(p.ecn)
        flags |= QueueLawFlags.BYTES if p.by_bytes else NO_QUEUE_FLAGS
        flags |= NO_QUEUE_FLAGS if p.gentle else QueueLawFlags.ABRUPT
        return QueueLawSpec(
            QueueLawKind.RED,
            flags=flags,
            min_ppm=millionths(p.low),
            max_ppm=millionths(p.high),
            max_p_ppm=millionths(p.max_p),
            weight_shift=p.weight_shift,
        )


@dataclass(frozen=True, slots=True)
class CodelParameters:
    """Times in s; 0 for the delays: worked out by the agent."""

    delay_target: float = 0.0
    delay_interval: float = 0.0
    base_rtt: float = 0.001
    ecn: bool = False


class Codel(QueuePolicy):
    """Controlled delay (RFC 8289), at the arrival of a packet."""

    name: ClassVar[str] = "codel"
    settings: ClassVar[tuple[Setting, ...]] = (*delay_settings("codel"), ecn("codel"))

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[codel]``."""
        self.parameters = typed_parameters(CodelParameters, parameters)

    def spec(self) -> QueueLawSpec:
        """The queue law of every port."""
        p = self.parameters
        return QueueLawSpec(
            QueueLawKind.CODEL,
            flags=ecn_flag(p.ecn),
            target_us=microseconds(p.delay_target),
            interval_us=microseconds(p.delay_interval),
            base_rtt_us=microseconds(p.base_rtt),
        )


@dataclass(frozen=True, slots=True)
class SfbParameters:
    """``bin_packets`` and ``bin_most`` in packets."""

    bin_packets: int = 20
    bin_most: int = 25
    ecn: bool = True


class Sfb(QueuePolicy):
    """Stochastic fair Blue (Feng, Kandlur, Saha and Shin 2001), with the numbers of Linux."""

    name: ClassVar[str] = "sfb"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "sfb",
            "bin_packets",
            20,
            "packets",
            "A bin with so many packets in the queue becomes more likely to drop. Raise it where a flow "
            "alone does not fill the link.",
            1,
            10_000,
        ),
        Setting(
            "sfb",
            "bin_most",
            25,
            "packets",
            "A packet is dropped if each bin of its flow holds so many. Raise it together with bin_packets.",
            1,
            10_000,
        ),
        ecn("sfb", True),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[sfb]``."""
        self.parameters = typed_parameters(SfbParameters, parameters)
        if self.parameters.bin_packets > self.parameters.bin_most:
            raise ValueError("bin_packets is more than bin_most")

    def spec(self) -> QueueLawSpec:
        """The queue law of every port."""
        p = self.parameters
        return QueueLawSpec(
            QueueLawKind.SFB, flags=ecn_flag(p.ecn), bin_packets=p.bin_packets, bin_most=p.bin_most
        )


@dataclass(frozen=True, slots=True)
class MarkParameters:
    """``threshold`` K in packets of 1514 bytes."""

    threshold: int = 20


class Mark(QueuePolicy):
    """Step marking, for DCTCP (RFC 8257)."""

    name: ClassVar[str] = "mark"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "mark",
            "threshold",
            20,
            "packets",
            "K: a packet that would make the queue longer, in full frames of 1514 bytes, is marked if it is "
            "ECN-capable. Raise it where DCTCP's flows do not fill the link.",
            1,
            100_000,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[mark]``."""
        self.parameters = typed_parameters(MarkParameters, parameters)

    def spec(self) -> QueueLawSpec:
        """The queue law of every port."""
        return QueueLawSpec(QueueLawKind.MARK, mark_bytes=self.parameters.threshold * FRAME)
