"""The body of a webhook: `paceline.alert/1`, described in docs/alerts.md.

Format history: paceline.alert/1 is the first. Members may be added to a format;
a changed or removed one makes a new format.
"""

from __future__ import annotations

from typing import Any

from dashboard.alerts.digest_content import collected_claims, group_regressions
from dashboard.alerts.messages import claim_url, compose_message, regression_url, time_beside_counter
from dashboard.models import ClaimMeasurement, Commit, Delivery, Regression, Series
from dashboard.sentences.comparisons import claims as claim_sentences
from dashboard.sentences.regressions import regressions as sentences
from dashboard.sentences.regressions.alerts import message_sentence
from dashboard.sentences.regressions.causes import cause_sentence

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
    if delivery.claim_measurement is not None:
        return {**common, **_claim_message(delivery.event, delivery.claim_measurement)}
    if regression is None:
        return {**common, **_message_without_regression(delivery)}
    return {
        **common,
        "title": sentences.regression_title(regression),
        "sentence": message_sentence(regression, delivery.event),
        "step_time": time_beside_counter(regression, delivery.event) or None,
        "regression": regression_fields(regression),
    }


def _claim_message(event: str, measurement: ClaimMeasurement) -> dict[str, Any]:
    return {
        "title": claim_sentences.claim_title(measurement, event),
        "sentence": claim_sentences.claim_sentence(measurement, event),
        "regression": None,
        "claim": claim_fields(measurement),
    }


def claim_fields(measurement: ClaimMeasurement) -> dict[str, Any]:
    """The claim as it was written, and what proves the verdict on it."""
    claim = measurement.claim
    return {
        "id": claim.pk,
        "key": claim.key,
        "url": claim_url(measurement),
        "text": claim.text,
        "benchmark": claim.benchmark,
        "pool": measurement.head.pool.name,
        "definition": claim.definition,
        "commit": commit_fields(measurement.commit),
        "verdict": measurement.verdict,
        "value": measurement.value,
        "low": measurement.low,
        "high": measurement.high,
        "unit": measurement.unit,
        "evidence": measurement.evidence,
        "experiment": measurement.experiment_id,
        "run": measurement.run_id,
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
    claims = [{"event": event, **claim_fields(found)} for event, found in collected_claims(delivery)]
    return fields | {"digest": groups, "claims": claims}


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
        "before": regression.level_before,
        "after": None if regression.is_unreported else regression.level_after,
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
        "device": regression.device,
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
