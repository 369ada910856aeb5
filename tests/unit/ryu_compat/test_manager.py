"""``ryu-manager``, as this package installs it."""

import sys
import types
from pathlib import Path

import pytest
from oslo_config import cfg

from fairq_ryu.errors import UserError
from fairq_ryu.policies import base
from fairq_ryu.ryu_compat import manager

ROOT = Path(__file__).parents[3]
APP = "fairq_ryu.apps.fairq"


def remedy(*arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        manager.check(arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("form", [("--config-file", "{}"), ("--config-file={}",)])
def test_a_missing_config_file(tmp_path, form):
    file = tmp_path / "fairq.conf"
    shown = remedy(*(argument.format(file) for argument in form), APP)
    assert f"there is no file {file}" in shown and f"touch {file}" in shown
    file.touch()
    manager.check([*(argument.format(file) for argument in form), APP])


def test_every_config_file_is_checked(tmp_path):
    (tmp_path / "a").touch()
    assert f"no file {tmp_path}/b" in remedy("--config-file", f"{tmp_path}/a", f"--config-file={tmp_path}/b")


def test_a_config_file_that_cannot_be_read(tmp_path):
    assert "Is a directory" in remedy("--config-file", str(tmp_path), APP)
    file = tmp_path / "a.conf"
    file.write_text("lease = 2\n")
    assert "line 1 is before the first [section]" in remedy("--config-file", str(file), APP)


def test_config_files_are_not_checked_for_other_applications(tmp_path):
    file = tmp_path / "a.conf"
    file.write_text("[DEFAULT]\napp = a\napp = b\n")  # oslo.config has options that may come twice
    manager.check(["--config-file", str(file), "ryu.app.simple_switch_13"])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("fairq_ryu.apps.fairqq", "did you mean fairq_ryu.apps.fairq?"),
        ("fairq_ryu.apps.fairq-paper", "did you mean fairq_ryu.apps.fairq_paper?"),
        ("fairq_ryu.apps.rsedd", "did you mean fairq_ryu.apps.rsed?"),
        ("fairq_ryu.fairq", "did you mean fairq_ryu.apps.fairq?"),
        ("fairq_ryu.apps.fairq.app", "there are fairq_ryu.apps.{"),
        ("fairq_ryu.apps.xyz", "there are fairq_ryu.apps.{"),
    ],
)
def test_a_missing_application(wrong, meant):
    shown = remedy(wrong)
    assert f"there is no application {wrong}" in shown and meant in shown


@pytest.mark.parametrize("app", [*base.own(), "policy", "controller"])
def test_existing_applications(app):
    manager.check([base.app_of(app), "ryu.app.simple_switch_13", "--verbose"])


@pytest.fixture
def ryu(monkeypatch):
    """Ryu's own main, which raises the error of the test; and the applications that it was given."""
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
    ("error", "shown"),
    [
        (cfg.ConfigFilesNotFoundError(["/a/b"]), "Failed to find some config files: /a/b."),
        (PermissionError(13, "Permission denied", "/a/b"), "Permission denied: '/a/b'."),
        (ModuleNotFoundError("No module named 'fairq'", name="fairq"), "did you mean fairq_ryu.apps.fairq?"),
    ],
)
def test_an_error_of_ryu_is_one_line(ryu, capsys, error, shown):
    conf, raised = ryu
    conf.app = ["fairq"]
    raised.append(error)
    assert manager.main() == 2
    out = capsys.readouterr()
    assert shown in out.err and out.err.count("\n") == 1 and not out.out


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("No module named 'scipy'", name="scipy"), OSError("no file is named")]
)
def test_an_internal_error_keeps_its_traceback(ryu, error):
    conf, raised = ryu
    conf.app = ["their.app"]
    raised.append(error)
    with pytest.raises(type(error)):
        manager.main()


def test_ryu_gets_the_remaining_arguments(ryu):
    assert manager.main() == 0


def test_our_ryu_manager_replaces_the_one_of_ryu():
    assert '"ryu-manager = fairq_ryu.ryu_compat.manager:main"' in (ROOT / "setup.py").read_text()
