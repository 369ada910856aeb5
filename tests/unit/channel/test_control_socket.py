import contextlib
import socket

import pytest

from fairq_ryu.channel.control_socket import send_again_soon

_TCP_RTO_MAX_MS = 44


def timeout_ms(sock: socket.socket) -> int:
    """The longest retransmission timeout of a socket, in ms."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, _TCP_RTO_MAX_MS)
    except OSError:
        pytest.skip("this kernel has no limit of a socket's retransmission timeout (Linux 6.15)")


def test_both_ends_send_again_after_a_second_at_most():
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        send_again_soon(listener)
        ours = stack.enter_context(socket.create_connection(listener.getsockname()))
        accepted = stack.enter_context(listener.accept()[0])
        assert timeout_ms(accepted) == 1000 < timeout_ms(ours)
        send_again_soon(ours)
        assert timeout_ms(ours) == 1000


def test_a_kernel_without_it_is_no_failure():
    with socket.socket(socket.AF_UNIX) as sock:
        send_again_soon(sock)
