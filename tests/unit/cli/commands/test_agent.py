"""`fairq agent`: what it makes of its arguments and of the configuration."""

import logging
import os

import pytest

from fairq_ryu.agent import agent
from fairq_ryu.cli.main import main


@pytest.mark.parametrize(("flows", "warned"), [(1000, True), (2000, False)])
def test_a_map_of_flows_that_is_too_small_for_the_processors_is_named(
    tmp_path, monkeypatch, caplog, flows, warned
):
    options = []
    monkeypatch.setattr(agent, "run", lambda each: options.append(each) or 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    file = tmp_path / "fairq.conf"
    file.write_text(f"[agent]\nflows = {flows}\n")
    caplog.set_level(logging.INFO, "fairq_ryu")  # the command sets it, too: it is restored
    assert main(["agent", "--bridge", "s1", "--config-file", str(file)]) == 0
    assert (options[0].limits.flows, options[0].limits.processors) == (flows, 7)
    assert ("set at least 1792" in caplog.text) is warned
