"""Sends frames at a rate, in a process of its own: ``python -m bench.flood INTERFACE RATE SECONDS [BEGIN]``.

The frames are lines of hexadecimal digits on the standard input; they are sent in turn, again and again. The
output is a line of JSON: how many were sent in which time. Uses the standard library only.
"""

from __future__ import annotations

import json
import sys
import time

from bench.frame_burst import FrameBurst

# Frames of one call. The rate is kept in steps of this time, seconds.
_MOST, _STEP = 1024, 0.0005


def main(interface: str, rate: float, seconds: float, begin: float = 0.0) -> None:
    """Send from the time ``begin`` of the monotonic clock on, and print how many frames were sent."""
    frames = [bytes.fromhex(line) for line in sys.stdin]
    burst = FrameBurst(interface, frames, bypass=True)
    time.sleep(max(0.0, begin - time.monotonic()))
    began, sent, refused, at = time.monotonic(), 0, 0, 0
    while (now := time.monotonic() - began) < seconds:
        wanted = min(int(now * rate) - sent - refused, _MOST, len(frames) - at)
        if wanted <= 0:
            time.sleep(_STEP)
            continue
        done = burst.try_send(wanted, at)
        sent += done
        refused += done < wanted  # the device has refused this one
        at = (at + done + (done < wanted)) % len(frames)
    print(json.dumps({"sent": sent, "seconds": now}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
