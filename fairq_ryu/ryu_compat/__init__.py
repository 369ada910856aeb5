"""Ryu in quarantine: every patch of Ryu and every workaround for eventlet, with its reason.

Ryu 4.34 is its last release (2020); its maintained copy that is installed here is c65ryu.

=======================  =====================================================================================
module                   what is wrong without it
=======================  =====================================================================================
connection_class         Ryu's server ends when accept fails once, and decodes before any handshake
switch_listener          connections before a handshake are not limited
batched_io               one write a message, two reads; a peer that does not read stops all others
limited_log              a remote peer fills the log
cached_matches           decoding a short match takes half of the time of a packet-in
experimenter_multipart   decoding a multipart reply takes time with the square of its length
=======================  =====================================================================================

May import channel's message checks, Ryu and eventlet. Workarounds for Ryu and eventlet are here and nowhere
else.
"""
