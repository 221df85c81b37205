"""Histories of real commits with a planted truth, and a worker that answers from it without measuring."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from django.utils import timezone

from dashboard import repositories, runs
from dashboard.models import Commit, Experiment, Project, Regression
from dashboard.regressions import advance_proof
from tests.dashboard import factories

LEVEL = 0.010
WHO = "Ada <ada@example.org> 1770000000 +0000"


@dataclass
class History:
    """Commits by name, oldest first, each with its parents; each of `steps` multiplies the level.

    A commit's files are those of its ancestors and its own, so that a merge differs from its branch's tip
    only where something else was merged, or where it is `evil` and changes something itself.
    """

    parents: Mapping[str, Sequence[str]]
    steps: Mapping[str, float]
    broken: frozenset[str] = frozenset()
    evil: frozenset[str] = frozenset()
    main: str = ""
    # Of metrics that step otherwise, by name.
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    project: Project = field(init=False)
    rows: dict[str, Commit] = field(init=False)

    def ancestry(self, name: str) -> set[str]:
        found, waiting = set(), [name]
        while waiting:
            commit = waiting.pop()
            if commit not in found:
                found.add(commit)
                waiting.extend(self.parents[commit])
        return found

    def level(self, name: str, metric: str = "") -> float:
        steps = self.others.get(metric, self.steps)
        return LEVEL * math.prod(steps.get(commit, 1.0) for commit in self.ancestry(name))

    def make(self, slug: str = "snakes", tips: Sequence[str] = ()) -> History:
        """Write it where the project's mirror is; `tips` are branches that still exist."""
        # Each has a mirror of its own, also where the database was emptied in between.
        self.project = factories.create_project(slug, repository=f"/nowhere/{uuid4()}")
        mirror = self.project.mirror
        mirror.folder.mkdir(parents=True)
        run_git(["init", "--quiet", "--bare", "--initial-branch=main", "--template="], mirror.folder)
        run_git(["fast-import", "--quiet", "--export-marks=marks"], mirror.folder, self.stream(tips))
        lines = (mirror.folder / "marks").read_text().split("\n")
        places = {int(mark[1:]): sha for mark, sha in (line.split() for line in lines if line)}
        names = list(self.parents)
        hashes = [places[index] for index in range(1, len(names) + 1)]
        known = runs.get_or_create_commits(self.project, repositories.read_commits(mirror, hashes))
        self.rows = {name: known[sha] for name, sha in zip(names, hashes, strict=True)}
        return self

    def stream(self, tips: Sequence[str]) -> str:
        marks = {name: index for index, name in enumerate(self.parents, start=1)}
        out = []
        for name, parents in self.parents.items():
            out += [] if parents else ["reset refs/heads/work\n"]
            out += [f"commit refs/heads/work\nmark :{marks[name]}\ncommitter {WHO}\ndata {len(name)}\n{name}"]
            out += [
                f"{'merge' if place else 'from'} :{marks[parent]}" for place, parent in enumerate(parents)
            ]
            merged = {
                commit
                for commit in self.ancestry(name)
                if len(self.parents[commit]) < 2 or commit in self.evil
            }
            out += ["deleteall", *(f"M 100644 inline {commit}\ndata 0\n" for commit in sorted(merged))]
            out += [f"reset refs/heads/work\nfrom :{marks[name]}\n"]
        heads = {"main": self.main or list(self.parents)[-1], **{f"of-{tip}": tip for tip in tips}}
        out += [f"reset refs/heads/{ref}\nfrom :{marks[name]}\n" for ref, name in heads.items()]
        return "\n".join(out) + "\ndone\n"

    def suspect(self, good: str, bad: str) -> Regression:
        """A regression between two commits that nothing is known of yet."""
        case = self.project.cases.first() or factories.create_case(self.project)
        series = factories.get_series(factories.create_run(self.rows[good], case), "step_time")
        return Regression.objects.create(
            project=self.project,
            last_good=self.rows[good],
            first_bad=self.rows[bad],
            series=series,
            before=self.level(good),
            after=self.level(bad),
            proving=True,
            residual=True,
        )

    def answer_all(self) -> int:
        """Answer until nothing is asked any more; how many bisection steps that took."""
        for regression in self.project.regressions.all():
            advance_proof(regression.pk)
        asked = self.project.experiments.filter(state="requested")
        steps = 0
        while row := asked.select_related("base_commit", "head_commit").first():
            self.answer(row)
            steps += row.purpose != "proof"
            advance_proof(row.regression_link.regression_id)
            assert steps < 200, "it doesn't end"
        return steps

    def answer(self, row: Experiment) -> None:
        names = {commit.hash: name for name, commit in self.rows.items()}
        good, bad = names[row.base_commit.hash], names[row.head_commit.hash]
        metric = row.metric.name
        moved = math.log(self.level(bad, metric) / self.level(good, metric))
        share = moved / math.log(row.after / row.before)
        row.verdict = "untestable" if {good, bad} & self.broken else verdict_without_noise(row, share)
        row.state, row.ratio, row.finished_at = "done", math.exp(moved), timezone.now()
        row.save()


def verdict_without_noise(row: Experiment, share: float) -> str:
    """What pairs without noise say."""
    if row.purpose == "proof":
        return "confirmed" if share > 0.5 else "refuted"
    if 0.25 < share < 0.75:
        return "part"
    return "whole" if share >= 0.75 else "none"


def run_git(arguments: list[str], folder: object, text: str = "") -> None:
    subprocess.run(
        ["git", *arguments], cwd=str(folder), input=text, text=True, check=True, capture_output=True
    )


def linear_history(count: int, first: str = "m") -> dict[str, list[str]]:
    """`m0` to `m<count>`, one behind the other."""
    names = [f"{first}{index}" for index in range(count + 1)]
    return {name: names[index - 1 : index] if index else [] for index, name in enumerate(names)}
