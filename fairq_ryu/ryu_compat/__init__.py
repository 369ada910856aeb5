"""Ryu in quarantine: every patch of Ryu and every workaround for eventlet, with its reason.

Ryu 4.34 is its last release (2020); its maintained copy that is installed here is c65ryu.

=======================  =====================================================================================
module                   what is wrong without it
=======================  =====================================================================================
connection_class         Ryu's server ends when accept fails once, and decodes before any handshake
switch_listener          connections before a handshake are bounded by nothing
batched_io               one write a message, two reads; a peer that does not read stops all others
limited_log              a stranger fills the log
cached_matches           reading a short match takes half of the time of a packet-in
experimenter_multipart   reading a multipart reply takes time with the square of its length
=======================  =====================================================================================

May import channel's message checks, Ryu and eventlet. What Ryu does wrong is mended here and nowhere else.
"""
