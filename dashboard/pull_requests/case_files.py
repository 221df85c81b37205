"""Which files a case runs, and which files differ between two commits."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard import repositories
from dashboard.models import Document, Project
from dashboard.pull_requests.selection import ProfiledFiles
from dashboard.repositories import Mirror

# What a document's counting says where the script started other processes, whose files nobody saw.
PROCESSES = "processes"


def profiled_files(project: Project, benchmark: str, key: str) -> ProfiledFiles | None:
    """The files whose functions the case's newest profile has; None where it has none."""
    documents = Document.objects.filter(
        run__commit__project=project,
        run__configuration__case__benchmark=benchmark,
        run__configuration__case__key=key,
        body__profile__functions__isnull=False,
    )
    members = ("profile__functions", "loaders", "helpers", "counting__doubts")
    row = documents.order_by("-run").values_list(*(f"body__{member}" for member in members)).first()
    if row is None or not row[0]:
        return None
    functions, loaders, helpers, doubts = row
    workers = any(loader.get("workers") for loader in loaders or ())
    has_others = workers or bool(helpers) or PROCESSES in (doubts or ())
    return ProfiledFiles(frozenset(str(row.get("file", "")) for row in functions), not has_others)


def changed_paths(mirror: Mirror, old: str, new: str) -> Sequence[str]:
    """The names of what differs between two commits; of a renamed file both."""
    changed = repositories.changed_files(mirror, old, new) if old != new else []
    return sorted({path for file in changed for path in (file.old, file.new) if path})
