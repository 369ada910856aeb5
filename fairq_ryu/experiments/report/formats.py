"""The JSON files that commands write beside the results of runs, as types: the only description of them.

`make docs` makes of each type here a JSON Schema, NAME.schema.json beside result.schema.json. ``schema`` in a
file is its version, as in a result: another number when a reader of this one would be misled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import result

REFERENCE = "x-ref"
"""Stands for ``$ref`` until the schema is written: pydantic knows no schema in another file."""
Word = Literal["agrees", "does not", "cannot tell"]
"""The verdict on a claim."""


def _in_result(pointer: str) -> WithJsonSchema:
    """What results have, too, has its schema there."""
    return WithJsonSchema({REFERENCE: f"result.schema.json#/{pointer}"})


Metadata = Annotated[dict[str, Any], _in_result("properties/metadata")]


class File:
    """A file, or an object in one."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Sweep(File):
    """sweep.json: what `fairq sweep` measures, or an experiment of `fairq run papers`, which has no axes."""

    schema: Literal["fairq-sweep/1"]
    scenario_name: Annotated[str, Field(min_length=1, description="name or path of the scenario")]
    axes: Annotated[
        dict[str, list[str]], Field(description="the values of each setting that varies, as texts, by name")
    ]
    scenario: Annotated[dict[str, Any], Field(description="every setting that does not vary")]
    policies: Annotated[list[str], Field(min_length=1, description="their names, with brackets")]
    metadata: Metadata


@dataclass(frozen=True)
class Run(File):
    """POINT/runs/POLICY.REPETITION.json: one policy in one repetition at one point of a sweep."""

    schema: Literal["fairq-run/1"]
    took_s: Annotated[float, Field(ge=0, description="time that it took", json_schema_extra={"x-unit": "s"})]
    figures: Annotated[dict[str, Any], _in_result("$defs/policy")]


@dataclass(frozen=True)
class Series(File):
    """papers.json: which series `fairq run papers` makes in this directory."""

    schema: Literal["fairq-papers/1"]
    quick: Annotated[bool, Field(description="whether it was begun with --quick")]


@dataclass(frozen=True)
class Claim(File):
    """A claim of a paper, and what was measured."""

    id: Annotated[str, Field(description="as in the tables")]
    paper: Annotated[str, Field(description="name of the paper")]
    experiment: Annotated[str, Field(description="id of the experiment, and name of its directory")]
    words: Annotated[str, Field(description="what the paper says")]
    paper_figure: Annotated[str, Field(description="the paper's figure, or where it is")]
    compared: Annotated[str, Field(description="what is compared, in words")]
    holds: Annotated[str, Field(description="the claim as an expression over figures of the result")]
    verdict: Word
    value: Annotated[float | None, Field(description="the value of the expression; null: there is none")]
    interval: Annotated[
        list[float] | None,
        Field(min_length=2, max_length=2, description="its 95 % confidence interval; null: there is none"),
    ]
    why: Annotated[str, Field(description="the reason of the verdict")]
    scenario: Annotated[str, Field(description="name or path of the scenario")]
    overrides: Annotated[dict[str, str], Field(description="its settings that the experiment changes")]
    policies: Annotated[list[str], Field(description="those in the claim")]
    repeat: Annotated[int, Field(ge=0, description="number of repetitions; 0: the experiment was not run")]
    git_commit: Annotated[str | None, Field(description="commit of the run; null: not known, or not run")]
    git_changes: Annotated[
        str | None, Field(description='digest of changes that were not committed; "": none')
    ]


@dataclass(frozen=True)
class Claims(File):
    """claims.json: every claim of the papers, also of experiments that were not run."""

    schema: Literal["fairq-claims/1"]
    claims: list[Claim]


KINDS: dict[str, type[File]] = {"sweep": Sweep, "run": Run, "papers": Series, "claims": Claims}
"""By the name of the JSON Schema."""
_Kind = TypeVar("_Kind", Sweep, Run, Series)


def write(path: Path, content: Sweep | Run | Series | Claims) -> None:
    """Write a file, whole or not at all. ``OSError``, and no draft is left, if there is no room."""
    result.write_whole(path, asdict(content))


def read(path: Path, kind: type[_Kind], remedy: str) -> _Kind:
    """Read a file. ``UserError``, with ``remedy``, if it cannot be read, or is of another kind or version."""
    try:
        found: _Kind = TypeAdapter(kind).validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", remedy) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        (version,) = get_args(get_type_hints(kind)["schema"])
        raise UserError(f"{path} is damaged, or no {version} file: {where}: {first['msg']}", remedy) from None
    return found
