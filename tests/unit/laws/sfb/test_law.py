"""SFB, held against the kernel's: net/sched/sch_sfb.c (Linux 6.1), written down here independently."""

from __future__ import annotations

import random

from fairq_ryu.laws.sfb import SfbLaw
from tests.support.host_queue_laws import HostQueueLaw, Packet, QueueLawParameters, Verdict

SFB_MAX_PROB = 0xFFFF
# sfb_default_ops
MAX, BIN_SIZE, PENALTY_RATE, PENALTY_BURST = 25, 20, 10, 20
INCREMENT = (SFB_MAX_PROB + 500) // 1000
DECREMENT = (SFB_MAX_PROB + 3000) // 6000


def sfb(ecn: bool = False) -> HostQueueLaw:
    return HostQueueLaw(QueueLawParameters(SfbLaw.kind, 12_500_000, ecn=ecn))


class KernelSfb:
    """sfb_enqueue() with one set of bins, and a jiffy of a nanosecond. But token_time stays where no token
    was earned: the kernel moves it then, too, so that a flow that sends more often than that never gets one.
    """

    def __init__(self) -> None:
        self.bins = [[{"qlen": 0, "p_mark": 0} for _ in range(16)] for _ in range(8)]
        self.tokens_avail = self.token_time = 0

    def rate_limit(self, now: int) -> bool:
        if self.tokens_avail < 1:
            age = min(10 * 10**9, now - self.token_time)
            self.tokens_avail = min(age * PENALTY_RATE // 10**9, PENALTY_BURST)
            if self.tokens_avail < 1:
                return True
            self.token_time = now
        self.tokens_avail -= 1
        return False

    def of(self, sfbhash: int) -> list[dict[str, int]]:
        found = []
        for level in range(8):
            found.append(self.bins[level][sfbhash & 15])
            sfbhash >>= 4
        return found

    def enqueue(self, packet: Packet, ecn: bool) -> Verdict:
        mine, p_min, minqlen = self.of(packet.hash), 1 << 32, 1 << 32
        for b in mine:
            if b["qlen"] == 0:
                b["p_mark"] = max(b["p_mark"] - DECREMENT, 0)
            elif b["qlen"] >= BIN_SIZE:
                b["p_mark"] = min(b["p_mark"] + INCREMENT, SFB_MAX_PROB)
            minqlen, p_min = min(minqlen, b["qlen"]), min(p_min, b["p_mark"])
        if minqlen >= MAX:
            return Verdict.DROP
        marked = False
        if p_min >= SFB_MAX_PROB:
            if self.rate_limit(packet.now_ns):
                return Verdict.DROP
        else:
            r = packet.random & SFB_MAX_PROB
            if r < p_min:
                if p_min > SFB_MAX_PROB // 2 and r < (p_min - SFB_MAX_PROB // 2) * 2:
                    return Verdict.DROP
                if not (packet.ect and ecn):
                    return Verdict.DROP
                marked = True
        for b in mine:
            b["qlen"] += 1
        return Verdict.MARK if marked else Verdict.PASS


def test_the_numbers_are_those_of_the_kernel() -> None:
    assert (INCREMENT, DECREMENT) == (66, 11)
    parameters = QueueLawParameters(SfbLaw.kind, 1)
    assert (parameters.bin_packets, parameters.bin_most) == (BIN_SIZE, MAX)


def test_it_decides_as_the_kernel_does() -> None:
    """Twelve flows; one sends most of the packets, whatever happens to them, and sometimes it counts as one
    that does not respond.
    """
    source, now, waiting = random.Random(7), 10**12, []
    law, kernel, seen = sfb(ecn=True), KernelSfb(), set()
    for number in range(20_000):
        if number % 5000 == 4999:
            for level, b in enumerate(kernel.of(1)):
                law.bins.p_q16[16 * level + (1 >> 4 * level) % 16] = b["p_mark"] = SFB_MAX_PROB
        now += source.randrange(200_000)
        flow = (source.randrange(12) if source.random() < 0.3 else 0) * 0x01234567 + 1
        packet = Packet(now, 1, 1, 1514, flow, source.getrandbits(32), source.random() < 0.5)
        verdict = law.judge(packet)
        assert verdict == kernel.enqueue(packet, ecn=True)
        seen.add(verdict)
        if verdict != Verdict.DROP:
            waiting.append(flow)
            law.entered(flow)
        while len(waiting) > 30 or (waiting and source.random() < 0.4):
            gone = waiting.pop(0)
            law.left(gone)
            for b in kernel.of(gone):
                b["qlen"] -= 1
    assert seen == set(Verdict)
    assert kernel.token_time > 0, "no flow counted as one that does not respond"
    own = law.own("sfb_state")
    assert (own.filled_ns, own.tokens) == (kernel.token_time, kernel.tokens_avail)


def test_a_flow_that_does_not_respond_gets_ten_packets_a_second() -> None:
    law = sfb()
    law.bins.queued[:], law.bins.p_q16[:] = [1] * 128, [SFB_MAX_PROB] * 128
    law.own("sfb_state").filled_ns = 10**12
    passed = sum(
        law.judge(Packet(10**12 + n * 10**7, 1514, 1514, 1514, 5, 0)) == Verdict.PASS for n in range(1, 1001)
    )
    assert passed == 100


def test_in_an_empty_queue_no_bin_has_packets() -> None:
    """Events of packets that left may have been missed."""
    law = sfb()
    law.bins.queued[:] = [30] * 128
    assert law.judge(Packet(10**12, 1514, 1514, 1514, 5, 0)) == Verdict.DROP
    assert law.judge(Packet(10**12, 0, 0, 1514, 5, SFB_MAX_PROB)) == Verdict.PASS
