"""Which rank, or which worker of a DataLoader, made a step longer."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.alerts.kinds.payload import regression_fields
from dashboard.models import Project, Regression
from dashboard.regressions import judge_run
from dashboard.regressions.explanation import slow_processes
from dashboard.sentences.measurements.processes import describe_slow_process
from dashboard.sentences.regressions.regressions import regression_title
from dashboard.training_processes.ranks import summarize_ranks
from tests.dashboard import factories
from tests.dashboard.training_processes import documents

COUNT, AT = 9, 5


def judge_history(
    project: Project, before: dict[str, Any], after: dict[str, Any], steps: tuple[float, float], **phases: Any
) -> Regression:
    """A history whose documents hold other members from a commit on, and whose step takes longer there."""
    case = factories.create_case(project)
    for commit in factories.create_commits(project, COUNT):
        late = commit.position >= AT
        own = {"phase_self_time": {path: values[late] for path, values in phases.items()}}
        run = factories.store_measured_run(
            commit,
            case,
            {"step_time": steps[late] * factories.run_noise(commit.position)},
            phases=own,
            document=after if late else before,
        )
        judge_run(run.pk)
    return Regression.objects.get()


def test_the_slow_rank_is_named_with_its_phase_where_the_others_wait(project: Project) -> None:
    """The measured rank sees nothing but a longer wait: its own phases would name `all_reduce`."""
    regression = judge_history(
        project,
        {"ranks": documents.four_ranks()},
        {"ranks": documents.four_ranks(0.024)},
        (0.015, 0.035),
        **{"augment": (0.004, 0.004), "backward": (0.010, 0.010), "backward/all_reduce": (0.001, 0.021)},
    )
    (found,) = regression.slow_processes
    assert (found["code"], found["rank"], found["phase"]) == ("rank", 2, "augment")
    assert found["phase_longer"] == pytest.approx(0.020)
    assert regression.phase == "augment"
    sentence = "rank 2 comes later: its augment takes 20 ms longer; the others wait in all_reduce"
    assert sentence in regression_title(regression)
    assert regression_fields(regression)["slow_processes"] == regression.slow_processes


@pytest.mark.parametrize(("also", "rank"), [(None, 2), (3, None), (2, 2)])
def test_a_run_that_cant_tell_contradicts_nobody(also: int | None, rank: int | None) -> None:
    documents_after = [{"ranks": documents.four_ranks(0.024), "loaders": []} for _ in range(2)]
    documents_after[1]["ranks"]["slowest"] = also
    pooled = slow_processes.pool_ranks(documents_after)
    assert pooled is not None
    assert pooled.slowest == rank


def test_where_all_ranks_do_more_none_is_named() -> None:
    old = summarize_ranks({"ranks": documents.four_ranks()})
    rows = [documents.rank_row(rank, {"augment": 0.024, "backward": 0.010}) for rank in range(4)]
    new = summarize_ranks({"ranks": documents.ranks_member(rows, slowest=2)})
    assert slow_processes.rank_of_loss(old, new, 0.020) == []


def test_a_rank_that_was_slow_before_is_not_blamed_for_more_communication() -> None:
    old = summarize_ranks({"ranks": documents.four_ranks(0.024)})
    assert slow_processes.rank_of_loss(old, old, 0.020) == []


def test_another_number_of_ranks_is_not_compared() -> None:
    fewer = documents.ranks_member([documents.rank_row(rank, {"backward": 0.01}) for rank in range(2)])
    old = summarize_ranks({"ranks": fewer})
    new = summarize_ranks({"ranks": documents.four_ranks(0.024)})
    assert slow_processes.rank_of_loss(old, new, 0.020) == []


def test_the_slow_worker_is_named(project: Project) -> None:
    regression = judge_history(
        project,
        {"loaders": [documents.loader_row(0.001, (0.003, 0.003))]},
        {"loaders": [documents.loader_row(0.012, (0.003, 0.030), slowest=1)]},
        (0.010, 0.021),
        data=(0.001, 0.012),
        learn=(0.009, 0.009),
    )
    assert regression.phase == "data"
    assert (
        "; worker 1 of the DataLoader of Tiles takes 30 ms for a batch instead of 3 ms; the loop waits 11 ms "
        "longer a step"
    ) in regression_title(regression)


def test_a_loop_that_waits_no_longer_starves_for_nothing() -> None:
    before = slow_processes.pool_loaders([{"loaders": [documents.loader_row(0.010, (0.003,))]}])
    after = slow_processes.pool_loaders([{"loaders": [documents.loader_row(0.011, (0.030,))]}])
    assert slow_processes.loader_of_loss(before, after, 0.020) == []


def test_a_single_rank_that_holds_more_memory_is_named() -> None:
    old, new = (documents.four_ranks() for _ in range(2))
    new["rows"][3]["peak_memory"] += 1e8
    (found,) = slow_processes.rank_of_memory(
        summarize_ranks({"ranks": old}), summarize_ranks({"ranks": new}), 1e8
    )
    assert describe_slow_process(found) == "of 4 ranks only rank 3 holds more, by 100 MB"


def test_a_regression_of_one_process_names_none(project: Project) -> None:
    regression = judge_history(project, {}, {}, (0.010, 0.020), learn=(0.010, 0.020))
    assert regression.slow_processes == []
    assert regression.phase == "learn"
