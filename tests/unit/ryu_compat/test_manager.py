"""``ryu-manager``, as this package installs it."""

import sys
import types
from pathlib import Path

import pytest
from oslo_config import cfg

from fairq_ryu.errors import UserError
from fairq_ryu.ryu_compat import manager

ROOT = Path(__file__).parents[3]
APP = "fairq_ryu.apps.fairq"


def remedy(*arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        manager.check(arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("form", [("--config-file", "{}"), ("--config-file={}",)])
def test_a_config_file_that_is_not_there(tmp_path, form):
    file = tmp_path / "fairq.conf"
    said = remedy(*(word.format(file) for word in form), APP)
    assert f"there is no file {file}" in said and f"touch {file}" in said
    file.touch()
    manager.check([*(word.format(file) for word in form), APP])


def test_every_config_file_is_looked_at(tmp_path):
    (tmp_path / "a").touch()
    assert f"no file {tmp_path}/b" in remedy("--config-file", f"{tmp_path}/a", f"--config-file={tmp_path}/b")


def test_a_config_file_that_cannot_be_read(tmp_path):
    assert "Is a directory" in remedy("--config-file", str(tmp_path), APP)
    file = tmp_path / "a.conf"
    file.write_text("lease = 2\n")
    assert "line 1 is before the first [section]" in remedy("--config-file", str(file), APP)


def test_the_form_of_a_file_is_not_ours_to_judge_where_no_application_of_ours_is_named(tmp_path):
    file = tmp_path / "a.conf"
    file.write_text("[DEFAULT]\napp = a\napp = b\n")  # oslo.config has options that may come twice
    manager.check(["--config-file", str(file), "ryu.app.simple_switch_13"])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("fairq_ryu.apps.fairqq", "did you mean fairq_ryu.apps.fairq?"),
        ("fairq_ryu.apps.rsedd", "did you mean fairq_ryu.apps.rsed?"),
        ("fairq_ryu.fairq", "did you mean fairq_ryu.apps.fairq?"),
        ("fairq_ryu.apps.fairq.app", "there are fairq_ryu.apps.{"),
        ("fairq_ryu.apps.xyz", "there are fairq_ryu.apps.{"),
    ],
)
def test_an_application_that_is_not_there(wrong, meant):
    said = remedy(wrong)
    assert f"there is no application {wrong}" in said and meant in said


@pytest.mark.parametrize("app", ["fairq", "droptail", "fixed", "iqm", "sed", "rsed", "policy", "controller"])
def test_those_that_are_there(app):
    manager.check([f"fairq_ryu.apps.{app}", "ryu.app.simple_switch_13", "--verbose"])


@pytest.fixture
def ryu(monkeypatch):
    """Ryu's own main, which raises what a test says; and the applications that it was given."""
    conf = types.SimpleNamespace(app=[], app_lists=[])
    raised: list[BaseException] = []

    def main() -> None:
        if raised:
            raise raised[0]

    monkeypatch.setitem(sys.modules, "ryu.cmd.manager", types.SimpleNamespace(main=main))
    monkeypatch.setattr("ryu.cmd.manager", types.SimpleNamespace(main=main), raising=False)
    monkeypatch.setattr("ryu.cfg.CONF", conf)
    monkeypatch.setattr(sys, "argv", ["ryu-manager"])
    return conf, raised


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (cfg.ConfigFilesNotFoundError(["/a/b"]), "Failed to find some config files: /a/b."),
        (PermissionError(13, "Permission denied", "/a/b"), "Permission denied: '/a/b'."),
        (ModuleNotFoundError("No module named 'fairq'", name="fairq"), "did you mean fairq_ryu.apps.fairq?"),
    ],
)
def test_what_ryu_finds_wrong_is_one_line(ryu, capsys, error, said):
    conf, raised = ryu
    conf.app = ["fairq"]
    raised.append(error)
    assert manager.main() == 2
    out = capsys.readouterr()
    assert said in out.err and out.err.count("\n") == 1 and not out.out


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("No module named 'scipy'", name="scipy"), OSError("no file is named")]
)
def test_what_is_not_the_users_mistake_keeps_its_traceback(ryu, error):
    conf, raised = ryu
    conf.app = ["their.app"]
    raised.append(error)
    with pytest.raises(type(error)):
        manager.main()


def test_ryu_does_the_rest(ryu):
    assert manager.main() == 0


def test_it_is_installed_in_the_place_of_ryus():
    assert '"ryu-manager = fairq_ryu.ryu_compat.manager:main"' in (ROOT / "setup.py").read_text()
