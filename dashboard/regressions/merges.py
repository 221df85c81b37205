"""Into a merged branch: a range ends at a merge, and one of the commits that it brought may be to blame.

A commit of the branch is based on an older commit than the merge: it is measured against its own merge base
with the merge's first parent, so that what happened beside the branch isn't counted. The branch's newest
commit comes first: if it doesn't have the step, the merge itself is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard import repositories
from dashboard.models import Change, Commit, Confirmation, Point, Project, Regression, Run
from dashboard.regressions import bisection, blame, proofs, speaking
from dashboard.regressions.asking import known, measure, request, runs_of
from dashboard.regressions.bisection import CANNOT_TELL
from dashboard.repositories import Mirror, RepositoryError

Purpose = Confirmation.Purpose
Verdict = Confirmation.Verdict

# Of a counter's step, as of a pair's: with less than the first part a commit has none, with more than the
# second all of it.
NEARLY_NONE, NEARLY_ALL = 0.25, 0.75
MOST_NAMED = 5


def follow(
    project: Project, regression: Regression, skipped: Mapping[str, str], counter: Change | None = None
) -> bool:
    """Go on inside the merge that a range ends at; False where nothing is left to measure.

    `skipped` are the commits that can't tell, with their verdicts; `counter` is the exact counter that
    tells, if one does. What the commits alone don't say is kept with the regression.
    """
    good, bad = regression.last_good, regression.first_bad
    single = good.hash in bad.parents[:1] or bad.position - good.position == 1
    if not single:
        return ended(regression, None, of_range(regression, skipped))
    if len(bad.parents) < 2:
        return ended(regression, None, "")
    if len(bad.parents) > 2:
        others = len(bad.parents) - 1
        return ended(regression, None, f"{bad} merges {others} branches at once: it stays named as a whole.")
    try:
        return Inside.of(project, regression, counter).step()
    except RepositoryError as error:
        return ended(regression, None, f"{bad} is a merge; its branch can't be looked into: {error}")


@dataclass(frozen=True, slots=True)
class Inside:
    """A merge of two histories, with the commits that it brought, oldest first, and their parents."""

    project: Project
    regression: Regression
    counter: Change | None
    mirror: Mirror
    main: str
    tip: str
    brought: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, project: Project, regression: Regression, counter: Change | None) -> Inside:
        mirror = repositories.mirror_of(project)
        main, tip = regression.first_bad.parents
        brought = repositories.brought(mirror, main, tip)
        return cls(project, regression, counter, mirror, main, tip, brought)

    def step(self) -> bool:
        """Measure what tells most; False once that is nothing."""
        merge = self.regression.first_bad
        base = repositories.merge_base(self.mirror, self.main, self.tip)
        if base is None:
            return self.ended(f"{merge} merges an unrelated history: it stays named as a whole.")
        if not self.brought:
            return self.ended(f"{merge} is a merge that brought no commit: it is itself to blame.")
        verdicts = self.verdicts()
        if self.tip not in verdicts and base == self.main and self.is_its_tip():
            verdicts[self.tip] = Verdict.BAD  # The same files against the same commit: it was measured.
        if self.tip not in verdicts:
            return self.ask(self.tip)
        if verdicts[self.tip] == Verdict.GOOD:
            return self.ended(
                f"The merge {merge} itself is to blame: its branch, up to {self.tip[:10]}, doesn't have it "
                f"against their merge base {base[:10]}."
            )
        if verdicts[self.tip] in CANNOT_TELL:
            return self.ended(
                f"{merge} is a merge; whether its branch brought it can't be told: the branch's newest "
                f"commit {self.tip[:10]} and their merge base {base[:10]} {why(verdicts[self.tip])}."
            )
        left = bisection.narrow_branch(self.brought, verdicts)
        if left.middle is not None:
            return self.ask(left.middle)
        return self.name(left.suspects, verdicts)

    def is_its_tip(self) -> bool:
        return repositories.is_same_tree(self.mirror, self.regression.first_bad.hash, self.tip)

    def name(self, suspects: Sequence[str], verdicts: Mapping[str, str]) -> bool:
        merge, count = self.regression.first_bad, len(self.brought)
        came = f"It came by the merge {merge}, which brought {commits(count)}"
        if len(suspects) > 1:
            return self.ended(f"{came}: {one_of(suspects, [verdicts.get(one, '') for one in suspects])}.")
        (sha,) = suspects
        part = ""
        if verdicts[self.tip] == Verdict.BETWEEN:
            part = " The branch brings a part of it, the merge itself the rest."
        elif verdicts[sha] == Verdict.BETWEEN:
            part = " It has a part of it; a later commit of the branch has the rest."
        return ended(
            self.regression,
            known(self.project, sha),
            f"{came}: {sha[:10]} is the first of them to have it.{part}",
        )

    def ended(self, text: str) -> bool:
        return ended(self.regression, None, text)

    def base_of(self, sha: str) -> Commit:
        """What a commit of the branch is measured against."""
        base = repositories.merge_base(self.mirror, self.main, sha)
        return known(self.project, base or self.main)

    def verdicts(self) -> dict[str, str]:
        if self.counter is not None:
            return self.verdicts_by_counter(self.counter)
        done = self.regression.confirmations.filter(
            purpose=Purpose.BRANCH, state=Confirmation.State.DONE, bad__hash__in=list(self.brought)
        )
        rows = done.select_related("bad", "series__metric").order_by("pk")
        return {row.bad.hash: row.verdict for row in rows if proofs.tells(row, self.regression.series)}

    def ask(self, sha: str) -> bool:
        """Measure a commit of the branch, and its base where a counter tells."""
        commit, base = known(self.project, sha), self.base_of(sha)
        if self.counter is None:
            request(self.regression, Purpose.BRANCH, base, commit)
            return True
        if measure(self.regression, [base, commit]):
            return True
        return self.ended(
            f"It came by the merge {self.regression.first_bad}, whose commits can't be measured."
        )

    def verdicts_by_counter(self, counter: Change) -> dict[str, str]:
        """What the counter says of the commits that were measured, each against its base."""
        rows = self.project.commits.filter(hash__in=list(self.brought))
        tried = runs_of(counter.series, rows)
        found: dict[str, str] = {}
        for run in tried.values():
            base = self.base_of(run.commit.hash)
            if run.state in Run.TERMINAL and not is_awaited(counter, base):
                found[run.commit.hash] = by_counter(counter, run.commit, base)
        return found


def is_awaited(counter: Change, commit: Commit) -> bool:
    """Will a run of the commit say what the counter is there?"""
    run = runs_of(counter.series, [commit]).get(commit.pk)
    return run is None or run.state not in Run.TERMINAL


def by_counter(counter: Change, commit: Commit, base: Commit) -> str:
    """The verdict of an exact counter on a commit against its base."""
    there, here = counted(counter, commit), counted(counter, base)
    if there is None or here is None or counter.after == counter.before:
        return Verdict.UNTESTABLE
    share = (there - here) / (counter.after - counter.before)
    if share >= NEARLY_ALL:
        return Verdict.BAD
    return Verdict.GOOD if share <= NEARLY_NONE else Verdict.BETWEEN


def counted(counter: Change, commit: Commit) -> float | None:
    points = Point.objects.filter(series=counter.series_id, run__commit=commit, tainted=False)
    return points.order_by("-run_id").values_list("value", flat=True).first()


def ended(regression: Regression, culprit: Commit | None, text: str) -> bool:
    """Keep what was found, and explain the regression by its culprit's own difference. Always False."""
    if (regression.culprit, regression.bisected) != (culprit, text):
        regression.culprit, regression.bisected = culprit, text
        regression.save(update_fields=["culprit", "bisected", "updated_at"])
        found = speaking.of(regression)
        if culprit and found:
            blame.attribute(regression.project, regression, found.head, {})
    return False


