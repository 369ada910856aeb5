"""The agent's description (OpenFlow's DESC multipart), which has the name of its bridge."""

from __future__ import annotations

from fairq_ryu.channel.protocol import ofp

_TEXT = "window table of bridge "


def encode(bridge: str) -> bytes:
    """The text about the datapath (``dp_desc``)."""
    return f"{_TEXT}{bridge}".encode()[: ofp.DESC_STR_LEN - 1]


def bridge_of(text: bytes | str) -> str:
    """The name of the bridge in such a text; "" if it has none."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.rstrip("\0")
    return text.removeprefix(_TEXT) if text.startswith(_TEXT) else ""
