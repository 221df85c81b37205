"""One cause, one regression: changes for the worse whose commit ranges agree, across series.

The groups are made anew from the changes and the proofs at each decision, always in the same order, so that
they don't depend on the order in which runs came in. Which row a group continues is decided after that
(`continuation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.measured_kinds import is_exact_counter, is_time
from dashboard.regressions.decision.facts import Change, ExperimentVerdict, Regression, Series, Snapshot
from dashboard.regressions.decision.gradual_changes import gradual_changes
from dashboard.regressions.decision.primary_change import primary_rank, spanned_range
from dashboard.regressions.decision.proofs import (
    State,
    Verdict,
    bisection_steps,
    find_proof,
    has_part,
    make_proof,
    newest_first,
    verdicts_confirmed,
    verdicts_on_step,
)
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.series_kinds import (
    BETTER,
    WORSE,
    is_offset_by_speedup,
    is_quality,
    is_same_measurement,
    may_open_regression,
    speedups_among,
)

# Less than this part of a step isn't the step.
LITTLE_SHARE = 0.25


@dataclass(slots=True)
class Group:
    """The changes of one cause. `members` may open a regression, `evidence` only stands beside them.

    `anchors` are the ranges in which pairs have proved it, or look for it, by these `verdicts`; `owners` the
    regressions that were proved there.
    """

    members: list[Change] = field(default_factory=list)
    evidence: list[Change] = field(default_factory=list)
    anchors: list[Range] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    verdicts: list[ExperimentVerdict] = field(default_factory=list)
    # The series that pairs have shown to step between their levels, and at no place yet: what else lies in so
    # wide a range is of other causes.
    unplaced: Sequence[Series] = ()
    # What its members span, and how many they were: every change is held against every group.
    _span: tuple[int, Range] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def ranges(self) -> list[Range]:
        """Where its cause may lie: what is proved, narrowed by its changes as far as they agree."""
        if not self.members:
            return self.anchors
        if self._span is None or self._span[0] != len(self.members):
            self._span = (len(self.members), spanned_range(self.members))
        span = self._span[1]
        return [anchor.overlap(span) or anchor for anchor in self.anchors] or [span]

    @property
    def changes(self) -> list[Change]:
        return [*self.members, *self.evidence]

    @property
    def is_gradual(self) -> bool:
        return any(member.gradual for member in self.members)

    def may_have_evidence(self, change: Change) -> bool:
        """Of what lies in the many commits of a gradual change only its own steps speak of it."""
        return not self.is_gradual or any(member.series.pk == change.series.pk for member in self.members)


def group_changes(snapshot: Snapshot) -> list[Group]:
    """All groups of a snapshot's changes, those that are proved first."""
    verdicts = verdicts_by_regression(snapshot.verdicts)
    home = [
        regression
        for regression in snapshot.regressions
        if regression.branch == snapshot.branch and not regression.withdrawn
    ]
    groups = anchored_groups(home, verdicts)
    openers = opening_changes(snapshot.changes)
    confirmed = {regression.pk for regression in snapshot.regressions if regression.state == State.CONFIRMED}
    proved = [anchor for group in groups for anchor in group.anchors]

    def order(change: Change) -> tuple[Any, ...]:
        """What lies where pairs have proved something first: it leaves no place for what lies beside."""
        return not any(change.range.overlap(anchor) for anchor in proved), joining_order(change)

    for change in sorted(openers, key=order):
        group = best_group(change, groups, snapshot.changes, confirmed, verdicts)
        if group is not None:
            group.members.append(change)
        elif beside := group_beside(change, groups, snapshot.changes):
            beside.evidence.append(change)
        else:
            groups.append(Group(members=[change]))
    gradual = gradual_changes(snapshot.changes, home, None if snapshot.whole_branch else snapshot.altered)
    groups += gradual_groups(gradual, home)
    add_evidence(groups, snapshot.changes, [*openers, *gradual])
    return groups


