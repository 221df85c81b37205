"""Documents of what was measured elsewhere, posted as they are."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from paceline.document import SIZE_LIMIT
from pydantic import BaseModel, Field

from dashboard.access import visitor_of
from dashboard.api.runs import LONGEST_REVISION, RunRow, describe_run
from dashboard.ingest import BadDocument, posted_documents
from dashboard.ingest.posted_documents import DEFAULT_MACHINE, DocumentOrigin, DocumentRefused
from dashboard.models import Project
from dashboard.problem_details import ApiError
from dashboard.querysets import runs as run_queries
from dashboard.repositories import RepositoryBusy

router = Router(tags=["documents"])

BUSY_SECONDS = 10
DOCUMENT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The document as the harness wrote it: `paceline.document/1`.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


class DocumentQuery(BaseModel):
    commit: str = Field(
        min_length=1, max_length=LONGEST_REVISION, description="Of which it is: a hash, a branch or a tag."
    )
    machine: str = Field(
        DEFAULT_MACHINE,
        max_length=posted_documents.LONGEST_MACHINE,
        description="What measured it, as you call it. With the processor of the document it names the pool.",
    )


@router.post(
    "projects/{slug:slug}/documents",
    url_name="api-documents",
    operation_id="post_document",
    response={HTTPStatus.CREATED: RunRow, HTTPStatus.OK: RunRow},
    openapi_extra=DOCUMENT_BODY,
)
def post_document(request: HttpRequest, slug: str, query: Query[DocumentQuery]) -> Status[RunRow]:
    """Store what was measured elsewhere, such as in your CI, as a run of its commit.

    Its values are judged among those of the same machine and processor, never among those of other hosts,
    and nothing of it can be proved here. The same document posted again is the same run, with the status 200.
    """
    project = get_object_or_404(Project, slug=slug)
    # One more byte than is allowed: what is too large is refused in the words of the harness.
    data = request.read(SIZE_LIMIT + 1)
    try:
        run, is_new = posted_documents.post_document(
            project, data, DocumentOrigin(query.commit, query.machine), visitor_of(request)
        )
    except DocumentRefused as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), error.field) from error
    except BadDocument as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}.", error.field) from error
    except RepositoryBusy as error:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": str(BUSY_SECONDS)}
        ) from error
    row = describe_run(request, run_queries.runs_with_related().get(pk=run.pk))
    return Status(HTTPStatus.CREATED if is_new else HTTPStatus.OK, row)
