"""The hidden-queue multipart."""

from __future__ import annotations

import pytest

from fairq_ryu.channel import hidden_queue
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.far_queue import FAR, Why

RECORD = HiddenQueue(FAR | 1, Why.OTHERS, 5_000, 6_000, 6_250_000, 3_700_000, 6_300_000, 1_000_000, 40)


def test_records_survive_the_wire() -> None:
    other = RECORD._replace(port=FAR | 2, why=Why.UNKNOWN, excess_ns=2**64 - 1)
    assert hidden_queue.decode_reply(hidden_queue.encode_reply([RECORD, other])) == [RECORD, other]
    assert hidden_queue.decode_request(hidden_queue.encode_request(FAR | 1)) == FAR | 1


@pytest.mark.parametrize("cut", [1, hidden_queue.RECORD_SIZE - 1])
def test_wrong_lengths_are_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="multiple of"):
        hidden_queue.decode_reply(hidden_queue.encode_reply([RECORD])[:-cut])
    with pytest.raises(ValueError, match="not 7"):
        hidden_queue.decode_request(bytes(7))


def test_the_mean_delay_is_that_between_two_records() -> None:
    later = RECORD._replace(excess_ns=5_000_000, samples=44)
    assert later.delay_s(RECORD) == 0.001
    assert RECORD.delay_s(None) is None and RECORD.delay_s(RECORD) is None
    assert RECORD.delay_s(later) is None, "the agent has begun anew"
