"""The options of an agent: its bridges, its controllers, its limits."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.agent.told_scale import NOT_TOLD, ToldScales
from fairq_ryu.controller_target import ControllerTarget
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.uplink import Uplink


def parse_bridges(texts: Iterable[str]) -> tuple[str, ...]:
    r"""The names of bridges, each text one or several with colons between them: no interface of Linux has one
    in its name. ``\x2b`` is a character in hexadecimal. Raises :class:`UserError`.
    """
    # As systemd writes characters that the name of a unit may not have.
    plain = (re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text) for text in texts)
    names = [name for text in plain for name in text.split(":")]
    twice = sorted({name for name in names if names.count(name) > 1})
    if "" in names or twice:
        what = f"bridge {twice[0]} is named twice" if twice and twice[0] else "a bridge has no name"
        raise UserError(what, "name each once: --bridge br-int, or --bridge br-int:br-ex")
    if wrong := next((name for name in names if "\0" in name or "/" in name), None):
        raise UserError(f"{wrong!r} is no name of a bridge", "see `ovs-vsctl list-br`")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files for ``ssl:`` targets: private key and certificate of the agent, and the trusted authority."""

    private_key: Path | None = None
    certificate: Path | None = None
    ca_certificate: Path | None = None

    def context(self) -> ssl.SSLContext:
        """The TLS context. Raises :class:`UserError` if files are missing or wrong."""
        if self.ca_certificate is None:
            raise UserError(
                "ssl: needs to know whom to trust", "give --ca-cert FILE (and --private-key, --certificate)"
            )
        try:
            context = ssl.create_default_context(cafile=str(self.ca_certificate))
            # Controllers are named by address, and their certificates seldom are (as in ovs-vswitchd).
            context.check_hostname = False
            # Python 3.13 is stricter by default than certificates of ovs-pki are.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.certificate is not None:
                context.load_cert_chain(
                    str(self.certificate), str(self.private_key) if self.private_key else None
                )
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"cannot use the TLS files: {error}", "check that they exist and are PEM"
            ) from None
        return context


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of ``fairq agent``."""

    bridges: tuple[str, ...]
    targets: tuple[ControllerTarget, ...]
    limits: ProgramLimits
    tls: TlsFiles = TlsFiles()
    far_queues: tuple[FarQueue, ...] = ()
    uplinks: tuple[Uplink, ...] = ()
    told: ToldScales = NOT_TOLD
