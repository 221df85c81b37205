"""The body of a webhook: `paceline.alert/1`, described in docs/alerts.md.

Format history: paceline.alert/1 is the first. Members may be added to a format;
a changed or removed one makes a new format.
"""

from __future__ import annotations

from typing import Any

from dashboard.alerts.digest_content import group_regressions
from dashboard.alerts.messages import compose_message, regression_url
from dashboard.models import Commit, Delivery, Regression, Series
from dashboard.sentences import regressions as sentences
from dashboard.sentences.alerts import message_sentence
from dashboard.sentences.causes import cause_sentence

FORMAT = "paceline.alert/1"


def alert_payload(delivery: Delivery) -> dict[str, Any]:
    regression = delivery.regression
    common = {
        "format": FORMAT,
        "delivery": delivery.pk,
        "event": delivery.event,
        "created": delivery.created_at.isoformat(timespec="seconds"),
        "project": delivery.channel.project.slug,
    }
    if regression is None:
        return {**common, **_message_without_regression(delivery)}
    return {
        **common,
        "title": sentences.regression_title(regression),
        "sentence": message_sentence(regression, delivery.event),
        "regression": regression_fields(regression),
    }


def _message_without_regression(delivery: Delivery) -> dict[str, Any]:
    """Of a digest or a test. A digest has the regressions of each of its groups."""
    message = compose_message(delivery)
    fields = {"title": message.title, "sentence": message.sentence, "regression": None}
    if delivery.event != Delivery.Event.DIGEST:
        return fields
    groups = {
        name.lower(): [regression_fields(regression) for regression in rows]
        for name, rows in group_regressions(delivery)
    }
    return fields | {"digest": groups}


def regression_fields(regression: Regression) -> dict[str, Any]:
    return {
        "id": regression.pk,
        "url": regression_url(regression),
        "kind": regression.kind,
        "state": regression.state,
        "recovered_by": commit_fields(regression.recovered_by) if regression.recovered_by else None,
        "withdrawn": bool(regression.withdrawn_at),
        "triaged": regression.triaged or None,
        "commit": commit_fields(regression.blamed),
        "commits_left": regression.commits_left,
        "merged_by": commit_fields(regression.first_bad) if regression.culprit else None,
        "last_good": commit_fields(regression.last_good),
        **series_fields(regression.series),
        "before": regression.before,
        "after": regression.level_after,
        "change_percent": round_percent_change(regression.ratio),
        "change_percent_low": round_percent_change(regression.low),
        "change_percent_high": round_percent_change(regression.high),
        "learning": regression.lost_learning,
        "phase": regression.phase or None,
        "phase_share": regression.phase_share,
        "place": sentences.describe_host_or_device(regression) or None,
        "cause": {
            "class": regression.cause or None,
            "evidence": [cause_sentence(evidence) for evidence in regression.cause_evidence],
        },
        "suspects": regression.suspects,
        "operations": regression.operations,
        "slow_processes": regression.slow_processes,
    }


def commit_fields(commit: Commit) -> dict[str, str]:
    return {"hash": commit.hash, "subject": commit.subject, "author": commit.author}


def series_fields(series: Series) -> dict[str, Any]:
    case, metric = series.case, series.metric
    return {
        "case": {"benchmark": case.benchmark, "key": case.key, "params": case.params},
        "version": series.version,
        "pool": series.pool.name,
        "metric": {"name": metric.name, "unit": metric.unit, "better": metric.better},
    }


def round_percent_change(ratio: float | None) -> float | None:
    """Percent of the old value, negative where it fell; None where there is no ratio.

    Rounded where only the noise of binary fractions is: who writes it out rounds as the title does.
    """
    return None if ratio is None else round(100 * (ratio - 1), 9)
