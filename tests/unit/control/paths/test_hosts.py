"""ARP requests for unknown hosts go to all hosts, at a limited rate from each port."""

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
