"""An agent's status for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_status(about: dict[str, Any]) -> None:
    """Print what :func:`fairq_ryu.switch.status.ask` returned."""
    console = Console()
    for controller in about["controllers"]:
        state = "connected" if controller["connected"] else "not connected"
        console.print(f"controller {controller['target']}: {state}", highlight=False)
    table = Table(title=f"bridge {about['bridge']}: {about['flows']} flows, {about['rules']} rules")
    for title in (
        "port",
        "name",
        "queue B",
        "limit B",
        "Mbit/s",
        "drops",
        "active",
        "window",
        "lowered ACKs",
    ):
        table.add_column(title, justify="left" if title in ("name", "window") else "right")
    for port in about["ports"]:
        queue, rule = port["queue"], port["rule"]
        table.add_row(
            str(port["ofport"]),
            port["name"],
            str(queue["bytes"]),
            str(queue["limit"] or "-"),
            f"{queue['rate'] * 8 / 1e6:.0f}" if queue["rate"] else "-",
            str(queue["drops"]),
            str(port["active_flows"]),
            f"{rule['kind']} {rule['bytes']} B" if rule else "-",
            str(port["rewritten"]),
        )
    console.print(table)
    for port in about["ports"]:
        if watched := port["congestion"]:
            bounds = f"CNG from {watched['cng']} B, NOM at {watched['nom']} B"
            text = f"port {port['ofport']}: {watched['state']}, {bounds}"
            console.print(text + (", drops reported" if watched["drops"] else ""), highlight=False)
    reports = about["drop_reports"]
    if not reports["available"]:
        console.print(f"dropped packets are not reported: {reports['unavailable']}", highlight=False)
    elif reports["told"] or reports["held_back"] or reports["lost"]:
        console.print(
            f"dropped packets: {reports['told']} reported, {reports['held_back']} held back, "
            f"{reports['lost']} lost, {reports['passed_over']} of no interest",
            highlight=False,
        )
    for entry in about["unwatched"]:
        console.print(f"not watched: {entry['name']} ({entry['reason']})", highlight=False)
