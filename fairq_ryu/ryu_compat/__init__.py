"""Ryu in quarantine: every patch of Ryu and every workaround for Ryu or eventlet, with its reason.

Upstream: Ryu's last release is 4.34 (2020), and the project is no longer maintained. The copy that is
installed here, c65ryu 5.0.0, is wrong in the same way in all rows below. It asks for eventlet 0.32.0, which
Python 3.10 and newer cannot import; requirements.txt installs a later one without Ryu's own requirements.
docs/supply-chain.md has the published faults of both.

Patches. A name in one of Ryu's modules is replaced, because Ryu has no setting for it. Those with a function
``register`` take effect when ``apps/controller.py`` calls it:

======================  ==================================================================================
module                  what is wrong in Ryu without it
======================  ==================================================================================
connection_class        the server for switches ends for good when ``accept`` fails once, e.g. without a
                        free file descriptor; messages are decoded before any handshake, and some decoders
                        never end on an element of length 0
experimenter_multipart  the body of an experimenter reply is copied once per 16 bytes: 20 ms for 60,000
cached_matches          decoding the match of a packet-in takes half of the packet-in's time
controller_actions      a list of rules cannot be decoded if one of them sends frames to the controller
                        through a meter
web_server              the class of the REST server cannot be chosen; that server, too, ends for good when
                        ``accept`` fails once
======================  ==================================================================================

Replacements. Our code runs where Ryu's would:

======================  ==================================================================================
switch_listener         connections and handshakes are not limited in number or time; a second connection
                        may take the datapath id of a connected switch
batched_io              each message is one write and two reads; ``send`` blocks all applications when one
                        peer does not read; the rest of a message is waited for without limit
segment_packet_ins      a copy of a segment takes longer as message and event than it takes to read it
direct_replies          the reply about a queue is decoded, wrapped and queued, and a window waits for it
event_queue             all events that are queued, up to 128, are handled before anything else runs
manager                 a missing configuration file or application ends ``ryu-manager`` with a traceback
======================  ==================================================================================

Ryu's topology service is not used: it believes every LLDP frame, takes agents for switches, depends on the
time of day, and decodes each packet-in once more (:mod:`fairq_ryu.control.paths.link_discovery` is ours).

Helpers. They change nothing in Ryu:

======================  ==================================================================================
module                  what it is for
======================  ==================================================================================
accepting               both servers, for switches and for REST, go on when ``accept`` fails once
limited_log             log lines that a remote peer can cause, limited for each peer and in total
observers               how many applications observe a kind of event
runtime                 the only names of Ryu and eventlet that ``rest`` and ``metrics`` use
======================  ==================================================================================

Patches and workarounds that stay beside what they serve:

- ``channel/oxm.py`` adds the window fields to the table of match fields of Ryu's codec, on import of
  ``channel``. Ryu has no function for fields of others.
- ``apps/settings.py`` and ``rest/handler.py`` test the OpenFlow port and the REST port before Ryu opens them:
  Ryu logs a taken port and keeps running, or shares it with another Ryu. Both check the user's settings.
- ``apps/settings.py`` ends the process with ``os._exit``: a plain exit waits for the threads of Ryu.
- ``rest/streams.py`` sets ``eventlet.minimum_write_chunk_size``: eventlet's WSGI server collects 4 KiB before
  it writes, and an event must be sent at once.
- ``mininet_topos/__init__.py`` restores the logger class that Mininet replaces. That is no fault of Ryu's,
  and ``mininet_topos`` cannot import this package.

May import channel (message checks, datapath ids), config, policies.base, model, errors and setting, and Ryu,
eventlet and oslo.config. channel does not import this package.
A new patch of Ryu is a module here, with a row in a table above and a call in ``apps/controller.py``.
"""