def of_range(regression: Regression, skipped: Mapping[str, str]) -> str:
    """`It is one of these 3 commits; 2 don't run.`."""
    ends = regression.last_good.position, regression.first_bad.position
    inside = regression.project.commits.filter(
        hash__in=list(skipped), position__gt=ends[0], position__lt=ends[1]
    )
    verdicts = [skipped[sha] for sha in inside.values_list("hash", flat=True)]
    return f"It is one of these {ends[1] - ends[0]} commits{because(verdicts)}."


def one_of(suspects: Sequence[str], verdicts: Sequence[str]) -> str:
    """`one of a, b, c, of which 2 don't run`."""
    names = ", ".join(sha[:10] for sha in suspects[:MOST_NAMED])
    more = f" and {len(suspects) - MOST_NAMED} more" if len(suspects) > MOST_NAMED else ""
    return f"it is one of {names}{more}{because(verdicts)}"


def because(verdicts: Sequence[str]) -> str:
    """`; 2 don't run, 1 can't tell`: why no more is known."""
    broken = sum(one == Verdict.UNTESTABLE for one in verdicts)
    open_ = sum(one == Verdict.UNDECIDED for one in verdicts)
    parts = [f"{broken} {'does' if broken == 1 else 'do'}n't run"] if broken else []
    parts += [f"{open_} can't tell"] if open_ else []
    return f"; {', '.join(parts)}" if parts else ""


def why(verdict: str) -> str:
    return "don't both run" if verdict == Verdict.UNTESTABLE else "couldn't be told apart"


def commits(count: int) -> str:
    return "one commit" if count == 1 else f"{count} commits"
