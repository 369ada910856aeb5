import zlib

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.traffic import payload


@given(st.integers(0, 2**32), st.integers(0, 3_000_000))
def test_pieces_of_a_payload_are_its_pattern(seed, size):
    whole = bytes(payload.pattern(seed, size))
    assert payload.checksum(seed, size) == zlib.crc32(whole)
    position = size // 3
    part = payload.piece(seed, position, size - position)
    assert part == whole[position : position + len(part)]
    assert len(part) == min(size - position, payload.PIECE)


def test_every_mouse_has_bytes_of_its_own():
    assert payload.pattern(1, 1000) == payload.pattern(1, 1000)
    assert payload.pattern(1, 1000) != payload.pattern(2, 1000)
    assert len(payload.pattern(3, 0)) == 0