def gradual_groups(gradual: Iterable[Change], regressions: Iterable[Regression]) -> list[Group]:
    """Groups of gradual changes whose commits overlap, each of another series: calls bring operations along.

    What steps at one of so many commits is another cause: it isn't among them. What people have put away
    takes nothing more in.
    """
    groups: list[Group] = []
    put_away = {row.pk for row in regressions if row.triaged_away}
    for change in sorted(gradual, key=lambda change: (change.range, change.series.pk)):
        for group in groups:
            owners = {member.regression_id for member in group.members}
            if change.regression_id not in owners and put_away & {change.regression_id, *owners}:
                continue
            alike = [member for member in group.members if member.range.overlap(change.range)]
            if alike and all(member.series.pk != change.series.pk for member in group.members):
                group.members.append(change)
                break
        else:
            groups.append(Group(members=[change]))
    return groups


def verdicts_by_regression(verdicts: Iterable[ExperimentVerdict]) -> dict[int, list[ExperimentVerdict]]:
    """Newest first."""
    by_regression: dict[int, list[ExperimentVerdict]] = {}
    for verdict in newest_first(verdicts):
        by_regression.setdefault(verdict.regression_id, []).append(verdict)
    return by_regression


def anchored_groups(
    regressions: Sequence[Regression], verdicts: dict[int, list[ExperimentVerdict]]
) -> list[Group]:
    """A group for each place where pairs have confirmed a regression, or where only they may see it.

    A regression that pairs of several series have placed at different commits is two: it stays where it
    stands, and the other one has the verdicts that speak of its own place.
    """
    groups = []
    for regression in sorted(regressions, key=lambda regression: regression.pk):
        own = verdicts.get(regression.pk, [])
        places = proved_ranges(own)
        if not places and regression.residual and regression.proving and not own:
            places = [ProvedRange(regression.range)]
        # The first one is where it stands, or was proved last.
        places.sort(key=lambda place: place.range.bad != regression.range.bad)
        for index, place in enumerate(places):
            owners = [regression.pk] if index == 0 else []
            wide = place.verdicts if place.range.width > 1 else []
            unplaced = [row.series for row in verdicts_confirmed(wide) if is_between_levels_alone(row, own)]
            groups.append(
                Group(anchors=[place.range], owners=owners, verdicts=place.verdicts, unplaced=unplaced)
            )
    return groups


def is_between_levels_alone(confirmed: ExperimentVerdict, own: Sequence[ExperimentVerdict]) -> bool:
    """True for the proof of a step between its levels, while bisection hasn't found its place."""
    proof = make_proof(confirmed, own)
    return proof.between_levels and proof.range.width > 1


@dataclass(slots=True)
class ProvedRange:
    """A range in which pairs have proved a cause, and the verdicts that speak of it."""

    range: Range
    verdicts: list[ExperimentVerdict] = field(default_factory=list)


def proved_ranges(own: Sequence[ExperimentVerdict]) -> list[ProvedRange]:
    """Where series say that a cause lies: of ranges that overlap what is in each."""
    places: list[ProvedRange] = []
    for verdict in verdicts_confirmed(own):
        proved = make_proof(verdict, own).range
        near = next((place for place in places if proved.overlap(place.range)), None)
        if near is None:
            places.append(ProvedRange(proved, [verdict]))
        else:
            near.range = proved.overlap(near.range) or proved
            near.verdicts.append(verdict)
    proofs = {verdict.experiment for place in places for verdict in place.verdicts}
    for verdict in own:
        if places and verdict.experiment not in proofs:
            range_of_verdict(verdict, places).verdicts.append(verdict)
    return places


def range_of_verdict(verdict: ExperimentVerdict, places: Sequence[ProvedRange]) -> ProvedRange:
    """That of the proof whose bisection it is a step of, or where it is; else it goes with the first."""
    for place in places:
        if any(proof.base.pk == verdict.base.pk for proof in place.verdicts):
            return place
    return next((place for place in places if place.range == verdict.range), places[0])


def opening_changes(changes: Sequence[Change]) -> list[Change]:
    """Those that may open a regression and weren't the price of a faster step."""
    faster = speedups_among(changes)
    return [
        change
        for change in changes
        if may_open_regression(change) and not is_offset_by_speedup(change, faster)
    ]


def joining_order(change: Change) -> tuple[bool, bool, int, tuple[int, int, float], int, int]:
    """What is learned first, by which its cause is named; then exact counters, which know their place; then
    narrow ranges, into which wide ones fit.
    """
    width = 0 if is_exact_counter(change.series) else change.range.width
    noisy = not is_exact_counter(change.series)
    learned = is_quality(change.series)
    return not learned, noisy, width, primary_rank(change), change.range.bad, change.series.pk


