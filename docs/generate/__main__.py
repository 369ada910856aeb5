"""``make docs``: write what is between the marks of all pages anew, and the schemas of files."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.generate import bounds, channel, examples, marks, reference, schemas, supply

MAKERS: Mapping[str, marks.Maker] = {
    name.replace("_", "-"): each
    for module in (reference, channel, bounds, supply)
    for name, each in vars(module).items()
    if inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
}
"""The public functions of these modules, by the kinds of the marks."""


def changed() -> Iterator[tuple[Path, str]]:
    """The pages and schemas that differ from the code, with their new text. ValueError, with page and mark,
    if a page cannot be made.
    """
    dumps = examples.dumps()
    for path in marks.pages():
        text = path.read_text(encoding="utf-8")
        try:
            new = marks.written(text, MAKERS, dumps)
        except ValueError as error:
            raise ValueError(f"{path.relative_to(marks.ROOT)}: {error}") from error
        if new != text:
            yield path, new
    for path, text in schemas.written():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def main() -> int:
    """Write them. Returns the exit code."""
    try:
        for path, text in changed():
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(marks.ROOT)}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
