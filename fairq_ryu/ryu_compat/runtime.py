"""The names of Ryu and eventlet that the REST interface and the metrics use. They import no others.

A replacement of Ryu's event loop must provide these.
"""

import eventlet
import eventlet.wsgi as eventlet_wsgi
from eventlet import event, queue
from ryu import cfg
from ryu.app import wsgi as ryu_wsgi
from ryu.lib import hub, ip
from ryu.ofproto import ofproto_common

__all__ = ["cfg", "event", "eventlet", "eventlet_wsgi", "hub", "ip", "ofproto_common", "queue", "ryu_wsgi"]
