"""What the settings of a port mean for frames: as Open vSwitch's own forwarding takes them."""

import pytest

from fairq_ryu.port_settings import PortSettings, VlanMode, ranges_of

ACCESS = PortSettings(VlanMode.ACCESS, 10)
TRUNK = PortSettings(trunks=((10, 10), (20, 29)))
NATIVE = PortSettings(VlanMode.NATIVE_UNTAGGED, 10, ((20, 29),))
TAGGED = PortSettings(VlanMode.NATIVE_TAGGED, 10)


def carried(settings):
    return [vlan for vlan in (0, 1, 10, 20, 25, 29, 30, 4095) if settings.carries(vlan)]


@pytest.mark.parametrize(
    ("settings", "vlans", "native", "untagged"),
    [
        (PortSettings(), [0, 1, 10, 20, 25, 29, 30, 4095], 0, 0),
        (ACCESS, [10], 10, 10),
        (TRUNK, [10, 20, 25, 29], None, 0),
        (PortSettings(trunks=((0, 0), (30, 30))), [0, 30], 0, 0),
        (NATIVE, [10, 20, 25, 29], 10, 10),
        (TAGGED, [1, 10, 20, 25, 29, 30, 4095], 10, 0),
        (PortSettings(VlanMode.NATIVE_TAGGED, 0), [0, 1, 10, 20, 25, 29, 30, 4095], 0, 0),
        (PortSettings(VlanMode.ACCESS), [0], 0, 0),
    ],
)
def test_the_vlans_of_a_port(settings, vlans, native, untagged):
    assert (carried(settings), settings.native, settings.untagged) == (vlans, native, untagged)


def test_the_tags_with_which_frames_may_come_in():
    assert PortSettings().tagged == TAGGED.tagged == ((1, 4095),)
    assert ACCESS.tagged == () and TRUNK.tagged == ((10, 10), (20, 29))
    assert sorted(NATIVE.tagged) == [(10, 10), (20, 29)]
    assert PortSettings(trunks=((0, 3),)).tagged == ((1, 3),)
    assert PortSettings(trunks=((0, 0),)).tagged == ()


def test_which_ports_distinguish_vlans():
    assert PortSettings(mirror=True, bond="bond0").plain and PortSettings().carries_all
    assert TAGGED.carries_all and not TAGGED.plain
    assert not TRUNK.carries_all and not ACCESS.carries_all


def test_vlans_as_ranges():
    assert ranges_of([]) == ()
    assert ranges_of({21, 10, 20, 22, 4095}) == ((10, 10), (20, 22), (4095, 4095))
