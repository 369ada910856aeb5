"""Fuzzing by hand: ``python -m tests.fuzz --minutes 10``, or ``make fuzz``.

Streams of mutated messages pass through all code that reads bytes from a socket, in this process. Each
outcome is described by a text; the last message of a stream with a new outcome is added to the corpus. Faults
are written to ``tests/data/corpus/TARGET/fault-*.bin``: correct them, and keep the files.
"""

import argparse
import hashlib
import logging
import random
import sys
import time

from tests.fuzz import corpus, messages, targets
from tests.fuzz.mutate import Mutator

# Longer messages are not added.
_MOST_BYTES = 1024
_PIECES = (1, 1, 1, 2, 5, 50)


class Fuzzer:
    """One target, its corpus, and the outcomes until now."""

    def __init__(self, name, seed):
        self.name = name
        self.target = corpus.target(name)
        self.corpus = list(corpus.load(name).values())
        self.mutator = Mutator(seed)
        self.outcomes = {}
        self.faults = {}
        self.runs = 0

    def opening_now(self):
        """The handshake; of an agent as often as of a bridge."""
        return self.target.opening(self.mutator.rng.choice((messages.DPID, corpus.AGENT)))

    def start(self):
        """The corpus itself, once."""
        for data in self.corpus[:]:
            self.try_one(self.opening_now() + data, None, 1)

    def step(self):
        """One mutated stream."""
        rng = self.mutator.rng
        if rng.random() < 0.5:
            data = self.mutator.message(rng.choice(self.corpus), self.corpus)
            self.try_one(self.opening_now() + data, data, rng.choice(_PIECES))
        else:
            self.try_one(self.mutator.stream(self.corpus, self.opening_now()), None, rng.choice(_PIECES))

    def try_one(self, stream, data, pieces):
        self.runs += 1
        try:
            outcome = self.target.run(stream, pieces)
        except targets.Fault as fault:
            words = targets.plain(str(fault))
            if words not in self.faults:
                print(f"{self.name}: {fault}", flush=True)
                corpus.keep(self.name, f"fault-{digest(stream)}", stream)
            self.faults[words] = self.faults.get(words, 0) + 1
            return
        if outcome not in self.outcomes and data is not None and len(data) <= _MOST_BYTES:
            self.corpus.append(data)
            corpus.keep(self.name, digest(data), data)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--outcomes", action="store_true", help="say what has come of it, and how often")
    parser.add_argument("--target", choices=corpus.TARGETS, help="this one only")
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    print(f"seed {options.seed}")
    fuzzers = [
        Fuzzer(name, options.seed) for name in ([options.target] if options.target else corpus.TARGETS)
    ]
    for fuzzer in fuzzers:
        fuzzer.start()
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        for fuzzer in fuzzers:
            for _ in range(100):
                fuzzer.step()
    for fuzzer in fuzzers:
        print(
            f"{fuzzer.name}: {fuzzer.runs:,} connections, {len(fuzzer.outcomes)} outcomes,"
            f" {len(fuzzer.corpus)} messages in the corpus, {len(fuzzer.faults)} faults"
        )
        if options.outcomes:
            for words, count in sorted(fuzzer.outcomes.items(), key=lambda item: -item[1]):
                print(f"{count:9,} {words}")
    return 1 if any(fuzzer.faults for fuzzer in fuzzers) else 0


if __name__ == "__main__":
    sys.exit(main())
