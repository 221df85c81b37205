"""What a file of claims says, as rows; what it no longer says stays with its measurements, unlisted."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from dashboard.claims.reading import FoundClaims
from dashboard.models import Claim, ClaimsFile, Commit, Project

LONGEST_DOCUMENT = 500


def store_claims(project: Project, commit: Commit, found: Mapping[str, FoundClaims]) -> None:
    """Keep the files of a commit of the project's branch, called within a transaction.

    Of a file that can't be read what it said before stays.
    """
    ClaimsFile.objects.filter(project=project).exclude(benchmark__in=found).delete()
    Claim.objects.filter(project=project, listed=True).exclude(benchmark__in=found).update(listed=False)
    for benchmark, file in found.items():
        ClaimsFile.objects.update_or_create(
            project=project,
            benchmark=benchmark,
            defaults={
                "document": file.document[:LONGEST_DOCUMENT],
                "problem": file.problem,
                "commit": commit,
            },
            create_defaults={
                "document": file.document[:LONGEST_DOCUMENT],
                "problem": file.problem,
                "commit": commit,
                "asked_at": timezone.now(),
                "asked_at_commit": None,
            },
        )
        if not file.problem:
            store_listed(project, benchmark, file)


def store_listed(project: Project, benchmark: str, file: FoundClaims) -> None:
    """One row for each claim of the file. A claim that says something else now stands nowhere yet."""
    stored = {row.key: row for row in Claim.objects.filter(project=project, benchmark=benchmark)}
    new: list[Claim] = []
    changed: list[Claim] = []
    for position, (claim, raw) in enumerate(file.claims):
        row = stored.pop(claim.key, None) or Claim(project=project, benchmark=benchmark, key=claim.key)
        if row.digest != claim.definition:
            row.verdict, row.standing, row.since, row.newest = "", Claim.Standing.NOTHING, None, None
        row.text, row.definition, row.digest = claim.claim, dict(raw), claim.definition
        row.position, row.listed = position, True
        (changed if row.pk else new).append(row)
    Claim.objects.bulk_create(new)
    fields = ["text", "definition", "digest", "position", "listed", "verdict", "standing", "since", "newest"]
    Claim.objects.bulk_update(changed, fields)
    Claim.objects.filter(pk__in=[row.pk for row in stored.values()]).update(listed=False)
