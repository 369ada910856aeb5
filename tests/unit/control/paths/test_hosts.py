"""ARP requests for unknown hosts go to all hosts, at a limited rate from each port."""

from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import parse
from tests.unit.control.paths.test_address_claims import (
    LIAR,
    LIAR_IP,
    OTHER,
    OTHER_IP,
    VICTIM_IP,
    Network,
    arp,
    mac,
)


def test_a_port_that_asks_for_unknown_hosts_disturbs_the_others_at_a_limited_rate():
    network = Network()

    def flooded(now, port=LIAR, ip=LIAR_IP):
        return bool(network.comes(arp(mac(port), ip, "10.0.7.7"), port, now))

    assert sum(flooded(5.0) for _ in range(300)) == 100
    assert flooded(5.1, OTHER, OTHER_IP)  # another port
    assert network.comes(arp(mac(LIAR), LIAR_IP, VICTIM_IP), LIAR, 5.2)  # a known host: it is answered
    assert not flooded(5.9) and flooded(6.0)


def test_the_rule_of_a_host_that_nobody_knew_replaces_none():
    """A bridge looks at all rules of hosts to remove one: not for each of thousands of new addresses."""
    network = Network()

    def source_rules(now):
        frame = parse.parse(arp("02:00:00:00:77:01", "10.0.7.1", "10.0.7.2"))
        network.fabric.host_seen(network.bridge, frame, LIAR, now)
        rules = [each for each in network.bridge.sent if getattr(each, "table_id", None) == pipeline.SOURCE]
        network.bridge.log.clear()
        return [each.command for each in rules]

    assert source_rules(5.0) == [pipeline.ofp.OFPFC_ADD]
    assert source_rules(30.0) == [pipeline.ofp.OFPFC_DELETE, pipeline.ofp.OFPFC_ADD]  # sent again


def test_new_hosts_of_a_port_are_limited_and_those_of_others_are_not(caplog):
    """Each new host costs rules in every bridge: ever new addresses of one port may not cost that without
    end.
    """
    network = Network()

    def comes(number, port=LIAR, now=100.0):
        frame = parse.parse(arp(f"06:00:00:00:{number >> 8:02x}:{number & 255:02x}", "0.0.0.0", "10.0.7.2"))
        network.fabric.host_seen(network.bridge, frame, port, now)
        sent, rules = network.bridge.sent, pipeline.SOURCE
        found = any(getattr(each, "table_id", None) == rules for each in sent)
        network.bridge.log.clear()
        return found

    assert sum(comes(number) for number in range(1500)) == 1000
    assert network.fabric.host_limit.put_aside == 500
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(LIAR) in caplog.text and "1,000 at once and 100 a second" in caplog.text
    assert comes(2000, OTHER)  # another port
    assert comes(2000, LIAR)  # a host that has moved, and cannot be asked
    assert comes(7, LIAR, 102.0)  # a known host, whose rules are sent again
    assert not comes(1499) and comes(1499, now=102.0)  # its next frame
