"""Names that others have chosen, in messages and commands."""

from __future__ import annotations

import subprocess

import pytest

from fairq_ryu.errors import plain, quoted

NAMES = ["eth0", "x$(id)", "a b", "it's", "-x", "`id`;", "\x1b[31mred", "ä\x07", "a\nb", "\\x41\x01", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_quoted_name_reaches_a_command_as_it_is(name: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"printf %s {quoted(name)}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == name


@pytest.mark.parametrize("name", NAMES)
def test_neither_form_has_characters_that_a_terminal_interprets(name: str) -> None:
    assert quoted(name).isprintable() and plain(name).isprintable()
    assert len(plain(name)) == len(name)
