"""``python -m packages.sbom [--out DIR]``: what is installed, as a CycloneDX document beside the packages.

Names, versions and hashes are those of ``requirements.lock``; licences and dependencies are those that the
installed packages state. ``make package`` writes it, too, and puts one of what each Debian package brings
along into that package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from fairq_ryu import __version__
from packages import bundled, known_faults, lock
from packages.dates import set_date
from packages.error import PackagingError
from packages.lock import Pin

Document = dict[str, Any]
_SPACE = uuid.UUID("6a5d24a2-6c3f-4f0c-9a53-0f3f1a7a5c1e")
# What packages state where they have no SPDX expression.
_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache-2.0": "Apache-2.0",
    "ISC": "ISC",
    "MIT": "MIT",
    "MIT License": "MIT",
    "MPL-2.0": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def read_lock(root: Path) -> dict[Pin, tuple[str, ...]]:
    """The releases that this Python needs, with the hashes of their files. Raises :class:`PackagingError`."""
    try:
        locked = lock.locked((root / lock.LOCKS["requirements.txt"]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PackagingError(f"the lock cannot be read: {error}; run: make lock") from None
    return {pin: hashes for pin, hashes in locked.items() if pin.applies()}


def document(
    name: str,
    version: str,
    hashes: Mapping[Pin, Iterable[str]],
    when: int,
    files: Iterable[Path] = (),
    changed: Mapping[str, str] | None = None,
) -> Document:
    """The document of a product that brings along these releases. ``when``: its date, seconds since 1970;
    ``files``: the built files of the product; ``changed``: what is changed in a release, by canonical name.
    Raises :class:`PackagingError` if one is not installed in this version.
    """
    refs = {pin.key: _purl(pin.name, pin.version) for pin in hashes}
    components = [_component(pin, each, (changed or {}).get(pin.key, "")) for pin, each in hashes.items()]
    product: Document = {
        "type": "application",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    built = [
        {"type": "distribution", "url": path.name, "hashes": _hashes([_digest(path)])}
        for path in sorted(files)
    ]
    if built:
        product["externalReferences"] = built
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
            "lifecycles": [{"phase": "build"}],
            "component": product,
        },
        "components": components,
        "dependencies": [
            {"ref": name, "dependsOn": list(refs.values())},
            *({"ref": refs[pin.key], "dependsOn": _needs(pin, refs)} for pin in hashes),
        ],
    }
    number = uuid.uuid5(_SPACE, json.dumps(made, sort_keys=True))
    return {**made, "serialNumber": f"urn:uuid:{number}"}


def text(made: Document) -> str:
    """A document as JSON."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def write(root: Path, out: Path, when: int) -> Path:
    """Write the document of all that set-up installs, beside the packages that are in ``out``."""
    found = [path for end in ("whl", "deb") for path in out.glob(f"fairq*{__version__}*.{end}")]
    path = out / f"fairq_ryu-{__version__}.cdx.json"
    path.write_text(text(document("fairq_ryu", __version__, read_lock(root), when, found)), encoding="utf-8")
    return path


def _component(pin: Pin, hashes: Iterable[str], changed: str) -> Document:
    about = bundled.installed(pin.name, pin.version)
    made: Document = {
        "type": "library",
        "bom-ref": _purl(pin.name, pin.version),
        "name": pin.name,
        "version": pin.version,
        "purl": _purl(pin.name, pin.version),
        "licenses": [_licence(about)],
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{pin.key}/{pin.version}/#files",
                "comment": "the files of this release, of which one was installed",
                "hashes": _hashes(hashes),
            }
        ],
    }
    pedigree: Document = {}
    if pin.key in known_faults.COPIES:
        name, version = known_faults.COPIES[pin.key]
        ancestor = {"type": "library", "name": name, "version": version, "purl": _purl(name, version)}
        pedigree["ancestors"] = [ancestor]
    if changed:
        pedigree["notes"] = changed
    return made | ({"pedigree": pedigree} if pedigree else {})


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


def _licence(about: Distribution) -> Document:
    for expression in about.metadata.get_all("License-Expression") or []:
        return {"expression": expression}
    stated = bundled.licence(about.name)
    return {"license": {"id": _SPDX[stated]} if stated in _SPDX else {"name": stated}}


def _needs(pin: Pin, refs: Mapping[str, str]) -> list[str]:
    needed = [Requirement(each) for each in distribution(pin.name).requires or []]
    names = {
        bundled.canonical(each.name)
        for each in needed
        if each.marker is None or each.marker.evaluate({"extra": ""})
    }
    return [ref for name, ref in refs.items() if name in names]


def _hashes(digests: Iterable[str]) -> list[Document]:
    return [{"alg": "SHA-256", "content": each} for each in digests]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Write it, and print its name. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m packages.sbom", description="Write the SBOM of what is installed."
    )
    parser.add_argument("--out", type=Path, default=lock.ROOT / "dist", metavar="DIR", help="default: dist/")
    out = parser.parse_args(arguments).out
    try:
        out.mkdir(parents=True, exist_ok=True)
        print(write(lock.ROOT, out, set_date(lock.ROOT)))
    except PackagingError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
