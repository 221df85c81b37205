"""Addresses of the form that asks for an experiment, filled in by what somebody is looking at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from paceline.manifest.policy import ROLLING
from paceline.phase_names import spell_metric

from dashboard.models import Configuration, Project, Regression, Run, Series
from dashboard.policy.baselines import default_baseline
from dashboard.policy.project_policy import project_policy
from dashboard.querysets.regressions import regression_around
from dashboard.querysets.run_points import PreviousRun
from dashboard.sentences.series.baselines import baseline_label


@dataclass(frozen=True, slots=True)
class ComparisonLink:
    """`label` says against what the commit that is looked at is compared."""

    label: str
    address: str


def form_address(project: Project, **fields: str) -> str:
    """The form with these of its fields; empty ones are left out."""
    written = {name: value for name, value in fields.items() if value}
    query = f"?{urlencode(written)}" if written else ""
    return f"{reverse('experiment-new', args=[project.slug])}{query}"


def configuration_fields(configuration: Configuration) -> dict[str, str]:
    """What asks for the same case, measured in the same way."""
    return {
        "case": str(configuration.case),
        "quick": "yes" if configuration.quick else "no",
        "pool": configuration.pool.name,
    }


def series_fields(series: Series) -> dict[str, str]:
    return {
        **configuration_fields(series.configuration),
        "metric": spell_metric(series.metric.name, series.phase),
    }


def run_links(run: Run, previous: PreviousRun | None) -> Sequence[ComparisonLink]:
    """A run's commit against its parent, its baseline, the commit that was measured before it, and the last
    good one."""
    project = run.case.project
    if not project.is_measurable:
        return []
    against = dict.fromkeys(run.commit.parents[:1], "its parent")
    name = default_baseline(project_policy(project), run.commit.branch, project.branch)
    # The rolling one is the commit that was measured before it.
    if name != ROLLING:
        against[name] = f"its baseline, {baseline_label(name)}"
    if previous:
        against.setdefault(previous.run.commit.hash, "the commit measured before it")
    regression = regression_around(run)
    if regression and regression.last_good.position < run.commit.position:
        name = f"the last good commit of regression {regression.pk}"
        against.setdefault(regression.last_good.hash, name)
    fields = {**configuration_fields(run.configuration), "head": run.commit.hash}
    return [
        ComparisonLink(label, form_address(project, **fields, base=base)) for base, label in against.items()
    ]


def regression_address(regression: Regression) -> str:
    """How large its step is, asked by a person; empty where nothing can be measured."""
    if not regression.project.is_measurable:
        return ""
    sides = {"base": regression.last_good.hash, "head": regression.first_bad.hash}
    return form_address(regression.project, **sides, **series_fields(regression.series))
