"""The classes of nodes and links that each topology file offers to ``mn --custom``, by option value.

``mn --switch fairq --host fairq --link shallow`` chooses them. Topology files import this module and not its
names: mn replaces its own global variables by those of the same name in a custom file, and has these too.
"""

from __future__ import annotations

from mininet_topos.hosts import FairQHost
from mininet_topos.links import ShallowLink
from mininet_topos.switch import FairQSwitch

SWITCHES = {"fairq": FairQSwitch}
HOSTS = {"fairq": FairQHost}
LINKS = {"shallow": ShallowLink}
