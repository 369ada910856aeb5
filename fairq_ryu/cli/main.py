"""The ``fairq`` command. Parses arguments and calls what does the work; errors end as one line."""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import sys
from pathlib import Path

from fairq_ryu import __version__
from fairq_ryu.errors import UserError


def _config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config-file",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="configuration file; may be repeated, a later one overrides settings of an earlier one",
    )


def _url_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        help="the controller's REST interface "
        "(default: the variable FAIRQ_URL, or else http://127.0.0.1:8080)",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:  # not a number is neither
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return value


def _repetitions(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def _announce_command(announce: argparse.ArgumentParser) -> None:
    from fairq_ryu.cli.announce import byte_count, seconds

    announce.add_argument("--src", required=True, metavar="ADDRESS", help="IP address that sends the data")
    announce.add_argument("--dst", required=True, metavar="ADDRESS", help="IP address that receives it")
    announce.add_argument("--sport", type=int, metavar="PORT", help="TCP port of --src (default: any)")
    announce.add_argument("--dport", type=int, required=True, metavar="PORT", help="TCP port of --dst")
    announce.add_argument("--size", type=byte_count, metavar="BYTES", help="for example 12MB, or 64KiB")
    announce.add_argument(
        "--deadline",
        type=seconds,
        metavar="SECONDS",
        help="counted from the start of the flow, for example 0.8 or 300ms",
    )
    announce.add_argument(
        "--ttl", type=seconds, metavar="SECONDS", help="time within which the flow must start (default: 60)"
    )
    announce.add_argument(
        "--count",
        type=int,
        metavar="N",
        help="without --sport: number of flows to which it applies (default: 1)",
    )
    _url_option(announce)
    announce.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the controller's token (default: the variable FAIRQ_TOKEN)",
    )
    announce.add_argument("--json", action="store_true", help="print JSON")
    announce.set_defaults(run=_announce)


def _show_command(show: argparse.ArgumentParser) -> None:
    about = "gif: global information of flows, by priority, as SED and RSED keep it"
    kinds = ["ports", "flows", "paths", "gif", "events", "policy", "health"]
    kinds += ["announcements", "switches", "hosts", "links"]
    show.add_argument(
        "what", nargs="?", choices=kinds, default="ports", help=f"{about} (default: %(default)s)"
    )
    _url_option(show)
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--watch",
        nargs="?",
        type=_seconds,
        const=2.0,
        metavar="SECONDS",
        help="repeat until Ctrl-C (default: every %(const)g s)",
    )
    flows = show.add_argument_group("filters for flows", "checked by the controller")
    flows.add_argument("--src", metavar="ADDRESS", help="IP address of the side that opened the connection")
    flows.add_argument("--dst", metavar="ADDRESS", help="IP address of the other side")
    flows.add_argument("--port", help="TCP port of either side, or DPID:PORT, a switch port on its path")
    flows.add_argument("--state", help="for example established")
    lists = show.add_argument_group("part of a list")
    lists.add_argument("--limit", metavar="N", help="maximum number of rows (default 100, at most 1000)")
    lists.add_argument("--offset", metavar="N", help="number of rows to skip")
    lists.add_argument("--kind", help="filter for events: for example cng, loss, missed or unsent")
    show.set_defaults(run=_show)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairq", description="Fair shares and short queues for TCP, without changing any host."
    )
    parser.add_argument("--version", action="version", version=f"fairq_ryu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="check what this machine has and lacks")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(run=_doctor)

    agent = commands.add_parser("agent", help="run the switch agent of one bridge")
    agent.add_argument("--bridge", required=True, help="the Open vSwitch bridge, e.g. s1")
    agent.add_argument(
        "--controller",
        action="append",
        default=[],
        metavar="TARGET",
        help="tcp:HOST[:PORT] or ssl:HOST[:PORT]; may be repeated (default tcp:127.0.0.1:6653)",
    )
    agent.add_argument("--private-key", type=Path, metavar="PEM", help="for ssl: targets")
    agent.add_argument("--certificate", type=Path, metavar="PEM", help="for ssl: targets")
    agent.add_argument(
        "--ca-cert",
        type=Path,
        metavar="PEM",
        help="for ssl: targets: the authority that signed the controller's certificate",
    )
    agent.add_argument("--verbose", action="store_true", help="log more (level DEBUG)")
    _config_option(agent)
    agent.set_defaults(run=_agent)

    release = commands.add_parser("release", help="remove from a bridge what fairq_ryu has put into it")
    release.add_argument("--bridge", required=True, help="the Open vSwitch bridge, e.g. s1")
    release.set_defaults(run=_release)

    status = commands.add_parser("status", help="show the queues, rules and counters of a bridge's agent")
    status.add_argument("--bridge", help="the bridge (default: the only one with an agent)")
    status.add_argument("--json", action="store_true", help="print JSON, with histograms")
    status.set_defaults(run=_status)

    _show_command(
        commands.add_parser(
            "show",
            help="show ports, flows, paths, gif (flows by priority), events, policy and more",
        )
    )
    _announce_command(
        commands.add_parser("announce", help="announce the size and the deadline of a flow to the controller")
    )

    run = commands.add_parser("run", help="run an experiment")
    run.add_argument("scenario", nargs="?", help="a scenario's name (incast) or a .toml file")
    run.add_argument("--list", action="store_true", help="list scenarios and policies, and do nothing else")
    run.add_argument(
        "--policy",
        default="droptail,fairq",
        metavar="NAMES",
        help="policies to compare, comma separated (default: %(default)s)",
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="directory for result.json; must be given")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="NAME=VALUE",
        help="change a setting of the scenario; may be repeated",
    )
    run.add_argument(
        "--config-file", type=Path, metavar="FILE", help="configuration file for controller and agents"
    )
    run.add_argument(
        "--repeat",
        type=_repetitions,
        default=1,
        metavar="N",
        help="repeat the whole run N times, the order of the policies rotated, for means with 95%% confidence"
        " intervals (default: %(default)s)",
    )
    run.set_defaults(run=_run)

    report = commands.add_parser("report", help="draw pictures and a page from a result")
    report.add_argument("directory", type=Path, metavar="DIR", help="directory with result.json")
    report.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory for page and pictures (default: that of the result)",
    )
    report.set_defaults(run=_report)

    check = commands.add_parser("check", help="check a configuration file or a scenario")
    check.add_argument(
        "file", type=Path, metavar="FILE", help="a configuration, or a scenario if its name ends in .toml"
    )
    check.set_defaults(run=_check)
    return parser


