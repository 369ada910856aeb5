"""The window channel between controller and agent: OpenFlow 1.3 with window fields and experimenter messages.

May import model, packet and ryu_compat, and Ryu's codec.
One module a message, both directions; docs/window-channel.md describes the bytes, and a test compares them.

Importing this package registers the window fields with Ryu's codec, and the two patches of how Ryu reads
messages.
"""

from fairq_ryu.channel import oxm as _oxm
from fairq_ryu.ryu_compat import cached_matches as _matches
from fairq_ryu.ryu_compat import experimenter_multipart as _multipart

_oxm.register()
_matches.register()
_multipart.register()
