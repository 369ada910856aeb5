"""``fairq agent``: its arguments, and the agent's options from these and from the configuration."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from pathlib import Path

from fairq_ryu.cli.commands import options

NAME = "agent"
HELP = "run the switch agent of a bridge, or of bridges that patch ports join"
_DEFAULT_TARGET = "tcp:127.0.0.1:6653"
# Flows have rules of their own under few policies, and under these only while they have a deadline: one of so
# many at a time.
_FLOWS_A_RULE, _LEAST_RULES = 16, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--bridge",
        action="append",
        required=True,
        metavar="NAME[:NAME...]",
        help="the Open vSwitch bridge, e.g. s1; bridges that patch ports join have one agent: br-int:br-ex "
        "(or --bridge repeated)",
    )
    parser.add_argument(
        "--controller",
        action="append",
        default=[],
        metavar="TARGET",
        help="tcp:HOST[:PORT] or ssl:HOST[:PORT]; may be repeated (default: the setting [agent] controllers, "
        "or else tcp:127.0.0.1:6653)",
    )
    parser.add_argument("--private-key", type=Path, metavar="PEM", help="for ssl: targets")
    parser.add_argument("--certificate", type=Path, metavar="PEM", help="for ssl: targets")
    parser.add_argument(
        "--ca-cert",
        type=Path,
        metavar="PEM",
        help="for ssl: targets: the authority that signed the controller's certificate",
    )
    parser.add_argument("--verbose", action="store_true", help="log more (level DEBUG)")
    options.config_option(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    # What is imported stays as long as the process: the garbage collector need not look at it again and again
    # while it grows, nor later, nor at the end. That is a third of the time to start and end.
    gc.disable()
    from fairq_ryu.agent import agent, log_format
    from fairq_ryu.agent.options import AgentOptions, TlsFiles, parse_bridges
    from fairq_ryu.agent.programs.program import ProgramLimits
    from fairq_ryu.agent.told_scale import ToldScales
    from fairq_ryu.config import loader
    from fairq_ryu.controller_target import parse_target

    gc.freeze()
    gc.enable()

    settings = loader.load(args.config_file)
    configured = str(settings.value("agent", "controllers")).split()
    targets = tuple(parse_target(text) for text in args.controller or configured or [_DEFAULT_TARGET])
    bridges = parse_bridges(args.bridge)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(log_format.PlainFormatter(f"fairq agent: {':'.join(bridges)}"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("fairq_ryu").setLevel(logging.DEBUG if args.verbose else logging.INFO)
    flows = int(settings.number("agent", "flows"))
    limits = ProgramLimits(
        flows=flows,
        rules=max(_LEAST_RULES, flows // _FLOWS_A_RULE),
        ports=int(settings.number("agent", "ports")),
        active_timeout=settings.number("agent", "active_timeout"),
        bridges=len(bridges),
        unify_scale=int(settings.number("agent", "unify_scale")),
        unify_grace=settings.number("agent", "unify_grace"),
        processors=os.cpu_count() or 1,
    )
    if flows < limits.least_lru:
        logging.getLogger(__name__).warning(
            "[agent] flows = %d is small for %d processors: Linux before 6.17 may forget connections that "
            "are not silent; set at least %d",
            *(flows, limits.processors, limits.least_lru),
        )
    options = AgentOptions(
        bridges=bridges,
        targets=targets,
        limits=limits,
        tls=TlsFiles(
            args.private_key or _file(settings.value("agent", "private_key")),
            args.certificate or _file(settings.value("agent", "certificate")),
            args.ca_cert or _file(settings.value("agent", "ca_cert")),
        ),
        far_queues=settings.far_queues(),
        uplinks=settings.uplinks(),
        told=ToldScales(
            str(settings.value("agent", "told_scale")),
            tuple(str(settings.value("agent", "told_ports")).split()),
        ),
    )
    return agent.run(options)


def _file(value: object) -> Path | None:
    """The file that a setting names; None if it is empty."""
    return Path(str(value)) if value else None
