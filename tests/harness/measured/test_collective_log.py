"""What is kept of collectives: one record each, and only sums beyond the limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from paceline.auto import collectives, gradient_reduction
from paceline.measured import collective_log
from paceline.measured.collective_log import BATCH, BEHIND_BACKWARD, KINDS, CollectiveLog

ALL_REDUCE, BARRIER, SEND = (KINDS.index(kind) for kind in ("all_reduce", "barrier", "send"))


@pytest.fixture
def log() -> CollectiveLog:
    log = CollectiveLog()
    log.open_window()
    return log


def result_of(log: CollectiveLog) -> dict[str, Any]:
    result = log.result(steps=2)
    assert result is not None
    return result


def test_without_collectives_there_is_no_result(log: CollectiveLog) -> None:
    assert log.result(steps=2) is None


def test_kinds_are_summed_per_step(log: CollectiveLog) -> None:
    log.add(ALL_REDUCE, 100, True, 1.0, 3.0)
    log.add(ALL_REDUCE, 20, True, 4.0, 5.0)
    assert result_of(log)["kinds"] == [{"kind": "all_reduce", "count": 1.0, "bytes": 60.0, "seconds": 1.5}]


def test_the_order_of_arrival_is_that_of_all_ranks_collectives(log: CollectiveLog) -> None:
    log.add(ALL_REDUCE, 100, True, 1.0, 3.0)
    log.add(SEND, 100, False, 3.0, 4.0)
    log.add(BARRIER, 0, True, 4.0, 5.0)
    result = result_of(log)
    assert (result["order"], result["arrived"], result["left"]) == (
        ["all_reduce", "barrier"],
        [1.0, 4.0],
        [3.0, 5.0],
    )
    assert result["blocked_seconds"] == 3.0


def test_beyond_the_limit_only_sums_are_kept(log: CollectiveLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective_log, "LIMIT", 1)
    log.add(ALL_REDUCE, 100, True, 1.0, 3.0)
    log.add(ALL_REDUCE, 20, True, 4.0, 5.0)
    result = result_of(log)
    assert result["arrived"] == [1.0]
    assert (result["kinds"][0]["bytes"], result["blocked_seconds"]) == (60.0, 3.0)


def test_many_keep_their_order_beside_one_that_was_launched(
    log: CollectiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collective_log, "LIMIT", 2 * BATCH + 5)
    for moment in range(BATCH + 2):
        log.add(ALL_REDUCE, 10, True, moment, moment + 0.5)
    launched = log.launch(SEND, 7, True, BATCH + 2, BATCH + 2)
    for moment in range(BATCH + 3, 3 * BATCH):
        log.add(BARRIER, 0, True, moment, moment + 0.25)
    log.finish(launched, 3 * BATCH, 3 * BATCH + 1, had_ended=False)
    result = result_of(log)
    assert result["arrived"] == list(range(2 * BATCH + 5))
    assert result["order"] == ["all_reduce"] * (BATCH + 2) + ["send"] + ["barrier"] * (BATCH + 2)
    assert {row["kind"]: (2 * row["count"], 2 * row["bytes"]) for row in result["kinds"]} == {
        "all_reduce": (BATCH + 2, 10 * (BATCH + 2)),
        "barrier": (2 * BATCH - 3, 0),
        "send": (1, 7),
    }


def test_what_was_launched_is_blocked_only_at_its_end(log: CollectiveLog) -> None:
    launched = log.launch(ALL_REDUCE, 100, True, 1.0, 1.5)
    log.add(BARRIER, 0, True, 2.0, 3.0)
    log.finish(launched, 4.0, 6.0, had_ended=False)
    result = result_of(log)
    assert (result["order"], result["blocked"]) == (["all_reduce", "barrier"], [4.0, 2.0])
    assert result["kinds"][0]["seconds"] == pytest.approx((0.5 + 2.0) / 2)
    # Three of its five seconds it went on beside the rank; in a barrier nothing is sent.
    assert result["overlap"] == pytest.approx(3 / 5)


def test_a_reduction_in_the_backward_pass_is_not_taken_for_unhidden(log: CollectiveLog) -> None:
    log.add(ALL_REDUCE, 100, True, 1.0, 3.0, BEHIND_BACKWARD)
    log.overlap.add_overlapped(4.0, 1.0)
    assert result_of(log)["overlap"] == pytest.approx(1 / 4)


def make_distributed() -> Any:
    """torch.distributed with a collective that goes on beside its caller, and one that waits inside."""

    class Work:
        def wait(self) -> None:
            pass

        def is_completed(self) -> bool:
            return True

    return SimpleNamespace(
        is_available=lambda: True,
        all_reduce=lambda _tensor: Work(),
        barrier=lambda: Work().wait(),
        distributed_c10d=SimpleNamespace(),
        Work=Work,
        _broadcast_coalesced=lambda: None,
    )


def test_a_collective_that_nobody_waits_for_is_never_taken_for_a_later_one(
    log: CollectiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectives, "log", log)
    distributed = make_distributed()
    collectives.patch_distributed(distributed, lambda: False)
    for _ in range(20):
        # Its work is gone with this line, and the barrier's often lies where it lay.
        distributed.all_reduce(None)
        distributed.barrier()
    # Nothing was seen to go on beside the rank.
    assert result_of(log)["overlap"] is None
    distributed.all_reduce(None).wait()
    assert result_of(log)["overlap"] is not None


def test_in_a_captured_graph_no_collective_is_asked_whether_it_has_ended(
    log: CollectiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectives, "log", log)
    distributed = make_distributed()

    def end_capture(_work: object) -> bool:
        raise RuntimeError("operation not permitted on an event last recorded in a capturing stream")

    distributed.Work.is_completed = end_capture
    collectives.patch_distributed(distributed, lambda: False)
    monkeypatch.setattr(collectives, "is_captured", lambda: True)
    distributed.all_reduce(None).wait()
    assert [(row["kind"], row["count"]) for row in result_of(log)["kinds"]] == [("all_reduce", 0.5)]


def test_of_collectives_on_a_device_no_overlap_is_known(log: CollectiveLog) -> None:
    log.on_device = True
    log.finish(log.launch(ALL_REDUCE, 4, True, 1.0, 1.1), 2.0, 2.1, had_ended=False)
    # The host was through at once, whatever the device did.
    assert result_of(log)["overlap"] is None


class ParallelModel:
    """Stands in for DistributedDataParallel: one weight, and how often its passes are to be timed."""

    find_unused_parameters = True
    process_group = SimpleNamespace(size=lambda: 2)

    def __init__(self, *, on_device: bool) -> None:
        self.rates: list[int] = []
        self.weight = SimpleNamespace(requires_grad=True, nbytes=4, is_cuda=on_device)

    def parameters(self) -> list[object]:
        return [self.weight]

    def _set_ddp_runtime_logging_sample_rate(self, rate: int) -> None:
        self.rates.append(rate)


@pytest.mark.parametrize(("on_device", "rates"), [(False, [10]), (True, [])])
def test_no_forward_pass_waits_for_a_device_to_time_the_one_before(on_device: bool, rates: list[int]) -> None:
    engine = SimpleNamespace(queue_callback=print)
    torch: Any = SimpleNamespace(
        autograd=SimpleNamespace(Variable=SimpleNamespace(_execution_engine=engine)),
        distributed=SimpleNamespace(get_world_size=lambda: 2),
    )
    model = ParallelModel(on_device=on_device)
    assert gradient_reduction._watch_model(model, torch).hooks_outputs
    assert model.rates == rates