def _doctor(args: argparse.Namespace) -> int:
    from fairq_ryu.cli.doctor import checklist

    return checklist.main(json_output=args.json)


def _agent(args: argparse.Namespace) -> int:
    from fairq_ryu.agent import agent
    from fairq_ryu.agent.programs.program import ProgramLimits
    from fairq_ryu.config import loader

    settings = loader.load(args.config_file)
    targets = tuple(agent.parse_target(text) for text in args.controller or ["tcp:127.0.0.1:6653"])
    logging.basicConfig(format=f"fairq agent: {args.bridge}: %(message)s", stream=sys.stderr)
    logging.getLogger("fairq_ryu").setLevel(logging.DEBUG if args.verbose else logging.INFO)
    limits = ProgramLimits(
        flows=int(settings.number("agent", "flows")),
        rules=int(settings.number("agent", "rules")),
        ports=int(settings.number("agent", "ports")),
        active_timeout=settings.number("agent", "active_timeout"),
    )
    options = agent.AgentOptions(
        bridge=args.bridge,
        targets=targets,
        limits=limits,
        flow_idle_timeout=settings.number("agent", "flow_idle_timeout"),
        closed_timeout=settings.number("agent", "closed_timeout"),
        reconnect_max=settings.number("agent", "reconnect_max"),
        congestion_gap=settings.number("agent", "congestion_gap"),
        drop_rate=settings.number("agent", "drop_rate"),
        tls=agent.TlsFiles(args.private_key, args.certificate, args.ca_cert),
    )
    return agent.run(options)


def _release(args: argparse.Namespace) -> int:
    from fairq_ryu.cli import release

    return release.main(args.bridge)


def _status(args: argparse.Namespace) -> int:
    from fairq_ryu.agent import status

    bridge = args.bridge
    if bridge is None:
        found = status.running()
        if len(found) != 1:
            there = f"agents run on {', '.join(found)}" if found else "no agent runs here"
            raise UserError(there, "name the bridge: fairq status --bridge NAME")
        bridge = found[0]
    about = status.ask(bridge)
    if args.json:
        print(json.dumps(about))
        return 0
    from fairq_ryu.cli.status_table import print_status

    print_status(about)
    return 0


def _show(args: argparse.Namespace) -> int:
    from fairq_ryu import client
    from fairq_ryu.cli import show

    names = ("src", "dst", "port", "state", "limit", "offset", "kind")
    filters = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    url = client.address(args.url)
    return show.main(args.what, url, filters, json_output=args.json, watch=args.watch)


def _announce(args: argparse.Namespace) -> int:
    from fairq_ryu import client
    from fairq_ryu.cli import announce as announcing

    names = ("src", "dst", "sport", "dport", "size", "deadline", "ttl", "count")
    said = {name: getattr(args, name) for name in names}
    url = client.address(args.url)
    return announcing.main(said, url, json_output=args.json, token_file=args.token_file)


def _run(args: argparse.Namespace) -> int:
    from fairq_ryu.experiments import listing, ownership, runner

    if args.list:
        listing.show()
        return 0
    if args.scenario is None:
        raise listing.nothing_named()
    if args.out is None:
        example = f"--out results/{Path(args.scenario).stem}"
        raise UserError("no directory for the result", f"add --out DIR, for example {example}")
    overrides = {}
    for text in args.overrides:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"--set {text!r} is not NAME=VALUE", "write for example --set rounds=20")
        overrides[name.strip()] = value.strip()
    policies = [name.strip() for name in args.policy.split(",") if name.strip()]
    with ownership.given_to_caller(args.out, runner.WRITTEN):
        code = runner.main(args.scenario, policies, args.out, overrides, args.config_file, args.repeat)
    if code in (0, 1):
        print(f"next: {_typed('report', args.out)}", file=sys.stderr)
    return code


def _typed(command: str, directory: Path) -> str:
    """A command as it can be typed here, with the program called as this one was."""
    program = Path(sys.argv[0])
    if program.is_absolute() and program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    return shlex.join([str(program), command, str(directory)])


def _report(args: argparse.Namespace) -> int:
    from fairq_ryu.experiments import ownership
    from fairq_ryu.experiments.report import report

    out = args.out or args.directory
    with ownership.given_to_caller(out, report.WRITTEN):
        return report.main(args.directory, out)


def _check(args: argparse.Namespace) -> int:
    if args.file.suffix == ".toml":
        from fairq_ryu.experiments import scenario

        scenario.load(str(args.file))
    else:
        from fairq_ryu.config import loader

        loader.load([args.file])
    print(f"{args.file}: fine")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 done, 1 failed, 2 the user can put it right."""
    args = _parser().parse_args(arguments)
    try:
        code: int = args.run(args)
        return code
    except UserError as error:
        for line in str(error).splitlines():
            print(f"fairq {args.command}: {line}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print(f"fairq {args.command}: interrupted", file=sys.stderr)
        return 130
