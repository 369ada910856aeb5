"""Manual pages: commands from their help, the configuration from its settings, services from their units."""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Iterable, Mapping

from fairq_ryu import __version__
from fairq_ryu.config import schema, services
from fairq_ryu.setting import Setting
from packages import dates, settings_file

_ENVIRONMENT = {
    "FAIRQ_URL": "Address of the controller's REST interface, for fairq show and fairq announce.",
    "FAIRQ_TOKEN": "Token for changes by the REST interface, where no token_file is configured or given.",
    "FAIRQ_RUNDIR": "Directory of agents for locks, sockets and flows, instead of /run/fairq_ryu.",
}
_FILES = {
    "/etc/fairq/fairq.conf": "Settings of controller and agents; see fairq.conf(5).",
    "/run/fairq_ryu": "Lock and status socket of each agent, and the flows that it hands over when it ends.",
}
_FILE = (
    "The file has sections, and lines of a name, an equals sign and a value. [DEFAULT] has options of Ryu: "
    "ofp_listen_host and ofp_tcp_listen_port, where switches connect, wsapi_host and wsapi_port, where the "
    "REST interface is. [ports] has policies of single ports: a pattern on an interface's name, or role:host "
    "or role:link, and the name of a policy. Unknown settings and values outside their limits are refused; "
    "fairq check FILE says where."
)
_EXIT = {"0": "Done.", "1": "Failed.", "2": "An error that the user can correct; standard error says how."}


def pages(parser: argparse.ArgumentParser, units: Mapping[str, str]) -> dict[str, str]:
    """All pages, in roff, by file name (``fairq.1``). ``parser``: that of the ``fairq`` command; ``units``:
    the text of each unit file, by its name.
    """
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    helps = {each.dest: each.help or "" for each in commands._choices_actions}
    found = {"fairq.1": _main_page(parser, helps)}
    for name, command in commands.choices.items():
        found[f"fairq-{name}.1"] = _command_page(name, command, helps[name])
    found["fairq.conf.5"] = _settings_page()
    for name, text in units.items():
        found[f"{name}.8"] = _unit_page(name, text)
    return found


