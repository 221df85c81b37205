"""How a run stands to the limits of its manifest, as rows beside its points."""

from __future__ import annotations

from paceline.document import Document

from dashboard.models import Limit, Run


def store_limits(run: Run, document: Document, series: list[int]) -> None:
    """Store a row for each limit on a metric that was measured; `series` are those of the metrics, in order.

    A limit on what this machine doesn't measure has no series: only the document has it.
    """
    measured = {
        (value.name, value.phase): (value, pk) for value, pk in zip(document.metrics, series, strict=True)
    }
    rows = []
    for limit in document.limits:
        measured_value = measured.get((limit.metric, limit.phase))
        if measured_value is None or limit.value is None or limit.crossed is None:
            continue
        value, pk = measured_value
        rows.append(
            Limit(
                series_id=pk,
                run=run,
                position=run.commit.position,
                minimum=limit.minimum,
                maximum=limit.maximum,
                value=limit.value,
                crossed=limit.crossed,
                tainted=document.taints(value.kind),
            )
        )
    if rows:
        Limit.objects.bulk_create(rows)
