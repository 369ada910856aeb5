"""Forged segments: their sender knows addresses and ports of a connection, but not its sequence numbers.

Nothing that he sends may change what is known of the connection, or its share of a pool.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from tests.switch import packets
from tests.switch.rig import Connection, Switch
from tests.switch.test_laws import fall_silent, install

C = layout.CONSTANTS
POOL = 400_000
RULE = 40_000
WRAP = 2**32
# A scale of 14 and an MSS of 100: 128 bytes are granted if they are believed and the true scale is 0.
FALSE_OFFER = packets.syn_options(100, 14)


def opened(switch: Switch, number: int, **settings: Any) -> list[Connection]:
    """Connections with complete handshakes."""
    flows = [Connection(switch, sport=30_000 + n, **settings).open() for n in range(number)]
    for flow in flows:
        flow.data(0)
    return flows


def directions(switch: Switch, flow: Connection) -> tuple[Any, Any]:
    """``fq_dir`` of the client and of the server."""
    found = switch.flow(flow.data_key)
    assert found is not None
    return found


def forge_opening(flow: Connection, last_ack: bool = False, isn: int = 7_000_000) -> None:
    """A whole handshake with the connection's addresses and ports, with numbers that are not its own."""
    switch = flow.switch
    switch.leave(flow.server_port, flow.from_client(flags="S", seq=isn, ack=0, options=FALSE_OFFER))
    switch.leave(1, flow.from_server(flags="SA", seq=isn + 500_000, ack=isn + 1, options=FALSE_OFFER))
    if last_ack:
        switch.leave(flow.server_port, flow.from_client(seq=isn + 1, ack=isn + 500_001))


# Resets and ends


