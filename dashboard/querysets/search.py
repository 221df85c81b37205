"""What a few words find, of each kind a few: by an index, or among a bounded number of rows."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from dashboard.models import Case, Commit, Machine, Project, Regression, Run
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import MACHINE_DETAILS
from dashboard.querysets.regressions import REGRESSION_DETAILS
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

MOST_HITS = 8
# Functions are looked for among the suspects of so many newest regressions.
NEWEST_REGRESSIONS = 1000
HASH = re.compile(r"[0-9a-f]{4,64}")
# As the index over the subjects of commits has it.
COMMIT_WORDS = SearchVector("subject", config="simple")


def find_projects(visibility: ProjectVisibility, words: list[str]) -> list[Project]:
    return _find_words(_PROJECTS, words, visibility)


def _build_projects(count: int, rule: VisibilityRule) -> QuerySet[Project]:
    rows = rule.given_projects().defer("manifest").filter(_match_all(count, "slug", "repository"))
    return rows.order_by("slug")[: MOST_HITS + 1]


def find_cases(visibility: ProjectVisibility, words: list[str]) -> list[Case]:
    return _find_words(_CASES, words, visibility)


def _build_cases(count: int, rule: VisibilityRule) -> QuerySet[Case]:
    named = _match_all(count, "benchmark", "key", "project__slug")
    rows = Case.objects.filter(named, project__in=rule.given_projects()).select_related("project")
    return rows.order_by("benchmark", "key", "pk")[: MOST_HITS + 1]


def find_commits(visibility: ProjectVisibility, text: str, words: list[str]) -> list[Commit]:
    """By the beginning of a hash, a tag, or by words of the subject, of which the beginning is enough."""
    folded = text.lower()
    if HASH.fullmatch(folded):
        rows = Commit.objects.filter(project__in=visibility.rows()).select_related("project")
        # Written into the statement, and so not compiled: only of a literal PostgreSQL knows that an index by
        # prefixes fits.
        by_hash = list(rows.filter(hash__startswith=folded).order_by("hash")[: MOST_HITS + 1])
        if by_hash:
            return by_hash
    terms = [term for word in words for term in re.findall(r"\w+", word)]
    asked = " & ".join(f"{term}:*" for term in terms)
    values = {**visibility.values, "tags": [text], "terms": asked}
    commits: list[Any] = _COMMITS.read_rows(bool(terms), visibility.rule, **values)
    return [commit for commit in commits if commit.is_tagged] or commits


def _build_commits(by_words: bool, rule: VisibilityRule) -> QuerySet[Any]:
    """Each with `is_tagged`: found by its tag."""
    rows: Any = Commit.objects.filter(project__in=rule.given_projects()).select_related("project")
    tagged = rows.exclude(tags=[]).filter(tags__contains=Parameter("tags")).annotate(is_tagged=Value(True))
    found: QuerySet[Any] = tagged.order_by("-pk")[: MOST_HITS + 1]
    if not by_words:
        return found
    asked = SearchQuery(Parameter("terms", TextField()), search_type="raw", config="simple")
    worded = rows.alias(words=COMMIT_WORDS).filter(words=asked).annotate(is_tagged=Value(False))
    newest = worded.order_by("-committed_at", "-pk")[: MOST_HITS + 1]
    return found.union(newest, all=True).order_by("-committed_at", "-pk")


def find_machines(words: list[str]) -> list[Machine]:
    """All machines are listed for everybody, as on their own page."""
    return _find_words(_MACHINES, words)


def _build_machines(count: int) -> QuerySet[Machine]:
    rows = Machine.objects.select_related("pool").filter(_match_all(count, "name", "pool__name"))
    return rows.defer(*MACHINE_DETAILS).order_by("name")[: MOST_HITS + 1]


def find_regressions(visibility: ProjectVisibility, words: list[str]) -> list[Regression]:
    return _find_words(_REGRESSIONS, words, visibility)


def _build_regressions(count: int, rule: VisibilityRule) -> QuerySet[Regression]:
    fields = (
        *("series__metric__name", "series__configuration__case__benchmark", "phase"),
        *("series__configuration__case__key", "project__slug", "first_bad__subject"),
    )
    rows = Regression.objects.filter(_match_all(count, *fields), pk__in=_newest_regressions(rule))
    related = (
        *("project", "first_bad", "culprit", "last_good"),
        *("series__metric", "series__configuration__case"),
    )
    light = rows.select_related(*related).defer(*REGRESSION_DETAILS)
    return light.order_by("-pk")[: MOST_HITS + 1]


def find_functions(
    visibility: ProjectVisibility, words: list[str]
) -> list[tuple[dict[str, Any], Regression]]:
    """(suspect, its regression): functions that regressions suspect, the newest regression first."""
    found = []
    # `replay.py:push` is what a page shows; among the stored suspects its two halves are values of their own.
    parts = [part for word in words for part in word.split(":") if part]
    for regression in _find_words(_FUNCTIONS, parts, visibility):
        for suspect in regression.suspects:
            name = f"{suspect.get('file', '')}:{suspect.get('function', '')}".lower()
            if all(word in name for word in words):
                found.append((suspect, regression))
                break
    return found


def _build_functions(count: int, rule: VisibilityRule) -> QuerySet[Regression]:
    rows: Any = Regression.objects.annotate(text=Cast("suspects", TextField()))
    rows = rows.filter(_match_all(count, "text"), pk__in=_newest_regressions(rule)).select_related("project")
    found: QuerySet[Regression] = rows.order_by("-pk")[: MOST_HITS + 1]
    return found


def _newest_regressions(rule: VisibilityRule) -> QuerySet[Any]:
    rows = Regression.objects.filter(project__in=rule.given_projects())
    return rows.order_by("-pk").values("pk")[:NEWEST_REGRESSIONS]


def _find_words(
    query: CompiledQuery[Any], words: list[str], visibility: ProjectVisibility | None = None
) -> list[Any]:
    """What a query lists that is compiled for so many words; no word finds nothing."""
    if not words:
        return []
    values = {f"word{place}": word for place, word in enumerate(words)}
    if visibility is None:
        return query.read_rows(len(words), **values)
    return query.read_rows(len(words), visibility.rule, **values, **visibility.values)


def _match_all(count: int, *fields: str) -> Q:
    """Each of the words that are given in one of the fields, whichever."""
    found = Q()
    for place in range(count):
        anywhere = Q()
        for field in fields:
            anywhere |= Q(**{f"{field}__icontains": Parameter(f"word{place}", TextField())})
        found &= anywhere
    return found


_PROJECTS = CompiledQuery(_build_projects)
_CASES = CompiledQuery(_build_cases)
_COMMITS: CompiledQuery[Any] = CompiledQuery(_build_commits)
_MACHINES = CompiledQuery(_build_machines)
_REGRESSIONS = CompiledQuery(_build_regressions)
_FUNCTIONS = CompiledQuery(_build_functions)


def find_numbered(visible: QuerySet[Project], kind: str, number: int) -> Run | Regression | None:
    """`run 12` or `regression 12`."""
    if kind == "regression":
        return Regression.objects.filter(pk=number, project__in=visible).first()
    own = visible.filter(pk=OuterRef("configuration__case__project"))
    return Run.objects.filter(Exists(own), pk=number).first()
