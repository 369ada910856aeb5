"""/etc/fairq/fairq.conf has every setting of the code, with its default, and is accepted by the reader."""

from __future__ import annotations

import re

import pytest

from fairq_ryu.config import loader, schema
from fairq_ryu.errors import UserError
from packages import settings_file

TEXT = settings_file.text()


def load(tmp_path, text):
    path = tmp_path / "fairq.conf"
    path.write_text(text)
    return loader.load([path])


def test_the_file_changes_only_what_a_service_must_know(tmp_path):
    changed = {
        (section, name): value
        for section, values in load(tmp_path, TEXT).as_dict().items()
        for name, value in values.items()
        if value != loader.Config().value(section, name)
    }
    assert changed == {("fairq_ryu", "policy"): "fairq"} == settings_file.GIVEN


def sections():
    """The names of the settings, set or commented out, by section."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in TEXT.splitlines():
        if header := re.match(r"#?\[(.+)\]$", line):
            names = found.setdefault(header[1], [])
        elif entry := re.match(r"#?([a-z_]+) =", line):
            names.append(entry[1])
    return found


def test_every_setting_is_in_the_file_in_its_section():
    found = sections()
    for section, settings in schema.sections().items():
        assert found[section] == list(settings)
    assert found["service.NAME"] == ["port", "host", "size", "deadline", "direction"]


def test_the_examples_are_accepted(tmp_path):
    assert settings_file.EXAMPLES in TEXT
    config = load(tmp_path, re.sub(r"^#(?! )", "", settings_file.EXAMPLES, flags=re.MULTILINE))
    assert [each.port for each in config.far_queues()] == ["eth0"]
    assert [each.name for each in config.uplinks()] == ["rack1"]
    assert [each.name for each in config.tenants()] == ["web"]


def test_lines_without_the_comment_sign_are_the_defaults(tmp_path):
    text = re.sub(r"^#(?=[a-z_:]+ =)", "", TEXT, flags=re.MULTILINE)
    text = "\n".join(text.splitlines()).replace("#[ports]\n", "[ports]\n")
    # The lines of a service are comments of [ports] as long as its header is one.
    head, _, tail = text.partition("#[service.NAME]\n")
    text = head + "[" + tail.partition("\n[")[2]
    config = load(tmp_path, text)
    assert config.port_policies() == (("role:link", "droptail"),)
    defaults = loader.Config().changed("fairq_ryu", {"policy": "fairq"}).as_dict()
    assert {**config.as_dict(), "ports": None} == {**defaults, "ports": None}


@pytest.mark.parametrize("setting", [each for s in schema.sections().values() for each in s.values()])
def test_limits_are_those_of_the_setting(setting):
    shown = settings_file.bounds(setting)
    if setting.maximum is not None:
        number = shown.split(" to ")[1].split()[0]
        assert float(number) == pytest.approx(setting.maximum, rel=1e-5)
        with pytest.raises(ValueError, match="is more than"):
            setting.parse(str(int(setting.maximum) + 1))
    for choice in setting.choices:
        assert choice in shown


def test_a_mistake_in_the_file_is_found(tmp_path):
    with pytest.raises(UserError, match="leas"):
        load(tmp_path, TEXT.replace("#lease = ", "leas = "))


def test_lines_fit_a_terminal():
    assert max(map(len, TEXT.splitlines())) <= 110
