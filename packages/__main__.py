"""``python -m packages [--out DIR] [--revision N]``: the wheel and the Debian packages, into ``dist/``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from packages import contents, deb, wheel
from packages.error import PackagingError

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Build everything; print the files. Returns 2 if something that is needed is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m packages", description="Build wheel and Debian packages."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist/")
    parser.add_argument(
        "--revision", type=int, default=1, metavar="N", help="revision of the Debian packages (default: 1)"
    )
    args = parser.parse_args(arguments)
    # Dates in all files are that of the last commit, so that the same commit gives the same packages.
    os.environ.setdefault("SOURCE_DATE_EPOCH", _date_of_commit())
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        built = [wheel.build(ROOT, args.out)]
        if shutil.which("dpkg-deb") is None:
            print("packages: no Debian packages: dpkg-deb is not installed", file=sys.stderr)
        else:
            packages = contents.packages(ROOT, built[0], args.revision)
            built += [deb.build(package, args.out) for package in packages]
    except PackagingError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 2
    for path in built:
        print(f"{path} ({path.stat().st_size:,} bytes)")
    return 0


def _date_of_commit() -> str:
    """Seconds since 1970; those of version 0.1.0's first day where git cannot tell."""
    try:
        shown = subprocess.run(
            ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        )
    except OSError:
        return "1763596800"
    return shown.stdout.strip() or "1763596800"


if __name__ == "__main__":
    sys.exit(main())
