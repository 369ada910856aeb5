"""Ryu's OpenFlow 1.3 codec, for the agent: constants (``ofp``), messages (``parser``) and addresses."""

from ryu.lib import addrconv
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

__all__ = ["addrconv", "ofp", "parser"]
