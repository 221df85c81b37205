"""Which runs of two sides may be compared: those of one configuration, and what a person asks for by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dashboard.comparisons.requests import ComparisonError, ComparisonRequest
from dashboard.comparisons.revisions import ComparisonSide
from dashboard.models import Configuration, Run

# The newest of one configuration at one commit; older ones are counted and left out.
MOST_POOLED = 10
MOST_LISTED = 8
WINDOWS = {"quick": True, "standard": False}

Obstacle = Literal["only base", "only head", "version", "pool", "windows"]
Runs = Mapping[int, list[Run]]


@dataclass(frozen=True, slots=True)
class PooledRuns:
    """The runs of one side that count, the newest first; where all are tainted, these.

    `left_out` are tainted; `older`: so many more than are pooled.
    """

    runs: tuple[Run, ...]
    left_out: tuple[Run, ...] = ()
    older: int = 0

    @property
    def configuration(self) -> Configuration:
        return self.runs[0].configuration

    @property
    def are_tainted(self) -> bool:
        return self.runs[0].tainted

    @property
    def machines(self) -> list[str]:
        return sorted({run.machine.name for run in self.runs if run.machine})


@dataclass(frozen=True, slots=True)
class CasePair:
    """What is compared: the runs of a configuration at both sides, or of two that were asked for."""

    base: PooledRuns
    head: PooledRuns

    @property
    def has_two_cases(self) -> bool:
        return self.base.configuration.case_id != self.head.configuration.case_id

    @property
    def has_two_pools(self) -> bool:
        return self.base.configuration.pool_id != self.head.configuration.pool_id

    @property
    def runs(self) -> tuple[Run, ...]:
        return (*self.base.runs, *self.head.runs)

    def as_fields(self) -> dict[str, str]:
        """The fields of an address that name this pair among the others."""
        configuration = self.base.configuration
        fields = {
            "case": str(configuration.case),
            "pool": configuration.pool.name,
            "windows": "quick" if configuration.quick else "standard",
        }
        return fields | ({"head_case": str(self.head.configuration.case)} if self.has_two_cases else {})


@dataclass(frozen=True, slots=True)
class Unpaired:
    """What was measured at one side alone, or otherwise at the other."""

    configuration: Configuration
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class Pairing:
    pairs: Sequence[CasePair]
    unpaired: Sequence[Unpaired]


def pair_runs(
    base: ComparisonSide, head: ComparisonSide, runs: Sequence[Run], request: ComparisonRequest
) -> Pairing:
    """Raises ComparisonError where both sides are the same, or two named runs can't be compared."""
    if base.run and head.run:
        return Pairing([_pair_named_runs(base.run, head.run)], [])
    if base.run is None and head.run is None and base.commit == head.commit and not request.head_case:
        raise ComparisonError(
            "head", "it is the same commit as the base: name another one, or another case as head_case."
        )
    of_base, of_head = (
        _runs_by_configuration(side, other, runs) for side, other in ((base, head), (head, base))
    )
    if request.head_case:
        return Pairing(_pair_two_cases(of_base, of_head, request), [])
    pairs = [CasePair(pool_runs(of_base[key]), pool_runs(of_head[key])) for key in of_base if key in of_head]
    if base.run or head.run:
        return Pairing(pairs, _find_unpaired(of_base, of_head) if not pairs else [])
    return Pairing(pairs, _find_unpaired(of_base, of_head))


def pool_runs(runs: Sequence[Run]) -> PooledRuns:
    clean = [run for run in runs if not run.tainted]
    kept = clean or list(runs)
    tainted = tuple(run for run in runs if run.tainted) if clean else ()
    return PooledRuns(tuple(kept[:MOST_POOLED]), tainted, max(0, len(kept) - MOST_POOLED))