@pytest.mark.parametrize("flags", ["R", "RA", "FA", "FPA"])
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_forged_end_takes_no_flow_out_of_the_count(switch: Switch, flags: str, side: str) -> None:
    flows = opened(switch, 20, server_scale=0)
    switch.pool(2, POOL)
    for flow in flows:
        for seq in (0, 1, 777_777_777, WRAP - 5, flow.client_isn + 200_000, flow.server_isn + 200_000):
            if side == "client":
                switch.leave(2, flow.from_client(flags=flags, seq=seq))
            else:
                switch.leave(1, flow.from_server(flags=flags, seq=seq))
    assert switch.active(2) == 20
    assert [flow.granted() for flow in flows] == [POOL // 20] * 20, "20 flows have one pool together"
    client, server = directions(switch, flows[0])
    assert not (client.flags | server.flags) & (C["FQ_RST"] | C["FQ_FIN"])


@pytest.mark.parametrize("end", ["R", "FA"])
def test_forged_data_does_not_lead_up_to_a_forged_end(switch: Switch, end: str) -> None:
    """The reset is in sequence if what came before it was believed."""
    flow = opened(switch, 1)[0]
    flow.data(1000)
    for seq in (flow.client_isn + 2**30, flow.client_isn + 2**31, flow.client_isn + 3 * 2**30):
        flow.data(500, seq=seq % WRAP)
        switch.leave(2, flow.from_client(flags=end, seq=(seq + 500) % WRAP))
    assert directions(switch, flow)[0].seq_next == flow.client_isn + 1001
    assert switch.active(2) == 1


@pytest.mark.parametrize("flags", ["R", "RA"])
def test_a_reset_at_the_next_number_counts(switch: Switch, flags: str) -> None:
    first, second = opened(switch, 2)
    first.data(1000)
    switch.leave(2, first.from_client(flags=flags, seq=first.client_isn + 1001))
    assert (switch.active(1), switch.active(2)) == (1, 1)
    # One byte beside it: the receiver asks back (RFC 5961), and the true one follows.
    second.data(1000)
    for seq in (second.client_isn, second.client_isn + 1000, second.client_isn + 1002):
        switch.leave(2, second.from_client(flags=flags, seq=seq))
    assert (switch.active(1), switch.active(2)) == (1, 1)


@pytest.mark.parametrize(("end", "side"), [("R", "client"), ("FA", "client"), ("R", "server")])
def test_who_goes_on_after_an_end_is_counted_again(switch: Switch, end: str, side: str) -> None:
    """Its checksum was wrong, which the program does not check: the other end has dropped it. Otherwise hosts
    could take their flows out of the count and keep their windows.
    """
    flows = opened(switch, 4, server_scale=0)
    switch.pool(2, POOL)
    for flow in flows:
        flow.data(1000)
    cheat = flows[0]
    if side == "client":
        switch.leave(2, cheat.from_client(flags=end, seq=cheat.client_isn + 1001))
    else:
        switch.leave(1, cheat.from_server(flags=end))
    assert switch.active(2) == 3
    # What was on its way does not count again.
    cheat.data(500, seq=cheat.client_isn + 501)
    assert switch.active(2) == 3
    if side == "client":
        cheat.data(1000, seq=cheat.client_isn + 1001)
    else:
        cheat.ack(ack=cheat.client_isn + 1001)
    cheat.data(1000, seq=cheat.client_isn + 2001)
    assert switch.active(2) == 4
    assert not directions(switch, cheat)[0].flags & (C["FQ_RST"] | C["FQ_FIN"])


def test_who_has_gone_on_after_an_end_is_not_believed_again(switch: Switch) -> None:
    """Until its receiver acknowledges it: a law that counts ends would count each."""
    install(switch, FairSwitchLaw(increments=8), pool=60_000)
    cheat, *_ = opened(switch, 4, server_scale=0)
    cheat.data(1000)
    counted = []
    for number in range(1, 9):
        behind = cheat.client_isn + 1 + 1000 * number
        switch.leave(2, cheat.from_client(flags=("R", "FA")[number % 2], seq=behind))
        cheat.data(1000, seq=behind)
        counted.append(switch.datapath.law_state(2).own[0] >> 32)
    assert counted == [3] * 8, "the first one"
    cheat.data(500, seq=cheat.client_isn + 9001)
    assert switch.active(2) == 4
    # An end that arrives.
    switch.leave(2, cheat.from_client(flags="FA", seq=cheat.client_isn + 9501))
    assert switch.active(2) == 4
    cheat.ack(ack=cheat.client_isn + 9502)
    assert switch.active(2) == 3
    switch.datapath.remove_law(2)


def test_a_reset_in_answer_to_data_counts(switch: Switch) -> None:
    """A closed socket takes the acknowledgement number of the segment it answers (RFC 9293 3.5.2)."""
    flow = opened(switch, 1)[0]
    # The server's data was dropped behind the switch: the client has acknowledged less than was sent.
    flow.ack(payload=b"d" * 3000)
    flow.data(1000)
    flow.ack(flags="R", seq=flow.server_isn + 1)
    assert (switch.active(1), switch.active(2)) == (0, 0)


def test_a_reset_after_a_challenge_counts(switch: Switch) -> None:
    """Data was lost before the switch: the first reset is ahead of what the receiver has; its ACK says so."""
    flow = opened(switch, 1)[0]
    switch.leave(2, flow.from_client(flags="R", seq=flow.client_isn + 1449))
    assert switch.active(2) == 1
    flow.ack()
    switch.leave(2, flow.from_client(flags="R", seq=flow.client_isn + 1))
    assert switch.active(2) == 0


@pytest.mark.parametrize("answered", [False, True])
def test_a_reset_of_a_half_open_connection(switch: Switch, answered: bool) -> None:
    flow = Connection(switch)
    flow.syn()
    if answered:
        flow.syn_ack()
        # The opener does not know of the connection: the number is that of the SYN-ACK's acknowledgement.
        switch.leave(2, flow.from_client(flags="R", seq=flow.client_isn + 1))
    else:
        flow.ack(flags="RA", seq=0, ack=flow.client_isn + 2)
        assert not directions(switch, flow)[0].flags & C["FQ_RST"]
        flow.ack(flags="RA", seq=0)  # acknowledges the SYN
    assert directions(switch, flow)[0].flags & C["FQ_RST"]
    # The same ports again; the same SYN again, after a reset that answered it.
    again = Connection(switch, sport=flow.sport, client_isn=99_000 if answered else flow.client_isn)
    again.open()
    switch.rule(2, RULE)
    assert again.granted() == RULE >> 7


def test_a_fin_after_a_lost_segment_counts_when_it_is_acknowledged(switch: Switch) -> None:
    flow = opened(switch, 1)[0]
    flow.data(1000)
    # 1,000 bytes were lost before they came to the switch.
    switch.leave(2, flow.from_client(flags="FA", seq=flow.client_isn + 2001))
    flow.ack(ack=flow.client_isn + 1001)
    assert switch.active(2) == 1
    flow.data(1000, seq=flow.client_isn + 1001)
    assert switch.active(2) == 1
    flow.ack(ack=flow.client_isn + 2002)
    assert switch.active(2) == 0
    assert directions(switch, flow)[0].flags & C["FQ_FIN"]
    assert directions(switch, flow)[1].acked == 2000, "the FIN is no payload"


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_fin_that_an_ack_has_overtaken(switch: Switch, acknowledged: bool) -> None:
    flow = opened(switch, 1)[0]
    flow.data(1000)
    flow.data(0, seq=flow.client_isn + 1002)
    if acknowledged:
        flow.ack(ack=flow.client_isn + 1002)
    switch.leave(2, flow.from_client(flags="FA", seq=flow.client_isn + 1001))
    flow.ack(ack=flow.client_isn + 1002)
    assert switch.active(2) == 0
    assert directions(switch, flow)[1].acked == 1000


def test_a_fin_with_retransmitted_data_counts(switch: Switch) -> None:
    flow = opened(switch, 1)[0]
    flow.data(1000)
    flow.data(1000, seq=flow.client_isn + 1001)
    switch.leave(2, flow.from_client(flags="FPA", seq=flow.client_isn + 1001, payload=b"d" * 1000))
    assert switch.active(2) == 0


# Handshakes


def test_a_forged_handshake_lowers_no_window(switch: Switch) -> None:
    flow = opened(switch, 1, client_scale=0, server_scale=0)[0]
    switch.rule(2, RULE)

    def known() -> list[int]:
        names = ("isn", "seq_next", "ack", "edge", "mss", "wscale", "rtt_ns", "bytes", "acked")
        return [getattr(each, name) for each in directions(switch, flow) for name in names]

    before = known()
    forge_opening(flow)
    assert known() == before
    assert flow.granted() == RULE
    assert switch.active(2) == 1 and switch.state(1).handshakes == 1


@pytest.mark.parametrize("live", ["idle", "busy"])
def test_a_handshake_forged_to_its_last_segment_lasts_until_the_next_true_one(
    switch: Switch, live: str
) -> None:
    flow = opened(switch, 1, client_scale=0, server_scale=0)[0]
    switch.rule(2, RULE)
    for turn in range(3):
        if live == "busy":
            flow.data(1000, seq=flow.client_isn + 1 + 1000 * turn)
        forge_opening(flow, last_ack=True, isn=7_000_000 + turn)
        assert flow.granted() == RULE, turn
        assert directions(switch, flow)[1].wscale == 0
        assert switch.active(2) == 1


def test_a_handshake_forged_twice_does_not_drive_out_the_true_connection(switch: Switch) -> None:
    flow = opened(switch, 1, client_scale=0, server_scale=0)[0]
    switch.rule(2, RULE)
    forge_opening(flow, last_ack=True, isn=7_000_000)
    switch.leave(2, flow.from_client(flags="R", seq=7_000_001))
    forge_opening(flow, last_ack=True, isn=9_000_000)
    assert flow.granted() == RULE
    flow.data(1000)
    assert switch.active(2) == 1


def test_a_forged_connection_that_is_swept_gives_the_true_one_back(switch: Switch) -> None:
    flow = opened(switch, 1, client_scale=0, server_scale=0)[0]
    switch.rule(2, RULE)
    forge_opening(flow, last_ack=True)
    switch.leave(2, flow.from_client(flags="R", seq=7_000_001))
    time.sleep(0.01)
    assert switch.datapath.host.sweep(10**12, 10**6)[0] == 0
    flow.data(1000)
    assert flow.granted(ack=flow.client_isn + 1001) == RULE
    assert switch.active(2) == 1


def test_a_forged_handshake_on_a_flow_older_than_the_agent(switch: Switch) -> None:
    flow = Connection(switch, client_scale=0, server_scale=0)
    flow.data(1000)
    flow.ack(ack=flow.client_isn + 1001)
    switch.rule(2, 3000)
    forge_opening(flow)
    assert flow.granted(ack=flow.client_isn + 1001) == 65535


def test_a_forged_syn_before_the_answer_to_the_true_one(switch: Switch) -> None:
    flow = Connection(switch)
    flow.syn()
    switch.leave(2, flow.from_client(flags="S", seq=7_000_000, ack=0, options=FALSE_OFFER))
    flow.syn_ack()
    switch.rule(2, RULE)
    assert flow.granted() == RULE >> 7
    assert directions(switch, flow)[0].mss == 1460


# Data and acknowledgements


def test_forged_data_counts_for_nothing(switch: Switch) -> None:
    flow = opened(switch, 1)[0]
    flow.data(1000)
    seq = flow.client_isn + 1001
    for forged in ({"seq": (seq + 2**31) % WRAP}, {"ack": flow.server_isn + 2**31}, {"flags": "P", "ack": 0}):
        flow.data(1000, **({"seq": seq} | forged))
    client, _ = directions(switch, flow)
    assert (client.packets, client.bytes, client.seq_next) == (1, 1000, seq)


def test_acknowledgements_that_do_not_belong_to_a_connection_are_not_touched(switch: Switch) -> None:
    flow = opened(switch, 1)[0]
    switch.rule(2, RULE)
    acks = switch.state(2).acks
    for forged in ({"seq": flow.server_isn + 2**30}, {"ack": flow.client_isn + 2}, {"ack": 2**31}):
        assert flow.granted(**forged) == 65535
    assert switch.state(2).acks == acks
    assert flow.granted() == RULE >> 7


def test_random_forgeries_change_nothing(switch: Switch) -> None:
    """The same conversation twice, once with forged segments among its own: every own segment leaves alike,
    and the count is the same after each.
    """

    def conversation(forging: random.Random | None) -> list[tuple[bytes, int, int]]:
        switch.reset()
        flow = Connection(
            switch, sport=31_000, client_isn=WRAP - 4000, server_isn=2**31 - 3000, server_scale=3
        )
        seq, ack = flow.client_isn + 1, flow.server_isn + 1
        seen: list[tuple[bytes, int, int]] = []

        def leaves(port: int, segment: packets.Segment) -> None:
            if forging is not None and seen:
                for _ in range(6):
                    forge(forging, flow, seq, ack)
            after = switch.leave(port, segment)
            seen.append((after, switch.active(1), switch.active(2)))

        leaves(
            2, flow.from_client(flags="S", seq=flow.client_isn, ack=0, options=packets.syn_options(1460, 2))
        )
        leaves(1, flow.syn_ack_segment())
        leaves(2, flow.from_client(seq=seq % WRAP, ack=ack))
        switch.pool(2, RULE)
        switch.rule(1, 2 * RULE, slot=1)
        for turn in range(40):
            leaves(2, flow.from_client(seq=seq % WRAP, ack=ack, payload=b"q" * (100 + turn)))
            seq += 100 + turn
            leaves(1, flow.from_server(seq=ack, ack=seq % WRAP, payload=b"a" * 1000, window=50_000))
            ack += 1000
            leaves(2, flow.from_client(seq=seq % WRAP, ack=ack, window=60_000))
        leaves(1, flow.from_server(seq=ack, ack=seq % WRAP, flags="FA"))
        leaves(2, flow.from_client(seq=seq % WRAP, ack=ack + 1, flags="FA"))
        return seen

    def forge(dice: random.Random, flow: Connection, seq: int, ack: int) -> None:
        flags = dice.choice(["R", "RA", "FA", "A", "PA", "S", "SA", "FPA", "SR", "P"])
        # Numbers of a window of 0.5 MB on either side would be guessed by one segment in 4,000.
        numbers = {
            "seq": (seq + dice.randrange(2**20, WRAP - 2**20)) % WRAP,
            "ack": (ack + dice.randrange(2**20, WRAP - 2**20)) % WRAP,
            "options": packets.syn_options(dice.randrange(1, 9000), dice.randrange(15)),
            "payload": bytes(dice.choice([0, 0, 1, 1000])),
        }
        if dice.random() < 0.5:
            switch.leave(2, flow.from_client(flags=flags, **numbers))
        else:
            numbers["seq"], numbers["ack"] = numbers["ack"], numbers["seq"]
            switch.leave(1, flow.from_server(flags=flags, **numbers))

    honest = conversation(None)
    for seed in range(20):
        assert conversation(random.Random(seed)) == honest, seed


def test_forged_segments_of_both_sides_last_until_the_next_true_one(switch: Switch) -> None:
    """Without a handshake: their scale is not known, so their window may be large; but not preferred."""
    for n, (far, off) in enumerate([(2**20, 2**21), (2**23, 2**22), (2**29, 2**30), (3 * 2**30, 2**31)]):
        flow = Connection(switch, sport=31_000 + n, server_scale=0, client_isn=10_000_000 * n).open()
        flow.data(0)
        switch.rule(2, RULE)
        flow.data(1000, seq=(flow.client_isn + far) % WRAP, ack=(flow.server_isn + off) % WRAP)
        switch.leave(
            1,
            flow.from_server(seq=(flow.server_isn + off) % WRAP, ack=(flow.client_isn + far + 1000) % WRAP),
        )
        assert flow.granted() == RULE
        flow.data(1000)
        assert flow.granted(ack=flow.client_isn + 1001) == RULE
    assert switch.active(2) == 4


def test_a_forged_syn_ack_changes_no_count_of_a_law(switch: Switch) -> None:
    """Its window is lowered. But silent flows do not count by it, and what others use is not hidden."""
    flows = opened(switch, 8, server_scale=0)
    install(switch, FairQLaw(floor_segments=1), pool=80 * 1460)
    for flow in flows:
        fall_silent(switch, flow)
    busy = flows[0]
    busy.data(1000)
    assert busy.granted(ack=busy.client_isn + 1001) == min(80 * 1460, 65535)
    before = [bytes(directions(switch, flow)[0].out) for flow in flows]
    for flow in flows:
        for _ in range(3):
            forged = flow.syn_ack_segment(seq=7_000_000, ack=6_000_000, window=60_000)
            assert packets.window(switch.leave(1, forged)) <= 60_000
    assert [bytes(directions(switch, flow)[0].out) for flow in flows] == before
    assert busy.granted(ack=busy.client_isn + 1001) == min(80 * 1460, 65535), "still the only one"
    switch.datapath.remove_law(2)
