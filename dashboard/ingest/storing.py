"""A document becomes rows, all in one transaction, and its run is asked to be judged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from django.db import connection, transaction
from paceline.document import Document as CheckedDocument

from dashboard import dispatch, runs
from dashboard.environments import compared_values, store_environments
from dashboard.host_protocol import Lease
from dashboard.ingest import guards, latest, limits, sentinels, series
from dashboard.ingest.costs import store_costs
from dashboard.ingest.document_validation import validate_document
from dashboard.leases import LeaseLost
from dashboard.models import Document, Run, Telemetry

# The first key of our advisory locks; the second is the configuration.
ADVISORY_LOCK = 0x50ACE


def store_document(lease: Lease, data: bytes) -> None:
    """Store the document of a run that is storing, which is done then; on commit, ask for judgement.

    Storing the same document again under the same lease does nothing. Raises BadDocument, LeaseLost,
    WrongState; nothing is stored then.
    """
    digest = hashlib.sha256(data).hexdigest()
    wanted = Run.objects.select_related("configuration__case").filter(pk=lease.key).first()
    if wanted is None:
        raise LeaseLost(f"Run {lease.key} is gone.")
    document = validate_document(data, wanted)
    with transaction.atomic():
        run = runs.held_run(lease)
        if run is None:
            _check_stored_before(lease, digest)
            return
        _lock_configuration(run.configuration_id)
        Document.objects.create(run=run, format=document.raw["format"], body=document.raw, sha256=digest)
        _store_compared_values(run, document)
        store_costs(run, document)
        if run.origin == Run.Origin.SENTINEL:
            sentinels.store_sentinel_points(run, document)
        else:
            touched = series.store_points(run, document)
            limits.store_limits(run, document, touched)
            guards.store_guard_results(run, document)
            latest.renew_latest(run, touched)
        _store_telemetry(run, document)
        # Last: it compares state and lease, and takes everything back where they aren't ours.
        runs.finish_run(lease, tainted=document.tainted)
        runs.remeasure_disturbed(run, (doubt.code for doubt in document.warnings if doubt.taints))
        dispatch.send_task(dispatch.JUDGE, run.pk)


def _check_stored_before(lease: Lease, digest: str) -> None:
    same = Document.objects.filter(
        run=lease.key, run__lease=lease.token, run__state=Run.State.DONE, sha256=digest
    )
    if not same.exists():
        raise LeaseLost(f"Run {lease.key} is no longer attempt {lease.attempt}'s to store.")


def _lock_configuration(configuration: int) -> None:
    """Let documents of one configuration wait for each other: they write the same rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [ADVISORY_LOCK, configuration % 2**31])


def _store_compared_values(run: Run, document: CheckedDocument) -> None:
    """Store what many runs are compared and counted by apart from the document, which is too large for it."""
    values = compared_values(document.raw["environment"], document.harness_version)
    (run.environment_id,) = store_environments([values])
    run.warning_codes = list(dict.fromkeys(warning.code for warning in document.warnings))
    run.calibration = median_calibration(document.raw["repetitions"])
    if document.counting is not None:
        run.counted_at = document.counting.counted_at or ""
    run.save(update_fields=["environment", "warning_codes", "calibration", "counted_at"])


def median_calibration(repetitions: Iterable[Mapping[str, Any]]) -> float | None:
    """What the calibration loop took: the median over the repetitions, before and after each."""
    loops = [
        repetition.get(f"calibration_{when}") for repetition in repetitions for when in ("before", "after")
    ]
    known = [seconds for seconds in loops if seconds]
    return float(median(known)) if known else None


def _store_telemetry(run: Run, document: CheckedDocument) -> None:
    Telemetry.objects.bulk_create(
        Telemetry(
            run=run,
            repetition=row.repetition,
            channel=row.channel,
            device=row.device,
            unit=row.unit,
            start=row.start,
            interval=row.interval,
            values=row.values,
            mean=row.mean,
            peak=row.peak,
            idle_share=row.idle_share,
        )
        for row in document.telemetry
    )
