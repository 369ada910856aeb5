"""How it is said in OpenFlow 1.3: the window fields, the experimenter messages, the rules, packets.

Importing this package registers the two window fields with Ryu's OpenFlow 1.3 codec, and mends how it reads
experimenter multipart replies and short matches.
"""

from fairq_ryu.openflow import matches as _matches
from fairq_ryu.openflow import multipart as _multipart
from fairq_ryu.openflow import oxm as _oxm

_oxm.register()
_matches.register()
_multipart.register()
