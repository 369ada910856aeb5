"""``fairq simulate``: its arguments; the simulator is in ../../experiments/simulator."""

from __future__ import annotations

import argparse
import sys

from fairq_ryu.cli.commands import options
from fairq_ryu.cli.commands import run as run_command

NAME = "simulate"
HELP = "simulate an incast packet by packet, at rates of up to 100 Gbit/s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    run_command.add_experiment(parser, "each time with the next seed")
    parser.add_argument(
        "--link-mbit",
        type=_rate,
        metavar="RATE",
        help="rate of every sender's link, Mbit/s (default: that of the bottleneck)",
    )
    parser.add_argument(
        "--ack-every",
        type=int,
        choices=(1, 2),
        default=2,
        metavar="N",
        help="segments for which a receiver of bulk data sends an ACK, 1 or 2; with 2, that of a single one"
        " comes after 40 ms, as Linux has it (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import ownership
    from fairq_ryu.experiments.simulator import runner

    chosen = run_command.experiment(args)
    with ownership.given_to_caller(args.out, runner.WRITTEN):
        code = runner.main(*chosen, args.config_file, args.repeat, args.full, args.link_mbit, args.ack_every)
    print(f"next: {options.typed('report', args.out)}", file=sys.stderr)
    return code


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 1 <= rate <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate from 1 to 1,000,000 Mbit/s")
    return rate
