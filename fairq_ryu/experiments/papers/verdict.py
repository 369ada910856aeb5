"""Whether a claim agrees with what has been measured. Pure functions.

The value of a claim is computed in each repetition. Of several there is a 95 % confidence interval: of a
quotient in the logarithm, of all else as it is. The claim agrees if the whole interval is as claimed. It does
not if none of it is. If the bound is within the interval, the repetitions cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairq_ryu.experiments.measure import intervals
from fairq_ryu.experiments.measure.intervals import Interval
from fairq_ryu.experiments.papers.expression import Expression, UnknownFigure, of_other, reached
from fairq_ryu.experiments.report import table, unfinished
from fairq_ryu.experiments.report.formats import Word
from fairq_ryu.experiments.workloads.common.rows import figure

_IDLE_PERCENT = 1.0
"""With less idle time than this, packets have waited for processors, too."""
AGREES: Final = "agrees"
DIFFERS: Final = "does not"
UNKNOWN: Final = "cannot tell"


class Verdict(NamedTuple):
    """On one claim."""

    word: Word
    value: float | None
    """ours; None: there is none"""
    low: float | None
    high: float | None
    why: str
    """a sentence"""
    run: bool = True
    """False: the experiment of the claim, or one of its policies, was not run"""


def judge(
    claim: Expression, whole: Mapping[str, Any] | None, results: Mapping[str, Mapping[str, Any] | None]
) -> Verdict:
    """The verdict on a claim by a result; None: the experiment was not run. ``results``: of all experiments,
    for claims that compare two.
    """
    if whole is None:
        return Verdict(UNKNOWN, None, None, None, "not run", run=False)
    repetitions = _repetitions(whole)
    for name in claim.others:
        other = results.get(name)
        if other is None:
            return Verdict(UNKNOWN, None, None, None, f"{name} was not run", run=False)
        for by_name, more in zip(repetitions, _repetitions(other), strict=False):
            by_name.update({f"{name}.{policy}": figures for policy, figures in more.items()})
    for policy in claim.policies:
        for by_name in repetitions:
            figures = by_name.get(policy)
            if figures is None:
                return Verdict(UNKNOWN, None, None, None, f"{policy} was not run", run=False)
            if figures["failed"]:
                return Verdict(UNKNOWN, None, None, None, f"{policy} failed: {figures['failed']}")
            if figures["unsound"]:
                return Verdict(UNKNOWN, None, None, None, f"{policy}: {figures['unsound']}")
    try:
        values = [claim.value(each) for each in repetitions]
    except UnknownFigure as error:
        return Verdict(UNKNOWN, None, None, None, f"not known: {error}")
    found = _judged(claim, values)
    if found.word is not UNKNOWN and (favoured := _favoured(claim, found, repetitions)):
        why = f"not all flows have finished under {', '.join(favoured)}, which would have longer times"
        found = found._replace(word=UNKNOWN, why=why)
    return found._replace(why="; ".join([found.why, *_caveats(claim, whole, results)]))


def _favoured(
    claim: Expression, found: Verdict, repetitions: Sequence[Mapping[str, Mapping[str, Any]]]
) -> list[str]:
    """The policies without whose unfinished flows the verdict might be another: longer times would bring the
    value nearer to a bound that it has kept, or that it has passed.
    """
    claimed = claim.claimed
    agrees = found.word is AGREES
    value = found.value if found.value is not None else 0.0
    # Where it agrees, both bounds are kept; where it does not, the value is beneath the lower one or beyond
    # the upper one, and only the way back could change that.
    beneath = claimed.low is not None and value <= claimed.low
    rises = claimed.high is not None if agrees else beneath
    falls = claimed.low is not None if agrees else not beneath
    return list(
        dict.fromkeys(
            term.policy
            for term in claim.terms
            if (rises if term.raises else falls)
            and any(_unfinished(each[term.policy], term.path) for each in repetitions)
        )
    )


def _unfinished(figures: Mapping[str, Any], path: str) -> bool:
    """Whether flows that have not finished would change a figure."""
    *parents, name = path.split(".")
    return any(
        isinstance(group := reached(figures, parents[:place]), Mapping)
        and unfinished.matters(group, [*parents[place:], name])
        for place in range(len(parents))
        if parents[place] in unfinished.TIMES
    )


def _repetitions(whole: Mapping[str, Any]) -> list[dict[str, Mapping[str, Any]]]:
    """The figures of each policy by its name, in each repetition."""
    parts = whole["repetitions"] or [whole]
    return [{each["policy"]: each for each in part["policies"]} for part in parts]


def _judged(claim: Expression, values: Sequence[float]) -> Verdict:
    bound = claim.claimed.text
    if len(values) < 2:
        return Verdict(UNKNOWN, values[0], None, None, "a single repetition has no interval")
    mean, low, high = _interval(claim, values)
    if claim.single and claim.claimed.high == 0 and all(each >= 0 and each.is_integer() for each in values):
        # Nothing of this kind happens, it says: one that did is enough to refute it.
        some = sum(not claim.claimed.holds(each) for each in values)
        of = f"{len(values)} repetitions"
        told = f"in {some} of {of} it is not {bound}" if some else f"none seen in {of}"
        return Verdict(DIFFERS if some else AGREES, mean, max(low, 0.0), high, told)
    inside = f"the interval of {len(values)} repetitions"
    if claim.claimed.holds(low) and claim.claimed.holds(high):
        return Verdict(AGREES, mean, low, high, f"{inside} is {bound}")
    if _apart(claim, low, high):
        return Verdict(DIFFERS, mean, low, high, f"{inside} is not {bound}")
    side = "on the claimed side" if claim.claimed.holds(mean) else "on the other side"
    return Verdict(UNKNOWN, mean, low, high, f"{inside} has the bound {bound} within it; its mean is {side}")


def _apart(claim: Expression, low: float, high: float) -> bool:
    """Whether no value from ``low`` to ``high`` is as claimed."""
    claimed = claim.claimed
    beneath = claimed.low is not None and not claimed.holds(high) and high <= claimed.low
    beyond = claimed.high is not None and not claimed.holds(low) and low >= claimed.high
    return beneath or beyond


def _interval(claim: Expression, values: Sequence[float]) -> Interval:
    geometric = claim.quotient and min(values) > 0
    return (intervals.of_ratio if geometric else intervals.of_mean)(values)


def _caveats(
    claim: Expression, whole: Mapping[str, Any], results: Mapping[str, Mapping[str, Any] | None]
) -> list[str]:
    """What else one must know of the policies in the claim, also of those of another experiment."""
    found = _caveats_of(claim.policies, whole)
    for name in claim.others:
        other = results[name]
        assert other is not None  # or it had not been judged
        its = [policy for id, policy in map(of_other, claim.policies) if id == name]
        found += [f"{name}: {each}" for each in _caveats_of(its, other)]
    return found


def _caveats_of(names: Sequence[str], whole: Mapping[str, Any]) -> list[str]:
    limit = table.MACHINE_LIMIT_PERCENT
    found = []
    policies = [each for each in whole["policies"] if each["policy"] in names]
    for key, when in (("switch_thread_percent", ""), ("switch_thread_volleys_percent", " during volleys")):
        busy = max((figure(each, ("cpu", key)) or 0.0 for each in policies), default=0.0)
        if busy >= limit:
            found.append(f"the switch's thread used {busy:.0f} % of a CPU{when}, so the machine is in it")
            break
    found += [told for each in policies if (told := unfinished.remark(each))]
    runs = [each for part in whole["repetitions"] or [whole] for each in part["policies"]]
    idle = [figure(each, ("cpu", "idle_percent")) for each in runs if each["policy"] in names]
    starved = sum(each is not None and each < _IDLE_PERCENT for each in idle)
    if starved:
        found.append(
            f"in {starved} of {len(idle)} runs no processor was ever idle, so the machine is in them"
        )
    skipped = [each["policy"] for each in policies if any(each["tcp_left_out"].values())]
    if skipped:
        found.append(f"this kernel has skipped reductions of windows under {', '.join(skipped)}")
    return found
