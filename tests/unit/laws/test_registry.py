"""The registry of laws: what it finds, and what it says of a broken folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.law_spec import LawSpec, Parameters
from fairq_ryu.laws import registry
from fairq_ryu.laws.registry import FOLDER, queue_laws, window_laws

LAWS: list[type[Parameters]] = [*window_laws().values(), *queue_laws().values()]
LAW = """
from dataclasses import dataclass
from typing import ClassVar
from fairq_ryu.law_spec import LawSpec

@dataclass(frozen=True, slots=True)
class Made(LawSpec):
    kind: ClassVar[int] = {kind}
    name: ClassVar[str] = "{name}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package of laws, ``made_laws``."""
    made = tmp_path / "made_laws"
    made.mkdir()
    (made / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_laws"]:
        del sys.modules[name]


def add(folder: Path, name: str, source: str = LAW, kind: int = 1, header: bool = True) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(source.format(kind=kind, name=name))
    if header:
        (folder / name / "law.h").touch()


def found(folder: Path) -> dict[int, type[LawSpec]]:
    return registry._numbered(registry._found(folder, "made_laws", LawSpec))


def test_laws_are_found_by_their_folders_in_the_order_of_their_numbers(folder: Path) -> None:
    add(folder, "a", kind=9)
    add(folder, "b", kind=2)
    add(folder, "no_law", source="")
    assert [(number, law.name) for number, law in found(folder).items()] == [(2, "b"), (9, "a")]


def test_two_laws_with_one_number_are_refused(folder: Path) -> None:
    add(folder, "a", kind=3)
    add(folder, "b", kind=3)
    with pytest.raises(UserError, match=r"made_laws\.b cannot be used: its kind 3 is that of a"):
        found(folder)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"kind": 0}, "its kind 0 is not between 1 and 255"),
        ({"kind": 256}, "its kind 256 is not between 1 and 255"),
        ({"source": LAW.replace('"{name}"', '"other"')}, "its name is other"),
        ({"header": False}, "it has no law.h"),
        ({"source": "import nothing_of_this_name"}, "ModuleNotFoundError"),
        ({"source": "x = ("}, "SyntaxError"),
    ],
)
def test_a_broken_folder_is_named(folder: Path, more: dict[str, object], why: str) -> None:
    add(folder, "broken", **more)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=f"law made_laws.broken cannot be used: {why}"):
        found(folder)


def test_every_header_has_a_law_and_every_law_a_number_of_its_own() -> None:
    names = [law.name for law in LAWS]
    assert sorted(names) == sorted(path.parent.name for path in FOLDER.glob("*/law.h"))
    for laws in (window_laws(), queue_laws()):
        assert all(law.kind == number for number, law in laws.items())


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_defaults_are_within_their_bounds_and_bounds_fit_the_wire(law: type[Parameters]) -> None:
    assert law().wrong() is None
    for name, _, least, most, text in law.parameters():
        assert text
        for value in (least, most):
            assert getattr(law.unpack(law(**{name: value}).pack()), name) == value
