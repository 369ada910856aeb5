"""How long a port keeps its windows without flows."""

from fairq_ryu.policies.parts.linger import Linger


def test_the_time_begins_when_the_port_is_first_found_without_flows():
    linger = Linger(2.0)
    assert not linger.is_over(3, 0.0)
    assert not linger.is_over(0, 5.0)
    assert not linger.is_over(0, 6.9)
    assert linger.is_over(0, 7.0)
    assert linger.is_over(0, 8.0)


def test_flows_end_it():
    linger = Linger(2.0)
    assert not linger.is_over(0, 0.0)
    assert not linger.is_over(1, 1.9)
    assert not linger.is_over(0, 2.0)
    assert linger.is_over(0, 4.0)


def test_a_flow_between_two_readings_ends_it():
    linger = Linger(2.0)
    assert not linger.is_over(0, 0.0)
    linger.flow_started()
    assert not linger.is_over(0, 2.0)
    assert linger.is_over(0, 4.0)


def test_without_linger_the_first_reading_without_flows_is_the_end():
    assert Linger(0.0).is_over(0, 1.0)
