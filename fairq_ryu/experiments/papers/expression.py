"""The language of claims: figures of policies, arithmetic, and what is claimed of the value. Pure functions.

    droptail:mice.fct_ms.sd / fairq:mice.fct_ms.sd > 3.16
    min(droptail:heterogeneous.jain, red:heterogeneous.jain) < afcd:heterogeneous.jain
    fairq:cpu.switch_thread_percent - droptail:cpu.switch_thread_percent <= 1
    fairq:elephants.goodput_sum_mbit / droptail:elephants.goodput_sum_mbit within 0.9..1.1
    fairq:mice.fct_ms.sd / FQ1.fairq:mice.fct_ms.sd > 1

A figure is POLICY:PATH, or EXPERIMENT.POLICY:PATH of another experiment of the series. Its path is as in a
result; of a list, the member by its place (``by_flow.0``) or by one of its fields (``sweep.n=10``).

Of two sides with figures, the difference is compared with 0. So no number may be added to figures on the
right side: the difference that is shown would have it in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Mapping[str, Any]]
"""The figures of each policy, by its name."""
Value = Callable[[Figures], float]


class UnknownFigure(Exception):
    """A figure that is not there, or a value that has none: the message says which."""


_OTHER = re.compile(r"([A-Z]{2}\d+[a-z]?)\.")
_TOKEN = re.compile(
    r"\s*(?:(?P<figure>(?:[A-Z]{2}\d+[a-z]?\.)?[A-Za-z][\w-]*(?:\[[^\]]*\])?:[A-Za-z_][\w.=]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?!\.\d))"
    r"|(?P<word>min|max|within)"
    r"|(?P<sign>\.\.|<=|>=|[-+*/(),<>]))"
)


@dataclass(frozen=True)
class Claimed:
    """What is claimed of a value: at least ``low`` and at most ``high``; None: no bound. ``strict``: a bound
    itself is not meant.
    """

    low: float | None
    high: float | None
    strict: bool
    text: str
    """as it was written"""

    def holds(self, value: float) -> bool:
        """Whether a value is as claimed."""
        above = self.low is None or value > self.low or (value == self.low and not self.strict)
        below = self.high is None or value < self.high or (value == self.high and not self.strict)
        return above and below


@dataclass(frozen=True)
class Term:
    """A figure in a claim."""

    policy: str
    path: str
    raises: bool
    """whether a larger one makes the value larger, as long as all figures are above 0"""


@dataclass(frozen=True)
class Expression:
    """A claim: a value, and what is claimed of it."""

    value: Value
    claimed: Claimed
    policies: tuple[str, ...]
    """those whose figures it has; of another experiment with its id and a point before the name"""
    quotient: bool
    """whether the value is one figure over another, so that it is compared in the logarithm"""
    single: str
    """the path of the figure, if it is one that is compared with a number; else empty"""
    terms: tuple[Term, ...]
    """all its figures"""

    @property
    def others(self) -> tuple[str, ...]:
        """The other experiments whose figures it has."""
        return tuple(dict.fromkeys(id for id, _policy in map(of_other, self.policies) if id))


def of_other(policy: str) -> tuple[str, str]:
    """The id of the other experiment in the name of a policy ("": none), and the policy."""
    found = _OTHER.match(policy)
    return (found[1], policy[found.end() :]) if found else ("", policy)


def parse(text: str) -> Expression:
    """Read a claim. ``ValueError``, which says what is wrong, if it is none."""
    return _Parser(text).claim()


def figure(figures: Mapping[str, Any], path: str) -> float:
    """The figure at a path. `UnknownFigure` if there is none."""
    found = reached(figures, path.split("."))
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise UnknownFigure(path)
    return float(found)


def reached(figures: Mapping[str, Any], steps: Sequence[str]) -> Any:
    """What is at a path, not only a figure; None if there is nothing."""
    found: Any = figures
    for step in steps:
        if isinstance(found, Mapping):
            found = found.get(step)
        elif isinstance(found, list):
            found = _member(found, step)
        else:
            found = None
    return found


def _member(found: list[Any], step: str) -> Any:
    name, sign, value = step.partition("=")
    if not sign:
        return found[int(step)] if step.isdigit() and int(step) < len(found) else None
    of = [each for each in found if isinstance(each, Mapping)]
    return next((each for each in of if _text(each.get(name)) == value), None)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


class _Parser:
    """Of one claim, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._policies: dict[str, None] = {}
        self._terms: list[Term] = []
        self._divided = False
        self._raises = True
        self._added = False
        """whether a number alone is added to something"""

    def claim(self) -> Expression:
        (_, first), *others = self._tokens
        single = first.rpartition(":")[2] if [kind for kind, _ in others] == ["sign", "number"] else ""
        left = self._sum()
        quotient = self._divided
        kind, sign = self._next()
        if sign == "within":
            least = self._number()
            self._expect("..")
            claimed = Claimed(least, self._number(), False, f"within {self._rest(sign)}")
            value = left
        elif kind == "sign" and sign in ("<", ">", "<=", ">="):
            alone = [kind for kind, _text in self._tokens] == ["number"]
            self._added, self._raises = False, False
            right = self._sum()
            if self._added:
                raise self._wrong("adds a number on its right side: write the difference on its left side")
            bound = right({}) if alone else 0.0
            # Of two sides with figures, the difference is compared with 0.
            value = left if alone else (lambda figures: left(figures) - right(figures))
            quotient = quotient and alone
            strict = len(sign) == 1
            low, high = (bound, None) if sign[0] == ">" else (None, bound)
            claimed = Claimed(low, high, strict, f"{sign} {bound:g}")
        else:
            raise self._wrong(f"has {sign!r} where a comparison is due")
        if self._tokens:
            raise self._wrong(f"has {self._tokens[0][1]!r} after its end")
        if not self._policies:
            raise self._wrong("has no figure")
        return Expression(value, claimed, tuple(self._policies), quotient, single, tuple(self._terms))

    def _rest(self, after: str) -> str:
        return self._text.partition(after)[2].strip()

    def _sum(self) -> Value:
        before = len(self._terms)
        value = self._product()
        while self._peek() in ("+", "-"):
            sign = self._next()[1]
            number = len(self._terms) == before
            before = len(self._terms)
            value = _combined(value, self._turned(self._product, sign == "-"), sign)
            self._added |= number or len(self._terms) == before
            self._divided = False
        return value

    def _turned(self, read: Callable[[], Value], turned: bool) -> Value:
        """A part that is subtracted, or divided by: it counts the other way."""
        self._raises ^= turned
        value = read()
        self._raises ^= turned
        return value

    def _product(self) -> Value:
        value = self._factor()
        self._divided = False
        while self._peek() in ("*", "/"):
            sign = self._next()[1]
            value = _combined(value, self._turned(self._factor, sign == "/"), sign)
            self._divided = sign == "/"
        return value

    def _factor(self) -> Value:
        kind, text = self._next()
        if kind == "number":
            number = float(text)
            return lambda _figures: number
        if kind == "figure":
            return self._figure(text)
        if text in ("min", "max"):
            self._expect("(")
            members = [self._sum()]
            while self._peek() == ",":
                self._next()
                members.append(self._sum())
            self._expect(")")
            chosen = min if text == "min" else max
            return lambda figures: chosen(each(figures) for each in members)
        if text == "(":
            value = self._sum()
            self._expect(")")
            return value
        raise self._wrong(f"has {text!r} where a figure or a number is due")

    def _figure(self, text: str) -> Value:
        policy, _, path = text.rpartition(":")
        self._policies[policy] = None
        self._terms.append(Term(policy, path, self._raises))

        def value(figures: Figures) -> float:
            if policy not in figures:
                raise UnknownFigure(policy)
            try:
                return figure(figures[policy], path)
            except UnknownFigure:
                raise UnknownFigure(text) from None

        return value

    def _number(self) -> float:
        kind, text = self._next()
        if kind != "number":
            raise self._wrong(f"has {text!r} where a number is due")
        return float(text)

    def _peek(self) -> str:
        return self._tokens[0][1] if self._tokens else ""

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._wrong("ends too early")
        return self._tokens.pop(0)

    def _expect(self, sign: str) -> None:
        found = self._next()[1]
        if found != sign:
            raise self._wrong(f"has {found!r} where {sign!r} is due")

    def _wrong(self, why: str) -> ValueError:
        return ValueError(f"the claim {self._text!r} {why}")


def _combined(left: Value, right: Value, sign: str) -> Value:
    def value(figures: Figures) -> float:
        one, other = left(figures), right(figures)
        if sign == "+":
            return one + other
        if sign == "-":
            return one - other
        if sign == "*":
            return one * other
        if not other:
            raise UnknownFigure("a quotient by 0")
        return one / other

    return value


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(
                f"the claim {text!r} has {text[at:].strip()[:20]!r}, which is no figure and no sign"
            )
        assert found.lastgroup is not None
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()
