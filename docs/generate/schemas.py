"""The JSON Schemas of the files that are described by types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from fairq_ryu.experiments.report import formats


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def written() -> Iterator[tuple[Path, str]]:
    """Each schema: its path, and its text."""
    folder = Path(formats.__file__).parent
    for name, kind in formats.KINDS.items():
        schema = TypeAdapter(kind).json_schema(schema_generator=_Untitled)
        text = json.dumps({"$schema": _Untitled.schema_dialect, **schema}, indent=1)
        yield folder / f"{name}.schema.json", text.replace(f'"{formats.REFERENCE}"', '"$ref"') + "\n"