def escaped(text: str) -> str:
    """Text that roff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", "\\&.", text, flags=re.MULTILINE)


def _page(name: str, section: int, summary: str, *parts: str) -> str:
    when = datetime.datetime.fromtimestamp(dates.date(), datetime.UTC)
    head = (
        f'.TH "{escaped(name.upper())}" {section} "{when:%Y-%m-%d}" "fairq_ryu {__version__}" "fairq_ryu"\n'
    )
    summary = summary[:1].lower() + summary[1:]
    return head + f".SH NAME\n{escaped(name)} \\- {escaped(summary.rstrip('.'))}\n" + "".join(parts)


def _section(title: str, body: str) -> str:
    return f".SH {title}\n{body}"


def _listed(entries: Iterable[tuple[str, str]]) -> str:
    return "".join(f".TP\n.B {escaped(name)}\n{escaped(text)}\n" for name, text in entries)


def _see_also(*names: str) -> str:
    return _section("SEE ALSO", ", ".join(map(escaped, names)) + "\n")


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(prog=parser.prog, width=78)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    usage = formatter.format_help().strip().removeprefix("usage: ")
    return _section("SYNOPSIS", f".nf\n{escaped(usage)}\n.fi\n")


def _options(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(prog=parser.prog, width=200)
    parts = []
    for group in parser._action_groups:
        shown = [each for each in group._group_actions if each.help is not argparse.SUPPRESS]
        shown = [each for each in shown if not isinstance(each, argparse._SubParsersAction)]
        if not shown:
            continue
        title = {"positional arguments": "ARGUMENTS"}.get(
            group.title or "", (group.title or "options").upper()
        )
        body = f"{escaped(group.description)}.\n" if group.description else ""
        body += _listed(
            (formatter._format_action_invocation(each), formatter._expand_help(each) if each.help else "")
            for each in shown
        )
        parts.append(_section(title, body))
    return "".join(parts)


def _actions(command: argparse.ArgumentParser) -> str:
    """What a command is told to do with words of its own, and their options."""
    parts = []
    for each in command._actions:
        if not isinstance(each, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in each._choices_actions}
        for name, action in each.choices.items():
            formatter = argparse.HelpFormatter(prog=action.prog, width=200)
            shared = command._option_string_actions.keys()
            own = [one for one in action._actions if not shared & {*one.option_strings}]
            body = f"{escaped(helps[name])}.\n" + _listed(
                (formatter._format_action_invocation(one), formatter._expand_help(one) if one.help else "")
                for one in own
            )
            parts.append(_section(f"{command.prog} {name}".upper(), body))
    return "".join(parts)


def _main_page(parser: argparse.ArgumentParser, helps: Mapping[str, str]) -> str:
    return _page(
        "fairq",
        1,
        "fair shares and short queues for TCP, without changing any host",
        _usage(parser),
        _section("DESCRIPTION", f"{escaped(parser.description or '')}\n"),
        _section("COMMANDS", _listed((f"fairq-{name}(1)", f"{text}.") for name, text in helps.items())),
        _options(parser),
        _section("EXIT STATUS", _listed(_EXIT.items())),
        _section("ENVIRONMENT", _listed(_ENVIRONMENT.items())),
        _section("FILES", _listed(_FILES.items())),
        _see_also("fairq.conf(5)", "fairq-agent@.service(8)", "fairq-controller.service(8)"),
    )


def _command_page(name: str, command: argparse.ArgumentParser, summary: str) -> str:
    return _page(
        f"fairq-{name}",
        1,
        summary,
        _usage(command),
        _options(command),
        _actions(command),
        _section("EXIT STATUS", _listed(_EXIT.items())),
        _see_also("fairq(1)", "fairq.conf(5)"),
    )


def _settings_page() -> str:
    sections = {name: list(settings.values()) for name, settings in schema.sections().items()}
    sections["service.NAME"] = list(services.SERVICE_SETTINGS)
    parts = [
        _section(f'"SECTION [{name}]"', _listed(map(_entry, settings))) for name, settings in sections.items()
    ]
    return _page(
        "fairq.conf",
        5,
        "settings of the controller and the agents of fairq_ryu",
        _section(
            "DESCRIPTION",
            escaped(_FILE) + "\n",
        ),
        *parts,
        _see_also("fairq(1)", "fairq-agent@.service(8)", "fairq-controller.service(8)"),
    )


def _entry(setting: Setting) -> tuple[str, str]:
    allowed = settings_file.bounds(setting)
    default = settings_file.shown(setting.default) or "empty"
    about = f"{setting.help} Default: {default}{f' {setting.unit}' if setting.unit else ''}."
    return setting.name, f"{about} Values: {allowed}." if allowed else about


def _unit_page(name: str, text: str) -> str:
    def values(key: str) -> list[str]:
        return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)

    (description,), (start,) = values("Description"), values("ExecStart")
    user = (values("User") or ["root"])[0]
    capabilities = " ".join(values("CapabilityBoundingSet")).split()
    comments = " ".join(re.findall(r"^# (.*)$", text, re.MULTILINE))
    rights = [("User", user), ("Capabilities", ", ".join(capabilities) or "none")]
    return _page(
        name,
        8,
        description.replace("%i", "BRIDGE"),
        _section("SYNOPSIS", f"{escaped(name.replace('@', '@BRIDGE'))}\n"),
        _section(
            "DESCRIPTION", f"The service runs:\n.PP\n.nf\n{escaped(start.replace('%i', 'BRIDGE'))}\n.fi\n"
        ),
        _section("PRIVILEGES", _listed(rights)),
        _section("NOTES", f"{escaped(comments)}\n"),
        _section("FILES", _listed(_FILES.items())),
        _see_also("fairq(1)", "fairq-agent(1)", "fairq.conf(5)", "journalctl(1)"),
    )
