"""Tables on narrow terminals."""

from __future__ import annotations

import pytest

from fairq_ryu.cli import columns
from fairq_ryu.cli.columns import long, number, plain_table, word


@pytest.mark.parametrize("width", [30, 46, 60, 100])
def test_no_number_is_cut_however_narrow_the_terminal(monkeypatch, capsys, width):
    monkeypatch.setattr(columns, "WIDTH", width)
    made = plain_table(
        [word("port"), long("name"), number("queue B"), number("drops"), long("policy")],
        [["9a1f3c22d04e:17", "tap0123456789ab", "1048576", "18446744073", "fairq"]],
    )
    columns.console().print(made)
    lines = capsys.readouterr().out.splitlines()
    words = " ".join(lines).split()
    assert {"9a1f3c22d04e:17", "1048576", "18446744073", "fairq"} <= set(words)
    assert "…" not in " ".join(words)
    assert max(map(len, lines)) <= max(width, 15 + 8 + 7 + 11 + 6 + 4)
