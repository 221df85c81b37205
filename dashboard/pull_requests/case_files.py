"""Which files a case runs, and which files differ between two commits."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard import repositories
from dashboard.models import Document, Project
from dashboard.repositories import Mirror


def profiled_files(project: Project, benchmark: str, key: str) -> set[str] | None:
    """The files whose functions the case's newest profile has; None where it has none."""
    documents = Document.objects.filter(
        run__commit__project=project,
        run__configuration__case__benchmark=benchmark,
        run__configuration__case__key=key,
        body__profile__functions__isnull=False,
    )
    functions = documents.order_by("-run").values_list("body__profile__functions", flat=True).first()
    return {str(row.get("file", "")) for row in functions} if functions else None


def changed_paths(mirror: Mirror, old: str, new: str) -> Sequence[str]:
    """The names of what differs between two commits; of a renamed file both."""
    changed = repositories.changed_files(mirror, old, new) if old != new else []
    return sorted({path for file in changed for path in (file.old, file.new) if path})
