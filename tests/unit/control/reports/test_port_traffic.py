"""Traffic through ports: counters, rates and polling."""

from types import SimpleNamespace

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.control.reports.port_traffic import INTERVAL, CounterPolling, PortTrafficTable
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from tests.support.fakes import FakeSwitch

PORT = PortKey(1, 3)


def counters(at, tx, rx, port=3):
    seconds = int(at)
    return parser.OFPPortStats(
        port_no=port,
        rx_packets=0,
        tx_packets=0,
        rx_bytes=rx,
        tx_bytes=tx,
        rx_dropped=0,
        tx_dropped=0,
        rx_errors=0,
        tx_errors=0,
        rx_frame_err=0,
        rx_over_err=0,
        rx_crc_err=0,
        collisions=0,
        duration_sec=seconds,
        duration_nsec=round((at - seconds) * 1e9),
    )


def rates(*readings):
    traffic = PortTrafficTable()
    for reading in readings:
        traffic.counted(1, [counters(*reading)])
    found = traffic.get(PORT)
    return found.tx_bps, found.rx_bps


def test_one_reading_is_no_rate():
    traffic = PortTrafficTable()
    assert traffic.get(PORT) is None
    traffic.counted(1, [counters(5.0, 100, 200)])
    assert traffic.get(PORT)[1:] == (100, 200, None, None)


def test_two_readings_are_one():
    assert rates((5.0, 1000, 0), (5.5, 2000, 125)) == (16000, 2000)


def test_the_last_two_count():
    assert rates((1.0, 0, 0), (2.0, 10**6, 0), (3.0, 10**6, 0)) == (0, 0)


def test_a_recreated_port_has_no_rate_at_first():
    assert rates((9.0, 1000, 1000), (1.0, 5000, 5000)) == (None, None)
    assert rates((9.0, 1000, 1000), (10.0, 500, 5000)) == (None, None)


def test_replies_that_arrive_together_count_once():
    # The later reply is ignored, so the next rate is over the whole time.
    assert rates((1.0, 0, 0), (2.0, 1000, 0), (2.01, 3000, 0)) == (8000, 0)
    assert rates((1.0, 0, 0), (2.0, 1000, 0), (2.01, 3000, 0), (3.0, 3000, 0)) == (16000, 0)


def test_removed_ports_and_bridges_are_forgotten():
    traffic = PortTrafficTable()
    for dpid in (1, 2):
        traffic.counted(dpid, [counters(1.0, 0, 0), counters(1.0, 0, 0, port=4)])
    traffic.forget(PortKey(1, 4))
    traffic.keep_only({1: None})
    assert [traffic.get(PortKey(*port)) is not None for port in ((1, 3), (1, 4), (2, 3), (2, 4))] == [
        True,
        False,
        False,
        False,
    ]


def test_all_ports_are_requested():
    bridge = FakeSwitch(1)
    bridge.send_msg(pipeline.ask_counters(bridge))
    (request,) = bridge.sent
    assert request.port_no == ofp.OFPP_ANY and request.type == ofp.OFPMP_PORT_STATS


# Polling


def polled(polling, *switches):
    """The bridge that the next request polls; None if there is none."""
    before = [len(each.sent) for each in switches]
    polling.request_next()
    (found,) = [e.id for e, n in zip(switches, before, strict=True) if len(e.sent) > n] or [None]
    return found


def test_bridges_are_polled_one_after_the_other_within_an_interval():
    one, two = FakeSwitch(1), FakeSwitch(2)
    bridges = {1: one, 2: two}
    polling = CounterPolling(bridges, PortTrafficTable())
    assert [polled(polling, one, two) for _ in range(4)] == [1, 2, 1, 2]
    assert polling.interval == INTERVAL / 2


def test_a_bridge_that_disconnects_within_a_round_is_skipped():
    one, two = FakeSwitch(1), FakeSwitch(2)
    bridges, traffic = {1: one, 2: two}, PortTrafficTable()
    traffic.counted(2, [counters(1.0, 1000, 1000)])
    polling = CounterPolling(bridges, traffic)
    polling.request_next()
    del bridges[2]
    assert [polled(polling, one, two) for _ in range(2)] == [None, 1]
    assert polling.interval == INTERVAL and traffic.get(PortKey(2, 3)) is None


def test_without_bridges_nothing_is_sent():
    polling = CounterPolling({}, PortTrafficTable())
    polling.request_next()
    assert polling.interval == INTERVAL


def test_replies_of_earlier_connections_are_ignored():
    present, traffic = FakeSwitch(1), PortTrafficTable()
    polling = CounterPolling({1: present}, traffic)
    body = [counters(1.0, 1000, 1000)]
    polling.reply(SimpleNamespace(datapath=FakeSwitch(1), body=body))
    assert traffic.get(PORT) is None
    polling.reply(SimpleNamespace(datapath=present, body=body))
    assert traffic.get(PORT) is not None
