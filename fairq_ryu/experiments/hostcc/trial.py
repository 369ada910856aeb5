"""What `fairq doctor` tries: loads the congestion controls of hosts without registering them, so that nothing
sees them. Prints one JSON object: by the name of a control, the fault, "" if the kernel takes it.
"""

from __future__ import annotations

import json

from fairq_ryu.agent.libbpf import BpfError, in_short
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc.controls import loaded
from fairq_ryu.experiments.hostcc.names import OWN


def main() -> None:
    """Try everything and print it."""
    print(json.dumps({name: _fault(name) for name in OWN}))


def _fault(name: str) -> str:
    try:
        loaded(name).close()
    except (BpfError, UserError) as error:
        return in_short(error)
    return ""
