"""The address on which the REST interface listens, and the error if it cannot."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ryu import cfg

from fairq_ryu.errors import UserError
from fairq_ryu.rest import handler

ROOT = Path(__file__).resolve().parents[3]


def test_the_default_is_this_machine_and_an_option_overrides_it(tmp_path):
    """In its own process, because Ryu's configuration is global to a process."""
    path = tmp_path / "ryu.conf"
    path.write_text("[DEFAULT]\nwsapi_host = 10.0.0.2\n")
    program = f"""
import importlib, sys
import ryu.cmd.manager  # the program; all of its options are known before it reads any
from ryu import cfg
from ryu.app import wsgi
given = [], ["--wsapi-host", "10.0.0.1"], ["--wsapi-host", "0.0.0.0"], ["--config-file", {str(path)!r}]
for arguments in given:
    cfg.CONF.clear()
    cfg.CONF(args=arguments, project="ryu", default_config_files=[])
    before = cfg.CONF.wsapi_host
    sys.modules.pop("fairq_ryu.rest.handler", None)
    importlib.import_module("fairq_ryu.rest.handler")
    print(before, cfg.CONF.wsapi_host, cfg.CONF.wsapi_port)
    cfg.CONF.set_default("wsapi_host", wsgi.DEFAULT_WSGI_HOST)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "0.0.0.0 127.0.0.1 8080",
        "10.0.0.1 10.0.0.1 8080",
        "0.0.0.0 0.0.0.0 8080",
        "10.0.0.2 10.0.0.2 8080",
    ]


@pytest.fixture
def listen_on():
    """Sets an address and a port in the configuration."""

    def listen_on(host: str, port: int) -> None:
        cfg.CONF.set_override("wsapi_host", host)
        cfg.CONF.set_override("wsapi_port", port)

    yield listen_on
    cfg.CONF.clear_override("wsapi_host")
    cfg.CONF.clear_override("wsapi_port")


def test_a_port_that_is_free(listen_on):
    listen_on("127.0.0.1", 0)
    handler.check_port()


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_is_taken(listen_on, shared):
    """Also by another Ryu, which shares its port (SO_REUSEPORT)."""
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        listen_on("127.0.0.1", number)
        with pytest.raises(UserError, match=f"port {number} of 127.0.0.1, .* is taken") as refused:
            handler.check_port()
    assert "--wsapi-port" in refused.value.remedy
    handler.check_port()


@pytest.mark.parametrize(
    ("host", "number", "message"),
    [
        ("127.0.0.1", 70000, "there is no port 70000"),
        ("127.0.0.1", -1, "there is no port -1"),
        ("192.0.2.1", 0, "cannot serve REST on 192.0.2.1 port 0: "),
        ("2001:db8::1", 0, "cannot serve REST on 2001:db8::1 port 0: "),
        ("nonsense.invalid", 0, "cannot serve REST on nonsense.invalid"),
        ("", 6653, "port 6653 is used for OpenFlow"),
    ],
)
def test_an_address_that_cannot_be_bound(listen_on, host, number, message):
    listen_on(host, number)
    with pytest.raises(UserError, match=message):
        handler.check_port()
