"""``python -m packages [--out DIR] [--revision N]``: the wheel and the Debian packages, into ``dist/``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from packages import contents, deb, sbom, wheel
from packages.dates import set_date
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
    when = set_date(ROOT)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        built = [wheel.build(ROOT, args.out)]
        if shutil.which("dpkg-deb") is None:
            print("packages: no Debian packages: dpkg-deb is not installed", file=sys.stderr)
        else:
            packages = contents.packages(ROOT, built[0], args.revision)
            built += [deb.build(package, args.out) for package in packages]
        built.append(sbom.write(ROOT, args.out, when))
    except PackagingError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 2
    for path in built:
        print(f"{path} ({path.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
