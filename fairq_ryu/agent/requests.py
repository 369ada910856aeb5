"""The handlers of a controller's requests: one function for each message type, and their table.

Multipart requests are answered in :mod:`fairq_ryu.agent.multipart`. Every function raises
:class:`~fairq_ryu.channel.refusal.OpenFlowError` for a request that is refused, and changes nothing then.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from fairq_ryu.agent import messages
from fairq_ryu.agent.multipart import answer_multipart
from fairq_ryu.agent.openflow_server import Session
from fairq_ryu.agent.window_channel import receive_command
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.framing import HEADER, message
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError


def _echo(session: Session, request: bytes, xid: int) -> None:
    session.send(message(ofp.OFPT_ECHO_REPLY, xid, request[HEADER.size :]))


def _experimenter(session: Session, request: bytes, _xid: int) -> None:
    receive_command(session, request[HEADER.size :])


def _features(session: Session, _request: bytes, xid: int) -> None:
    session.send(messages.features(xid, session.server.dpid))


def _get_config(session: Session, _request: bytes, xid: int) -> None:
    session.send(message(ofp.OFPT_GET_CONFIG_REPLY, xid, struct.pack("!HH", 0, 0)))


def _set_config(session: Session, request: bytes, _xid: int) -> None:
    # The agent forwards no packets: the settings (fragments, miss_send_len) have no effect.
    if len(request) != ofp.OFP_SWITCH_CONFIG_SIZE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "SET_CONFIG")


def _barrier(session: Session, _request: bytes, xid: int) -> None:
    # Every request is completed before the next is read.
    session.send(message(ofp.OFPT_BARRIER_REPLY, xid))


def _role(session: Session, request: bytes, xid: int) -> None:
    server = session.server
    if len(request) != HEADER.size + 16:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "ROLE_REQUEST")
    role, generation = struct.unpack_from("!I4xQ", request, HEADER.size)
    if role not in range(4):
        raise OpenFlowError(ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_BAD_ROLE, f"role {role}")
    if role in (ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE):
        # Signed distance: the numbers may wrap (section 6.3.6).
        if server.generation is not None and (generation - server.generation) & (1 << 63):
            raise OpenFlowError(ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE, "old generation")
        server.generation = generation
    if role != ofp.OFPCR_ROLE_NOCHANGE:
        if server.master is session:
            server.master = None
        session.role = role
    if role == ofp.OFPCR_ROLE_MASTER:
        if server.master is not None:
            server.master.role = ofp.OFPCR_ROLE_SLAVE
        server.master = session
    current = server.generation if server.generation is not None else 0xFFFFFFFFFFFFFFFF
    session.send(message(ofp.OFPT_ROLE_REPLY, xid, struct.pack("!I4xQ", session.role, current)))


def _flow_mod(session: Session, request: bytes, _xid: int) -> None:
    if session.role == ofp.OFPCR_ROLE_SLAVE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, "a slave may not change rules")
    session.server.change_rules(decode_flow_mod(request), session, time.monotonic_ns())


HANDLERS: dict[int, Callable[[Session, bytes, int], None]] = {
    ofp.OFPT_ECHO_REQUEST: _echo,
    ofp.OFPT_EXPERIMENTER: _experimenter,
    ofp.OFPT_FEATURES_REQUEST: _features,
    ofp.OFPT_GET_CONFIG_REQUEST: _get_config,
    ofp.OFPT_SET_CONFIG: _set_config,
    ofp.OFPT_FLOW_MOD: _flow_mod,
    ofp.OFPT_MULTIPART_REQUEST: answer_multipart,
    ofp.OFPT_BARRIER_REQUEST: _barrier,
    ofp.OFPT_ROLE_REQUEST: _role,
}
