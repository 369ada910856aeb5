"""``fairq shim``: a host tells the bridges the window scales of its connections."""

from __future__ import annotations

import argparse

NAME = "shim"
HELP = "tell bridges the window scales of this host's connections"
_LARGEST = 14
_GRACE_S, _LONGEST_S = 75.0, 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--interface", required=True, metavar="NAME", help="the uplink of this host or guest")
    parser.add_argument(
        "--mode",
        choices=("reserved", "reserved3", "window12", "off"),
        default="reserved",
        help="where segments tell the scale; the agents' setting [agent] told_scale must be the same "
        "(default: reserved; off: nowhere, with --unify)",
    )
    parser.add_argument(
        "--unify",
        type=int,
        metavar="SCALE",
        help="let no SYN leave with a larger scale than this, 0 to 14, and convert later windows to it",
    )
    parser.add_argument(
        "--unify-grace",
        type=float,
        default=_GRACE_S,
        metavar="SECONDS",
        help="with --unify: handshakes that begin so soon keep their scales, since their SYN may have left "
        f"before (default: {_GRACE_S:g}; more where hosts repeat SYNs for longer)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.agent import shim
    from fairq_ryu.errors import UserError

    if args.unify is not None and not 0 <= args.unify <= _LARGEST:
        raise UserError(f"--unify {args.unify}: there is no such scale", f"write 0 to {_LARGEST}")
    if args.mode == "off" and args.unify is None:
        raise UserError("--mode off without --unify leaves nothing to do", "give --unify, or another mode")
    if not 0 <= args.unify_grace <= _LONGEST_S:
        raise UserError(
            f"--unify-grace {args.unify_grace:g} is no useful time", f"write 0 to {_LONGEST_S} seconds"
        )
    return shim.run(args.interface, args.mode, args.unify, args.unify_grace)
