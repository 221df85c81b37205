"""From revisions and cases as they are written to the two sides of an experiment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from paceline.manifest import Benchmark, ManifestError, case_key

from dashboard import repositories, runs
from dashboard.experiments.baseline_commits import WORDS, find_baseline_commit
from dashboard.experiments.errors import ExperimentError
from dashboard.experiments.estimate_request import EstimateRequest
from dashboard.experiments.requests import Side
from dashboard.experiments.toggles import Params, toggle_params
from dashboard.models import Case, Configuration, Pool, Project
from dashboard.models.projects import case_name
from dashboard.repositories import FULL_HASH, CommitFacts, Mirror, RepositoryError

CASE = re.compile(r"(?P<benchmark>[^\[\]\s]+)\s*(?:\[(?P<key>[^\[\]]*)\])?")
# A person's browser waits for the answer; a repository that takes longer is fetched by its triggers.
PAGE_SECONDS = 20.0
# A sentence lists so many cases.
MOST_LISTED = 12
MISSING_HEAD = "it is missing: give another commit, or of the same one another case."


@dataclass(frozen=True)
class WantedCase:
    """A case, as the manifest of a commit has it, or with other parameters."""

    benchmark: Benchmark
    params: Params

    def __str__(self) -> str:
        return case_name(self.benchmark.name, case_key(self.params))


@dataclass(frozen=True)
class FoundSides:
    """Both sides as the repository has them, before they are rows."""

    base: tuple[CommitFacts, WantedCase]
    head: tuple[CommitFacts, WantedCase]
    quick: bool
    pool: str


def find_sides(project: Project, request: EstimateRequest, fetch_seconds: float | None = None) -> FoundSides:
    """Read the repository, fetched anew within some seconds; writes nothing. Raises ExperimentError."""
    mirror = project.mirror
    base, head = find_commits(project, request, fetch_seconds)
    benchmarks = read_benchmarks(project, mirror, base, head)
    names_head = any(text.strip() for text in (request.head, request.head_case, request.toggle))
    if not names_head and not request.case.strip():
        # Before a case is asked for, which wouldn't be enough.
        raise ExperimentError("head", MISSING_HEAD)
    # What is asked about is the newer code; the older one has to be able to do the same.
    case = find_case(benchmarks[head.hash], request.case, head, "case")
    if not names_head:
        raise ExperimentError("head", MISSING_HEAD)
    base_case = find_same_case(benchmarks[base.hash], case, base)
    quick, pool = usual_measurement(project, case, request)
    head_case = case
    if request.head_case.strip():
        head_case = find_case(benchmarks[head.hash], request.head_case, head, "head_case")
    if request.toggle.strip():
        if head.hash != base.hash:
            raise ExperimentError("toggle", "it compares two cases at one commit, and there are two commits.")
        params = toggle_params(mirror, head, head_case.benchmark, head_case.params, request.toggle)
        head_case = WantedCase(head_case.benchmark, params)
        refuse_overridden(case, head_case, quick)
    if len(case_key(head_case.params)) > runs.LONGEST_KEY:
        raise ExperimentError("toggle", f"its parameters have more than {runs.LONGEST_KEY} characters.")
    return FoundSides((base, base_case), (head, head_case), quick, pool)


def find_commits(
    project: Project, request: EstimateRequest, fetch_seconds: float | None
) -> tuple[CommitFacts, CommitFacts]:
    """The commits of base and head, as the repository knows them now."""
    mirror = project.mirror
    revisions = {"base": request.base.strip(), "head": request.head.strip() or request.base.strip()}
    if not revisions["base"]:
        raise ExperimentError("base", "it is missing: give a commit's hash, a branch or a tag.")
    if revisions["head"] in WORDS:
        raise ExperimentError("head", f"it is missing: {revisions['head']} is the baseline of a commit.")
    try:
        # A full hash stays what it is: where it is there, nobody has to wait for the repository's host.
        if not all(FULL_HASH.fullmatch(name) and mirror.has_commit(name) for name in revisions.values()):
            mirror.fetch(fetch_seconds, fetch_seconds)
    except RepositoryError as error:
        raise ExperimentError("project", str(error)) from error
    word = revisions.pop("base") if revisions["base"] in WORDS else ""
    hashes = [resolve_field(mirror, field, revision) for field, revision in revisions.items()]
    if word:
        hashes.insert(0, find_baseline_commit(project, word, hashes[0]))
    base, head = repositories.read_commits(mirror, hashes)
    return base, head


def resolve_field(mirror: Mirror, field: str, revision: str) -> str:
    try:
        return repositories.resolve_revision(mirror, revision)
    except RepositoryError as error:
        raise ExperimentError(field, str(error)) from error


def read_benchmarks(
    project: Project, mirror: Mirror, base: CommitFacts, head: CommitFacts
) -> dict[str, Mapping[str, Benchmark]]:
    """By commit what its manifest says."""
    commits = [base] if base.hash == head.hash else [base, head]
    benchmarks: dict[str, Mapping[str, Benchmark]] = {}
    for facts, manifest in runs.read_commit_manifests(project, mirror, commits):
        if isinstance(manifest, ManifestError):
            raise ExperimentError("head" if facts.hash == head.hash else "base", f"{manifest}")
        benchmarks[facts.hash] = manifest.benchmarks
    return benchmarks


def find_case(
    benchmarks: Mapping[str, Benchmark], written: str, commit: CommitFacts, field: str
) -> WantedCase:
    """The one case of a manifest that is meant; a part of its parameters is enough to name it."""
    cases = [
        WantedCase(benchmark, dict(case.params))
        for benchmark in benchmarks.values()
        for case in benchmark.cases
    ]
    where, meant = f"the manifest of {commit.hash[:10]}", cases
    if written.strip():
        match = CASE.fullmatch(written.strip())
        if match is None:
            raise ExperimentError(field, f"{written!r} isn't a case: write NAME or NAME[PARAMETER=VALUE].")
        named = [case for case in cases if case.benchmark.name == match["benchmark"]]
        settings_ = spelled_settings(match["key"] or "")
        agreeing = [case for case in named if settings_ <= spelled_settings(case_key(case.params))]
        exact = [case for case in agreeing if settings_ == spelled_settings(case_key(case.params))]
        # `snake` alone may be any case of it.
        meant = exact if exact and match["key"] is not None else agreeing
        if not meant:
            raise ExperimentError(
                field, f"{where} has no {written.strip()}, it has {list_cases(named or cases)}."
            )
    if len(meant) > 1:
        raise ExperimentError(field, f"{where} has several, choose one: {list_cases(meant)}.")
    return meant[0]


def find_same_case(
    benchmarks: Mapping[str, Benchmark], wanted: WantedCase, commit: CommitFacts
) -> WantedCase:
    """The case with the very same parameters in another commit's manifest."""
    named = benchmarks.get(wanted.benchmark.name)
    cases = [WantedCase(named, dict(case.params)) for case in named.cases] if named else []
    for case in cases:
        if case_key(case.params) == case_key(wanted.params):
            return case
    listed = list_cases(cases) if cases else ", ".join(benchmarks)
    raise ExperimentError(
        "case",
        f"the manifest of {commit.hash[:10]} has no {wanted}, it has {listed}: choose a case that both have.",
    )