def best_group(
    change: Change,
    groups: Sequence[Group],
    changes: Sequence[Change],
    confirmed: set[int],
    verdicts: dict[int, list[ExperimentVerdict]],
) -> Group | None:
    """The group whose cause may be this change's; None where it has one of its own.

    One cause moves a series once: a group that has a change of the same series is another one. Where pairs of
    the series itself have shown it beside these commits it is there, whatever else lies at them. `confirmed`
    are the regressions that pairs have proved.
    """
    beside, exact, wide, rest = [], [], [], []
    for index, group in enumerate(groups):
        if not group.verdicts and is_far_from(change, group):
            continue
        if any(member.series.pk == change.series.pk for member in group.members):
            continue
        if group.unplaced and is_apart_from_levels(change, group):
            continue
        seen_beside = is_seen_beside(change, group, changes)
        for place in group.ranges:
            distance = abs(change.range.bad - place.bad)
            if may_be_of_others(change, group, place):
                continue
            if seen_beside:
                beside.append((distance, index))
            elif change.range.overlap(place):
                exact.append((distance, index))
            elif is_placed_beside_by_noise(change, group, place):
                wide.append((distance, index))
            elif has_rest_here(change, group):
                rest.append((distance, index))
    for _, index in [*sorted(beside), *sorted(exact), *sorted(wide), *sorted(rest)]:
        if not is_refuted_there(change, groups[index], confirmed, verdicts):
            return groups[index]
    return None


def is_far_from(change: Change, group: Group) -> bool:
    """True where not even noise brings it to a place of the group's."""
    return not any(change.range.overlap(place) or change.widened.overlap(place) for place in group.ranges)


def is_apart_from_levels(change: Change, group: Group) -> bool:
    """True for another series in the range of what pairs have shown between its levels, but at the place that
    they have refuted: there both seemed to be one step."""
    if any(is_same_measurement(series, change.series) for series in group.unplaced):
        return False
    refuted = [row.range for row in group.verdicts if row.verdict == Verdict.REFUTED]
    return not any(place.overlap(change.range) for place in refuted)


def may_be_of_others(change: Change, group: Group, place: Range) -> bool:
    """True for a cost at some commits of a range in which less is learned, and the other way round.

    Of two commits in a range one may break the learning and another one be slow: that one of the two is known
    more exactly says nothing of the other. At one commit they are one cause.
    """
    return is_of_other_kind(change, group) and not change.range.holds(place)


def is_of_other_kind(change: Change, group: Group) -> bool:
    """True for a loss of quality in a group that begins with a cost, and the other way round; what pairs have
    confirmed comes before what detection sees.
    """
    foremost = verdicts_confirmed(group.verdicts) or group.members[:1]
    qualities = {is_quality(known.series) for known in foremost}
    return bool(qualities) and is_quality(change.series) not in qualities


def group_beside(change: Change, groups: Iterable[Group], changes: Sequence[Change]) -> Group | None:
    """The group with a change of the same series whose pairs have shown that there is no step at this one's.

    Detection sees the one step twice: where it is, by its phase, and beside it, by a noisy point.
    """
    for group in groups:
        seen = group.verdicts and any(member.series.pk == change.series.pk for member in group.members)
        if seen and is_seen_beside(change, group, changes):
            return group
    return None


def is_refuted_there(
    change: Change, group: Group, confirmed: set[int], verdicts: dict[int, list[ExperimentVerdict]]
) -> bool:
    """Pairs have refuted it at the commits of a regression that others have proved, and it is seen beside."""
    held = {member.regression_id for member in group.members if member.regression_id}
    owners = {*group.owners, *held} & confirmed
    rows = [
        verdict
        for owner in sorted(owners)
        for verdict in verdicts_on_step(verdicts.get(owner, ()), change.series)
    ]
    refuted = any(verdict.verdict == Verdict.REFUTED for verdict in rows)
    return refuted and find_proof(newest_first(rows), change.series, change.range) is None


def is_placed_beside_by_noise(change: Change, group: Group, place: Range) -> bool:
    """True where one of the group's changes is what this one saw too, at commits that noise can't tell apart.

    Pairs and counters both know the place: where they differ there are two causes.
    """
    if group.anchors and is_exact_counter(change.series):
        return False
    return sees_the_same(change, group.members) and change.widened.overlap(place) is not None