def choose_pair(pairs: Sequence[CasePair], request: ComparisonRequest) -> CasePair | None:
    """The first that the request names; `pairs` stand in the order of what differs most."""
    named = [pair for pair in pairs if _is_named(pair, request)]
    if named or not pairs:
        return named[0] if named else None
    listed = list(dict.fromkeys(str(pair.base.configuration.case) for pair in pairs))
    wrong = "case" if request.case and request.case not in listed else "pool" if request.pool else "windows"
    if wrong == "case":
        more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
        known = f"{', '.join(listed[:MOST_LISTED])}{more}"
        raise ComparisonError("case", f"{request.case} isn't measured at both; these are: {known}.")
    raise ComparisonError(wrong, "what is compared isn't measured so at both sides.")


def _is_named(pair: CasePair, request: ComparisonRequest) -> bool:
    configuration = pair.base.configuration
    return (
        request.case in ("", str(configuration.case))
        and request.pool in ("", configuration.pool.name)
        and WINDOWS.get(request.windows, configuration.quick) == configuration.quick
    )


def _pair_named_runs(base: Run, head: Run) -> CasePair:
    """Two runs that a person names: of two pools or two cases too, which the answer tells."""
    if base == head:
        raise ComparisonError("head", "it is the same run as the base.")
    one_benchmark = base.case.benchmark == head.case.benchmark
    if one_benchmark and base.version != head.version:
        raise ComparisonError(
            "head",
            f"it measured version {head.version} of {head.case.benchmark}, the base version {base.version}.",
        )
    if base.quick != head.quick:
        named = ("quick", "standard") if head.quick else ("standard", "quick")
        raise ComparisonError("head", f"it has {named[0]} windows and the base {named[1]} ones.")
    return CasePair(pool_runs([base]), pool_runs([head]))


def _runs_by_configuration(side: ComparisonSide, other: ComparisonSide, runs: Iterable[Run]) -> Runs:
    found: dict[int, list[Run]] = {}
    known = [side.run] if side.run else [run for run in runs if run.commit_id == side.commit.pk]
    for run in known:
        if run != other.run:
            found.setdefault(run.configuration_id, []).append(run)
    return found


def _pair_two_cases(of_base: Runs, of_head: Runs, request: ComparisonRequest) -> list[CasePair]:
    """Runs of two cases in the same pool and the same windows."""
    names = {str(group[0].case) for group in of_head.values()}
    if request.head_case not in names:
        listed = ", ".join(sorted(names)[:MOST_LISTED]) or "nothing"
        raise ComparisonError(
            "head_case", f"{request.head_case} isn't measured at the head; there is {listed}."
        )
    pairs = [
        CasePair(pool_runs(first), pool_runs(second))
        for first in of_base.values()
        for second in of_head.values()
        if str(second[0].case) == request.head_case
        and str(first[0].case) == (request.case or str(first[0].case))
        and first[0].case != second[0].case
        and _may_be_compared(first[0].configuration, second[0].configuration)
    ]
    if not pairs:
        raise ComparisonError(
            "case",
            f"no case of the base is measured in the pool and windows of the head's {request.head_case}.",
        )
    return pairs


def _may_be_compared(base: Configuration, head: Configuration) -> bool:
    same_code = base.case.benchmark != head.case.benchmark or base.version == head.version
    return same_code and base.pool_id == head.pool_id and base.quick == head.quick


def _find_unpaired(of_base: Runs, of_head: Runs) -> list[Unpaired]:
    """What has no partner, with why; the cases in the order of their names."""
    found = []
    sides: tuple[tuple[Runs, Runs, Obstacle], ...] = (
        (of_base, of_head, "only base"),
        (of_head, of_base, "only head"),
    )
    for own, others, alone in sides:
        partners = [group[0].configuration for group in others.values()]
        for key, group in own.items():
            if key not in others:
                configuration = group[0].configuration
                found.append(Unpaired(configuration, _find_obstacle(configuration, partners) or alone))
    return sorted(found, key=lambda row: (str(row.configuration), row.obstacle))


def _find_obstacle(configuration: Configuration, partners: Iterable[Configuration]) -> Obstacle | None:
    """What sets it apart from the same case at the other side; None where that isn't measured there."""
    for partner in partners:
        if partner.case_id == configuration.case_id:
            if partner.version != configuration.version:
                return "version"
            return "pool" if partner.pool_id != configuration.pool_id else "windows"
    return None