def spelled_settings(key: str) -> set[str]:
    return {part.strip() for part in key.split(",")} - {""}


def list_cases(cases: list[WantedCase]) -> str:
    names = [str(case) for case in cases[:MOST_LISTED]]
    more = f" and {len(cases) - MOST_LISTED} more" if len(cases) > MOST_LISTED else ""
    return f"{', '.join(names)}{more}"


def usual_measurement(project: Project, case: WantedCase, request: EstimateRequest) -> tuple[bool, str]:
    """(quick, pool): as is written, else as the case was measured last, standard runs before quick ones."""
    measured = Configuration.objects.filter(
        case__project=project, case__benchmark=case.benchmark.name, case__key=case_key(case.params)
    )
    pool = request.pool.strip()
    if pool:
        if not Pool.objects.filter(name=pool).exists():
            raise ExperimentError("pool", f"there is no pool {pool!r}.")
        measured = measured.filter(pool__name=pool)
    if request.quick is not None:
        measured = measured.filter(quick=request.quick)
    newest = measured.select_related("pool").order_by("quick", "-version", "-pk").first()
    quick = newest.quick if newest else bool(request.quick)
    return quick, newest.pool.name if newest else pool or settings.PACELINE_POOL


def refuse_overridden(base: WantedCase, head: WantedCase, quick: bool) -> None:
    """Refuse a parameter that quick windows set themselves: both sides would be the same."""
    names = {name for name, value in head.params.items() if base.params.get(name) != value}
    overridden = sorted(names & set(head.benchmark.quick.params or {})) if quick else []
    if overridden:
        raise ExperimentError(
            "toggle", f"quick windows set {overridden[0]} themselves: ask for standard windows."
        )


def create_sides(project: Project, found: FoundSides) -> tuple[Side, Side]:
    """Their rows, made where they are new."""
    facts_of_both = {facts.hash: facts for facts, _ in (found.base, found.head)}
    commits = runs.get_or_create_commits(project, facts_of_both.values())
    pool = runs.pool_named(found.pool)
    sides = []
    for facts, wanted in (found.base, found.head):
        case, _ = Case.objects.get_or_create(
            project=project,
            benchmark=wanted.benchmark.name,
            key=case_key(wanted.params),
            defaults={"params": dict(wanted.params)},
        )
        version = wanted.benchmark.version
        configurations = runs.get_or_create_configurations([(case, version)], pool, found.quick)
        sides.append(Side(commits[facts.hash], configurations[case.pk, version]))
    return sides[0], sides[1]
