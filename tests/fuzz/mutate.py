"""Mutations that know the structure of OpenFlow: lengths, elements of 4 and 8 bytes, messages in a stream."""

import random
import struct

LENGTHS = (0, 1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 24, 40, 48, 56, 64, 255, 256, 0x7FFF, 0xFFF8, 0xFFFF)
BYTES = (0, 1, 2, 4, 7, 8, 0x7F, 0x80, 0xFE, 0xFF)


class Mutator:
    """Mutates messages of a corpus. The same seed gives the same messages."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def stream(self, corpus, opening=b"", max_messages=4):
        """The bytes of one connection, usually after the handshake without which they would be ignored."""
        rng = self.rng
        parts = [] if rng.random() < 0.2 else [opening]
        for _ in range(rng.randint(1, max_messages)):
            parts.append(self.message(rng.choice(corpus), corpus))
        if rng.random() < 0.05:
            rng.shuffle(parts)
        data = b"".join(parts)
        return data[: rng.randint(0, len(data))] if rng.random() < 0.05 else data

    def message(self, data, corpus=()):
        """One message, mutated a few times; its header usually has its new length."""
        rng = self.rng
        data = bytearray(data)
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            rng.choice(self.KINDS)(self, data, corpus)
        if len(data) >= 4 and rng.random() < 0.9:
            struct.pack_into("!H", data, 2, min(len(data), 0xFFFF))
        return bytes(data)

    def _at(self, data, step, size):
        """An offset for ``size`` bytes, usually a multiple of ``step``; None if there is none."""
        if len(data) < size:
            return None
        at = self.rng.randint(0, len(data) - size)
        return at // step * step if self.rng.random() < 0.9 else at

    def _length(self, data, _corpus):
        at = self._at(data, 2, 2)
        if at is not None:
            struct.pack_into("!H", data, at, self.rng.choice(LENGTHS))

    def _near_length(self, data, _corpus):
        at = self._at(data, 2, 2)
        if at is not None:
            value = struct.unpack_from("!H", data, at)[0] + self.rng.choice((-8, -4, -1, 1, 4, 8))
            struct.pack_into("!H", data, at, value & 0xFFFF)

    def _byte(self, data, _corpus):
        if data:
            data[self.rng.randrange(len(data))] = self.rng.choice(BYTES)

    def _bit(self, data, _corpus):
        if data:
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)

    def _type(self, data, _corpus):
        if len(data) > 1:
            data[1] = self.rng.randrange(32)

    def _multipart(self, data, _corpus):
        if len(data) > 10:
            struct.pack_into("!H", data, 8, self.rng.choice((*range(15), 0xFFFF)))

    def _cut(self, data, _corpus):
        del data[self.rng.randint(0, len(data)) :]

    def _double(self, data, _corpus):
        step = self.rng.choice((4, 8, 16, 64))
        at = self._at(data, step, step)
        if at is not None and len(data) < 60000:
            part = data[at : at + step]
            data[at:at] = part * self.rng.choice((1, 1, 2, 8, 100))

    def _repeat(self, data, _corpus):
        """The body repeated, up to the largest length of a header."""
        body = bytes(data[16:])
        if body:
            data += body * min(self.rng.choice((1, 3, 30, 3000)), (0xFFFF - len(data)) // len(body))

    def _remove(self, data, _corpus):
        step = self.rng.choice((1, 4, 8, 16))
        at = self._at(data, step, step)
        if at is not None:
            del data[at : at + step]

    def _swap(self, data, _corpus):
        one, other = self._at(data, 8, 8), self._at(data, 8, 8)
        if one is not None and other is not None:
            data[one : one + 8], data[other : other + 8] = data[other : other + 8], data[one : one + 8]

    def _splice(self, data, corpus):
        """The end of another message."""
        if corpus and data:
            other = self.rng.choice(corpus)
            at = self.rng.randint(0, len(data)) & ~7
            data[at:] = (
                other[at & ~7 :] if self.rng.random() < 0.5 else other[self.rng.randint(0, len(other)) :]
            )

    def _version(self, data, _corpus):
        if data:
            data[0] = self.rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 0xFF))

    def _header_length(self, data, _corpus):
        if len(data) > 3:
            struct.pack_into("!H", data, 2, self.rng.choice(LENGTHS))

    KINDS = (
        _length,
        _length,
        _length,
        _near_length,
        _byte,
        _bit,
        _type,
        _multipart,
        _cut,
        _double,
        _repeat,
        _remove,
        _swap,
        _splice,
        _version,
        _header_length,
    )
