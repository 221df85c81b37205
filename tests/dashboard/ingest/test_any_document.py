"""What the schema allows is stored and shown, or refused in one sentence: no page breaks over it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dashboard import ingest
from dashboard.host_protocol import RunAssignment
from dashboard.ingest import BadDocument
from dashboard.models import Run, Series
from tests.dashboard.documents import document_body
from tests.dashboard.ingest.any_document import any_documents, load_complete_document

WHOLE = load_complete_document(document_body()["benchmark"])
# `EXAMPLES=2000` for a day on which the schema was changed.
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
SOME = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    # A smaller document says little more, and takes minutes to find.
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def store_any(assignment: RunAssignment, raw: dict[str, Any]) -> str | None:
    """Store the document; the sentence that refuses it, or None."""
    try:
        ingest.store_document(assignment.lease, json.dumps(raw).encode())
    except BadDocument as error:
        return str(error)
    return None


@pytest.mark.django_db
@SOME
@given(raw=any_documents(WHOLE), data=st.data())
def test_any_document_has_a_page(
    client: Client, run: Run, assignment: RunAssignment, raw: dict[str, Any], data: st.DataObject
) -> None:
    with transaction.atomic():
        refused = store_any(assignment, raw)
        if refused is None:
            series = data.draw(st.sampled_from(sorted(Series.objects.values_list("pk", flat=True))))
            project = reverse("project", args=[run.case.project.slug])
            for address in (run.get_absolute_url(), reverse("series", args=[series]), "/", project):
                page = client.get(address)
                assert page.status_code == 200, address
                assert len(page.content) < 2**22
        else:
            assert "\n" not in refused
        transaction.set_rollback(True)
