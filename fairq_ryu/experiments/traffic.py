"""The load generator: four roles, each a small process inside a host.

    python -m fairq_ryu.experiments.traffic sink  --port P     receiver: takes the elephants' bytes
    python -m fairq_ryu.experiments.traffic elephants          sender:   long-lived bulk connections
    python -m fairq_ryu.experiments.traffic server --port P    sender:   answers mice
    python -m fairq_ryu.experiments.traffic client             receiver: opens a volley of mice at once

Control is one JSON object a line, commands on stdin and answers on stdout, so that not one byte of it crosses
the network that is measured. Every command has ``cmd``; every answer repeats it as ``re``. End of stdin ends
the process. A role that cannot go on answers ``{"re": "error", "message": ...}`` and exits with 1.

Standard library only.
"""

from __future__ import annotations

import argparse
import sys

from fairq_ryu.experiments.bulk import Elephants, Sink
from fairq_ryu.experiments.control import Loop, Role, answer
from fairq_ryu.experiments.mice import Client, Server


def main(argv: list[str] | None = None) -> int:
    """Run one role until stdin ends."""
    parser = argparse.ArgumentParser(prog="traffic", description="load generator of fairq run")
    parser.add_argument("role", choices=["sink", "elephants", "server", "client"])
    parser.add_argument("--port", type=int, default=0, help="where to listen; 0: any free port")
    arguments = parser.parse_args(argv)
    loop = Loop(sys.stdin.fileno())
    try:
        role: Role
        match arguments.role:
            case "sink":
                role = Sink(loop, arguments.port)
            case "elephants":
                role = Elephants(loop)
            case "server":
                role = Server(loop, arguments.port)
            case _:
                role = Client(loop)
        loop.run(role)
    except (OSError, RuntimeError, ValueError) as error:
        answer("error", message=str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