def is_seen_beside(change: Change, group: Group, changes: Sequence[Change]) -> bool:
    """True where pairs have shown that the step isn't at these commits, but in a range around them.

    Noise has placed it beside where they found it. `changes` are all that are known: pairs measure a range
    from end to end, so that an improvement within it may have hidden the step from them.
    """
    proofs = verdicts_on_step(group.verdicts, change.series)
    confirmed = [proof for proof in proofs if proof.verdict == Verdict.CONFIRMED]
    around = [proof for proof in confirmed if proof.range.holds(change.range)]
    return bool(around) and any(
        place.holds(change.range) and is_little_of(change, ratio, speedups_within(place, change, changes))
        for place, ratio in measured_ranges(group.verdicts, proofs)
    )


def has_rest_here(change: Change, group: Group) -> bool:
    """True where pairs have refuted a step at its place, confirmed it around that, and found a part of it.

    What is at its place is a part as well, and has no regression before pairs have proved it.
    """
    proofs = verdicts_on_step(group.verdicts, change.series)
    around = [proof for proof in proofs if proof.range.holds(change.range)]
    return any(proof.verdict == Verdict.REFUTED for proof in around) and any(
        proof.verdict == Verdict.CONFIRMED and has_part(group.verdicts, proof) for proof in around
    )


def speedups_within(place: Range, change: Change, changes: Iterable[Change]) -> list[Change]:
    """The improvements of a change's series that lie in a range."""
    return [
        other
        for other in changes
        if other.direction == BETTER and other.series.pk == change.series.pk and place.holds(other.range)
    ]


def measured_ranges(
    verdicts: Sequence[ExperimentVerdict], proofs: Iterable[ExperimentVerdict]
) -> Iterator[tuple[Range, float | None]]:
    """Ranges that pairs say have no step of a series, with the ratio that they measured from end to end."""
    for proof in proofs:
        if proof.verdict == Verdict.REFUTED:
            yield proof.range, proof.ratio
        if proof.verdict != Verdict.CONFIRMED:
            continue
        steps = bisection_steps(verdicts, proof)
        for step in (step for step in steps if is_same_measurement(step.series, proof.series)):
            if step.verdict == Verdict.NONE:
                yield step.range, step.ratio
            after_step = Range(step.head.position, proof.head.position)
            if step.verdict == Verdict.WHOLE and after_step.width > 0:
                yield after_step, proof.ratio / step.ratio if proof.ratio and step.ratio else None


def is_little_of(change: Change, ratio: float | None, speedups: Sequence[Change]) -> bool:
    """True where a ratio that pairs measured, but for the improvements in it, is none of a change's step.

    One that isn't known is none, unless there are improvements.
    """
    if ratio is None or not change.ratio:
        return not speedups
    hidden = sum(math.log(speedup.ratio) for speedup in speedups if speedup.ratio)
    return abs(math.log(ratio) - hidden) <= LITTLE_SHARE * abs(math.log(change.ratio))


def sees_the_same(change: Change, others: Sequence[Change]) -> bool:
    """True where one of them is what this one saw another way: the throughput of this step time, or its
    calls.
    """
    return any(
        change.series.configuration_id == other.series.configuration_id and is_alike(change, other)
        for other in others
    )


def is_alike(change: Change, other: Change) -> bool:
    """Both are times, or a time and an exact counter: noise may put a time beside what a counter knows."""
    counters = (is_exact_counter(change.series), is_exact_counter(other.series))
    times = (is_time(change.series), is_time(other.series))
    return all(times) or (any(times) and any(counters))


def add_evidence(groups: Sequence[Group], changes: Sequence[Change], openers: Sequence[Change]) -> None:
    """Give each group the changes for the worse that lie in its range and open nothing by themselves."""
    opening = {change.pk for change in openers}
    places = [(group, spanned_range(group.members)) for group in groups if group.members]
    for change in changes:
        if change.direction != WORSE or change.pk in opening:
            continue
        near = [
            (abs(change.range.bad - place.bad), index)
            for index, (_, place) in enumerate(places)
            if change.range.overlap(place) and places[index][0].may_have_evidence(change)
        ]
        if near:
            places[min(near)[1]][0].evidence.append(change)
