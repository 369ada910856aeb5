"""Runs of `fairq run` with few flows, whose bytes and ACKs are compared with what they must be."""

import json

from fairq_ryu.experiments.report import report
from tests.support.lab import fairq


def run(out, scenario, *settings, policy="droptail", config="", pictures=True):
    """The result of a policy; of several, a list. ``config``: of controller and agents; ``pictures``: draw
    the report, too.
    """
    words = ["run", scenario, "--policy", policy, "--out", str(out), "--set", "capture=yes"]
    if config:
        file = out.parent / f"{out.name}.conf"
        file.write_text(config)
        words += ["--config-file", str(file)]
    answer = fairq(*words, *(word for each in settings for word in ("--set", each)), timeout=200)
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    # Not by the command, which would load the libraries for pictures again for each test.
    assert not pictures or report.main(out, out) == 0
    found = json.loads((out / "result.json").read_text())["policies"]
    for each in found:
        assert each["integrity"]["mismatched"] == 0
        capture = each["capture"]
        assert capture["acks"] > 50
        assert (capture["beyond"], capture["bad_checksums"], capture["missed"]) == (0, 0, 0)
    assert not list((out / "logs").rglob("capture-*"))
    return found if "," in policy else found[0]
