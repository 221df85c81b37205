"""The parts that run what others wrote: ranks over nccl or gloo, Lightning, Transformers' Trainer."""

from __future__ import annotations

import importlib.util

from ..document import Document
from ..reports.report_ranks import describe_slowest_rank
from .findings import Finding, LeftOutError, compare_with
from .workbench import Workbench

RANKS = 2
# What each must show of itself, without a mark: the names that the harness gives them.
PHASES = ("forward", "backward", "optimizer")


def check_ranks(bench: Workbench) -> list[Finding]:
    """Two ranks that sum a tensor once a step, on a device each where there are two."""
    return rank_findings(bench.measure("joined_ranks", 100, warmup_steps=20, processes=RANKS))


def rank_findings(measured: Document) -> list[Finding]:
    ranks = measured.ranks
    if ranks is None:
        return [Finding("ranks", "none", str(RANKS), False)]
    sums = [row["count"] for rank in ranks.rows for row in rank.collectives if row["kind"] == "all_reduce"]
    backend = (measured.environment.get("settings") or {}).get("backend", "unknown")
    return [
        Finding("backend", "gloo, there are no two devices" if backend == "gloo" else backend),
        compare_with("ranks", len(ranks.rows), RANKS, 0),
        compare_with("sums a step of all ranks", sum(sums), RANKS, 0.01),
        Finding("who is waited for", describe_slowest_rank(ranks)[:200]),
    ]


def check_lightning(bench: Workbench) -> list[Finding]:
    """A network that Lightning trains, unmodified."""
    need_package("lightning")
    return framework_findings(bench.measure("lightning_fit", 100, warmup_steps=20, auto=True), bench)


def check_transformers(bench: Workbench) -> list[Finding]:
    """A language model that Transformers' Trainer trains, unmodified."""
    for package in ("transformers", "accelerate"):
        need_package(package)
    return framework_findings(bench.measure("transformers_fit", 100, warmup_steps=20, auto=True), bench)


def need_package(name: str) -> None:
    """Raise LeftOutError where a package isn't installed."""
    if importlib.util.find_spec(name) is None:
        raise LeftOutError(f"{name} isn't installed")


def framework_findings(measured: Document, bench: Workbench) -> list[Finding]:
    """Which phases were seen, what ended a step, and where it was computed."""
    seen = {part for row in measured.phases for part in row.path.split("/")}
    missing = [name for name in PHASES if name not in seen]
    path, wanted = measured.environment["path"], "cuda" if bench.has_cuda else "cpu"
    step = measured.step or {}
    return [
        Finding("phases", ", ".join(sorted(seen & set(PHASES))), ", ".join(PHASES), not missing),
        Finding("a step ends with", f"{step.get('kind')} of {step.get('owner')}"),
        Finding("computed on", path, wanted, path == wanted),
    ]
