"""The status of an agent as a table for a terminal, for ``fairq status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from fairq_ryu.cli.columns import console, long, number, plain_table, print_whole
from fairq_ryu.cli.far_notes import rate_text
from fairq_ryu.errors import plain


def print_status(about: dict[str, Any]) -> None:
    """Print what :func:`fairq_ryu.agent.status.ask` returned."""
    out = console()
    if about["deleted"]:
        out.print(
            Text(plain(f"bridge {about['bridge']} does not exist: its agent waits until it is there again"))
        )
    for controller in about["controllers"]:
        state = "connected" if controller["connected"] else "not connected"
        out.print(Text(plain(f"controller {controller['target']}: {state}")))
    out.print(Text(plain(f"bridge {about['bridge']}: {about['flows']} flows, {about['rules']} rules")))
    columns = [
        number("port"),
        long("name"),
        number("queue B"),
        number("limit B"),
        number("Mbit/s"),
        number("drops"),
        number("active"),
        long("window B"),
        number("lowered"),
    ]
    rows, ports = [_row(port) for port in about["ports"]], about["ports"]
    note = "lowered: ACKs whose window was lowered"
    if any(port["mode"] == "observe" or port["would_lower"] for port in ports):
        columns += [number("would lower"), long("mode")]
        rows = [[*row, str(port["would_lower"]), port["mode"]] for row, port in zip(rows, ports, strict=True)]
        note += "; would lower: those that were counted instead, because the port is only observed"
    print_whole(out, plain_table(columns, rows))
    out.print(Text(note))
    for line in _remarks(about):
        out.print(Text(plain(line)))


def _on_filters(port: str, filters: dict[str, Any]) -> Iterator[str]:
    """Whether packets reach the agent's programs."""
    before = f"{', '.join(filters['before'])} runs before the agent's programs at tc egress"
    if filters["place"] == "tcx":
        yield f"{port}: windows are lowered by tcx, without turns and queue laws, beside its ingress qdisc"
    if filters["missed"]:
        missed = f"{filters['missed']} TCP packets have left without reaching the agent's programs"
        yield f"{port} is not governed: {missed}: {before}"
    elif filters["before"]:
        yield f"{port}: {before}"
    if filters["refusal"]:
        yield f"{port} is not governed: somebody has removed filters of the agent: {filters['refusal']}"
    if filters["restored"]:
        yield f"{port}: removed filters of the agent were attached again, {filters['restored']} times"


def _row(port: dict[str, Any]) -> list[str]:
    queue, rule = port["queue"], port["rule"]
    return [
        str(port["ofport"]),
        port["name"],
        str(queue["bytes"]),
        str(queue["limit"] or "-"),
        f"{queue['rate'] * 8 / 1e6:.0f}" if queue["rate"] else "-",
        str(queue["drops"]),
        str(port["active_flows"]),
        _window(rule) if rule else "-",
        str(port["rewritten"]),
    ]


def _window(rule: dict[str, Any]) -> str:
    """The windows of a port, as `fairq show` has them."""
    law = rule.get("law")
    if law and not rule["bytes"]:
        return "law"  # it limits no flow now
    shared = law["pool"] if law else rule["kind"] == "pool"
    return f"{'pool' if shared else 'each'} {rule['bytes']}"


def _remarks(about: dict[str, Any]) -> Iterator[str]:
    for port in about["ports"]:
        # Most ports of a switch have no queue, and the table shows it.
        if port["queue"]["reason"] and port["queue"]["kind"] != "noqueue":
            yield f"port {port['ofport']} has no windows: {port['queue']['reason']}"
        if far := port["far"]:
            text = "is a far queue: a virtual queue of what arrives; drops are segments that came again"
            rate = rate_text(far["why"], 8 * far["line"], 8 * far["rate"])
            yield f"port {port['ofport']} {text}; {rate}"
        without = port["no_acks"]
        if without["total"]:
            yield (
                f"port {port['ofport']}: data seen, no ACKs: {without['now']} flows now, {without['total']} "
                "since the agent started; their windows are not lowered"
            )
        if port["tx_queues"]:
            backlogs = ", ".join(str(each["bytes"]) for each in port["tx_queues"])
            yield f"port {port['ofport']}: the longest of its transmit queues, which have {backlogs} B"
        if watched := port["congestion"]:
            bounds = f"CNG from {watched['cng']} B, NOM at {watched['nom']} B"
            text = f"port {port['ofport']}: {watched['state']}, {bounds}"
            yield text + (", drops reported" if watched["drops"] else "")
        yield from _on_filters(f"port {port['ofport']}", port["filters"])
    reports = about["drop_reports"]
    if not reports["available"]:
        yield f"dropped packets are not reported: {reports['unavailable']}"
    elif reports["told"] or reports["held_back"] or reports["lost"]:
        yield (
            f"dropped packets: {reports['told']} reported, {reports['held_back']} held back, "
            f"{reports['lost']} lost, {reports['passed_over']} of no interest"
        )
    copies = about["segment_copies"]
    if copies["rules"] or copies["copies_suppressed"] or copies["lost"] or copies["unread"]:
        yield (
            f"copies of SYN, FIN and RST: {copies['sent']} sent, "
            f"{copies['copies_suppressed']} beyond the rate, {copies['lost']} lost, "
            f"{copies['unread']} not read"
        )
    for device in about["windows_only"]:
        yield f"windows only: {', '.join(device['names'])} ({device['reason']})"
    for entry in about["unwatched"]:
        yield f"not watched: {entry['name']} ({entry['reason']})"
