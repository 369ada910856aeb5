"""Loads the configuration that ryu-manager was given, and ends with one line if it is wrong."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ryu import cfg
from ryu.ofproto import ofproto_common

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError

T = TypeVar("T")


def load() -> loader.Config:
    """The settings of the files named by ``--config-file``. Raises :class:`UserError`."""
    return loader.load(Path(name) for name in cfg.CONF.config_file or [] if Path(name).exists())


def check_port() -> None:
    """Raise :class:`UserError` if the OpenFlow port is in use: Ryu itself would only log it and keep
    running.
    """
    secure = cfg.CONF.ctl_privkey is not None and cfg.CONF.ctl_cert is not None
    tcp_port, ssl_port = cfg.CONF.ofp_tcp_listen_port, cfg.CONF.ofp_ssl_listen_port
    if not tcp_port and not ssl_port:
        tcp_port, ssl_port = ofproto_common.OFP_TCP_PORT, ofproto_common.OFP_SSL_PORT
    option = "--ofp-ssl-listen-port" if secure else "--ofp-tcp-listen-port"
    port = ssl_port if secure else tcp_port
    if not port:
        raise UserError("Ryu has been given no port to listen on", f"give {option}")
    host = cfg.CONF.ofp_listen_host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UserError(
                    f"cannot listen on {host} port {port}: {error.strerror}", "see --ofp-listen-host"
                ) from None
            raise UserError(
                f"port {port} is taken by another controller",
                f"end that one, or choose another with {option}",
            ) from None


def or_exit(job: Callable[[], T]) -> T:
    """Run ``job``; a :class:`UserError` ends ryu-manager with one line and code 2.

    ``os._exit``, because Ryu has already started threads for which a normal exit would wait.
    """
    try:
        return job()
    except UserError as error:
        print(f"fairq_ryu: {error}", file=sys.stderr, flush=True)
        os._exit(2)
