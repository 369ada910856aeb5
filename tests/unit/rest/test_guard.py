"""The token of the controller: its sources, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.rest import setup
from fairq_ryu.rest.guard import read_token

TOKEN = "0123456789abcdef"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o640)
    return path


def test_from_a_file_or_from_the_environment(file):
    assert read_token("", "") == ""
    assert read_token("", TOKEN) == TOKEN
    assert read_token(str(file), "") == TOKEN


def test_not_from_both(file):
    with pytest.raises(UserError, match="token_file and FAIRQ_TOKEN give"):
        read_token(str(file), TOKEN)


def test_not_from_a_file_that_everybody_can_read(file):
    file.chmod(0o644)
    with pytest.raises(UserError, match="every user of this machine can read") as refused:
        read_token(str(file), "")
    assert refused.value.remedy == f"chmod o= {file}"


def test_not_from_a_missing_file(tmp_path):
    for name in ("nothing", "."):
        with pytest.raises(UserError, match="cannot read the token from"):
            read_token(str(tmp_path / name), "")


NONE = ["", "short", "x" * 15, f"{TOKEN} {TOKEN}", f"{TOKEN}\n{TOKEN}", "ü" * 20, "x" * 5000]


@pytest.mark.parametrize("text", NONE, ids=len)
def test_invalid_tokens(file, text):
    file.write_text(text)
    with pytest.raises(UserError, match="is not valid") as refused:
        read_token(str(file), "")
    assert "openssl rand" in refused.value.remedy
    assert len(text) < 9 or text not in str(refused.value)


def test_the_settings_of_a_controller(file, monkeypatch):
    monkeypatch.delenv("FAIRQ_TOKEN", raising=False)
    config = Config({("fairq_ryu", "token_file"): str(file)})
    assert setup.token(config) == TOKEN
    assert setup.token(Config()) == ""
    monkeypatch.setenv("FAIRQ_TOKEN", TOKEN)
    assert setup.token(Config()) == TOKEN
    with pytest.raises(UserError):
        setup.token(config)
