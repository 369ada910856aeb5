"""``python -m packages.audit``: asks for published faults of every release in the locks, and compares them
with those that ``packages/data/known-faults.toml`` explains.

Exit codes: 0: all that are published are explained; 1: at least one is not; 2: the locks or the answer cannot
be read; 3: the service does not answer, so that nothing is known.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from packages import known_faults, lock
from packages.known_faults import Fault

OSV = "https://api.osv.dev"
"""Serves the advisories of GitHub, of the Python Packaging Authority and of others."""
FINE, NEW, UNREADABLE, NO_ANSWER = range(4)
_TIMEOUT = 30.0

Ask = Callable[[str, Any], Any]
"""Asks the service: a path, and what is sent as JSON (None: nothing), for an answer in JSON."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release as advisories name it; ``as_pinned`` says how it is pinned."""

    name: str
    version: str
    as_pinned: str


@dataclass(frozen=True, slots=True)
class Found:
    """A published fault of a release; ``explained`` is None if we say nothing of it."""

    release: Release
    names: tuple[str, ...]
    summary: str
    explained: Fault | None


def releases(root: Path) -> list[Release]:
    """Those of all locks, each once; of a copy, the original too. Raises ValueError, and OSError if a lock is
    missing.
    """
    found: dict[tuple[str, str], Release] = {}
    for name in lock.LOCKS.values():
        for pin in lock.locked((root / name).read_text(encoding="utf-8")):
            words = f"{pin.name} {pin.version}"
            found[pin.key, pin.version] = Release(pin.key, pin.version, words)
            if pin.key in known_faults.COPIES:
                original = known_faults.COPIES[pin.key]
                found[original] = Release(*original, f"{' '.join(original)}, as {words}")
    return list(found.values())


def audit(wanted: Iterable[Release], explained: Iterable[Fault], ask: Ask) -> list[Found]:
    """All published faults of these releases. Raises what ``ask`` raises, and KeyError or TypeError if an
    answer is not of the service's form.
    """
    named = {(fault.package, each): fault for fault in explained if not fault.fixed for each in fault.ids}
    found, advisories = [], dict[str, Any]()
    for release, ids in _ids(list(wanted), ask):
        seen: set[str] = set()
        for each in ids:
            if each not in advisories:
                advisories[each] = ask(f"/v1/vulns/{each}", None)
            advisory = advisories[each]
            names = (each, *advisory.get("aliases", ()))
            if "withdrawn" in advisory or seen & set(names):
                continue
            seen |= set(names)
            fault = next((named[release.name, name] for name in names if (release.name, name) in named), None)
            summary = advisory.get("summary") or advisory.get("details", "").partition("\n")[0]
            found.append(Found(release, names, summary, fault))
    return found


def _ids(wanted: list[Release], ask: Ask) -> Iterable[tuple[Release, list[str]]]:
    """The names of the advisories about each release."""
    ids: dict[Release, list[str]] = {release: [] for release in wanted}
    asked = [(release, "") for release in wanted]
    while asked:
        queries = [
            {"package": {"ecosystem": "PyPI", "name": release.name}, "version": release.version}
            | ({"page_token": token} if token else {})
            for release, token in asked
        ]
        results = ask("/v1/querybatch", {"queries": queries})["results"]
        more = []
        for (release, _), result in zip(asked, results, strict=True):
            ids[release] += [each["id"] for each in result.get("vulns", ())]
            if result.get("next_page_token"):
                more.append((release, result["next_page_token"]))
        asked = more
    return ids.items()


def _over_http(url: str) -> Ask:
    def ask(path: str, question: Any) -> Any:
        data = None if question is None else json.dumps(question).encode()
        request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)

    return ask


def main(arguments: list[str] | None = None, root: Path = lock.ROOT) -> int:
    """Print what is published, and whether it is explained. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m packages.audit", description="Look for published faults of what is pinned."
    )
    parser.add_argument("--url", default=OSV, help=f"a service with OSV's interface (default: {OSV})")
    url = parser.parse_args(arguments).url.rstrip("/")
    try:
        wanted = releases(root)
    except (OSError, ValueError) as error:
        print(f"audit: the locks cannot be read: {error}; run: make lock", file=sys.stderr)
        return UNREADABLE
    try:
        found = audit(wanted, known_faults.read(), _over_http(url))
    except (OSError, HTTPException) as error:
        print(f"audit: nothing is known: {url} does not answer: {error}", file=sys.stderr)
        return NO_ANSWER
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        print(f"audit: {url} answers in another form: {type(error).__name__}: {error}", file=sys.stderr)
        return UNREADABLE
    for each in sorted(found, key=lambda each: each.explained is not None):
        state = "NEW  " if each.explained is None else "known"
        print(f"{state} {each.release.as_pinned}: {', '.join(each.names)}: {each.summary}")
    new = sum(each.explained is None for each in found)
    print(
        f"audit: {len(wanted)} releases: {len(found) - new} published faults that docs/supply-chain.md"
        f" explains, {new} that it does not"
    )
    return NEW if new else FINE


if __name__ == "__main__":
    sys.exit(main())
