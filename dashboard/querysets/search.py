"""What a few words find, of each kind a few: by an index, or among a bounded number of rows."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from dashboard.models import Case, Commit, Machine, Project, Regression, Run

MOST_HITS = 8
# Functions are looked for among the suspects of so many newest regressions.
NEWEST_REGRESSIONS = 1000
HASH = re.compile(r"[0-9a-f]{4,64}")
# As the index over the subjects of commits has it.
COMMIT_WORDS = SearchVector("subject", config="simple")


def find_projects(visible: QuerySet[Project], words: list[str]) -> list[Project]:
    rows = visible.defer("manifest").filter(_match_all(words, "slug", "repository"))
    return list(rows.order_by("slug")[: MOST_HITS + 1])


def find_cases(visible: QuerySet[Project], words: list[str]) -> list[Case]:
    rows = Case.objects.filter(_match_all(words, "benchmark", "key", "project__slug"), project__in=visible)
    return list(rows.select_related("project").order_by("benchmark", "key", "pk")[: MOST_HITS + 1])


def find_commits(visible: QuerySet[Project], text: str, words: list[str]) -> list[Commit]:
    """By the beginning of a hash, a tag, or by words of the subject, of which the beginning is enough."""
    rows: Any = Commit.objects.filter(project__in=visible).select_related("project")
    folded = text.lower()
    if HASH.fullmatch(folded):
        by_hash = list(rows.filter(hash__startswith=folded).order_by("hash")[: MOST_HITS + 1])
        if by_hash:
            return by_hash
    tagged = rows.exclude(tags=[]).filter(tags__contains=[text]).annotate(is_tagged=Value(True))
    found = tagged.order_by("-pk")[: MOST_HITS + 1]
    terms = [term for word in words for term in re.findall(r"\w+", word)]
    if terms:
        asked = SearchQuery(" & ".join(f"{term}:*" for term in terms), search_type="raw", config="simple")
        worded = rows.alias(words=COMMIT_WORDS).filter(words=asked).annotate(is_tagged=Value(False))
        newest = worded.order_by("-committed_at", "-pk")[: MOST_HITS + 1]
        found = found.union(newest, all=True).order_by("-committed_at", "-pk")
    commits = list(found)
    return [commit for commit in commits if commit.is_tagged] or commits


def find_machines(words: list[str]) -> list[Machine]:
    """All machines are listed for everybody, as on their own page."""
    rows = Machine.objects.select_related("pool").filter(_match_all(words, "name", "pool__name"))
    return list(rows.defer("fingerprint").order_by("name")[: MOST_HITS + 1])


def find_regressions(visible: QuerySet[Project], words: list[str]) -> list[Regression]:
    fields = (
        *("series__metric__name", "series__configuration__case__benchmark", "phase"),
        *("series__configuration__case__key", "project__slug", "first_bad__subject"),
    )
    newest = Regression.objects.filter(project__in=visible).order_by("-pk").values("pk")[:NEWEST_REGRESSIONS]
    rows = Regression.objects.filter(_match_all(words, *fields), pk__in=newest)
    related = (
        "project",
        "first_bad",
        "culprit",
        "last_good",
        "series__metric",
        "series__configuration__case",
    )
    return list(rows.select_related(*related).order_by("-pk")[: MOST_HITS + 1])


def find_functions(visible: QuerySet[Project], words: list[str]) -> list[tuple[dict[str, Any], Regression]]:
    """(suspect, its regression): functions that regressions suspect, the newest regression first."""
    newest = Regression.objects.filter(project__in=visible).order_by("-pk").values("pk")[:NEWEST_REGRESSIONS]
    rows: Any = Regression.objects.annotate(text=Cast("suspects", TextField()))
    rows = rows.filter(_match_all(words, "text"), pk__in=newest).select_related("project")
    found = []
    for regression in rows.order_by("-pk")[: MOST_HITS + 1]:
        for suspect in regression.suspects:
            name = f"{suspect.get('file', '')}:{suspect.get('function', '')}".lower()
            if all(word in name for word in words):
                found.append((suspect, regression))
                break
    return found


def find_numbered(visible: QuerySet[Project], kind: str, number: int) -> Run | Regression | None:
    """`run 12` or `regression 12`."""
    if kind == "regression":
        return Regression.objects.filter(pk=number, project__in=visible).first()
    own = visible.filter(pk=OuterRef("configuration__case__project"))
    return Run.objects.filter(Exists(own), pk=number).first()


def _match_all(words: list[str], *fields: str) -> Q:
    """Each word in one of the fields, whichever; no word finds nothing."""
    found = Q() if words else Q(pk__in=[])
    for word in words:
        anywhere = Q()
        for field in fields:
            anywhere |= Q(**{f"{field}__icontains": word})
        found &= anywhere
    return found
