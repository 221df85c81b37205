from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
from paceline.counting import hooks
from paceline.counting.operations import OperationMode, OperationSwitch, ThreadTallies
from paceline.counting.tally import Tally
from paceline.measured.mark_recorder import MarkRecorder
from paceline.measured.phase_nodes import PhaseNode


@pytest.fixture
def marks() -> MarkRecorder[PhaseNode]:
    return MarkRecorder(PhaseNode)


@pytest.fixture
def tallies(marks: MarkRecorder[PhaseNode]) -> Iterator[ThreadTallies]:
    found, switch = ThreadTallies(marks.main), OperationSwitch()
    switch.on = True
    with hooks.install_hooks(found.current_tally), OperationMode(found, switch):
        yield found


def operation_counts(tally: Tally) -> dict[str, float]:
    return {name: number for name, (number, _) in tally.operations.items()}


def test_operations_belong_to_their_phase(marks: MarkRecorder[PhaseNode], tallies: ThreadTallies) -> None:
    with marks.phase("forward"):
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert operation_counts(tallies.by_phase["forward"]) == {"aten::ones": 2, "aten::mm": 1}
    assert all(0 < seconds < 1 for _, seconds in tallies.by_phase["forward"].operations.values())


def test_backward_operations_are_seen(marks: MarkRecorder[PhaseNode], tallies: ThreadTallies) -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * 2).sum()
    with marks.phase("backward"):
        loss.backward()
    assert operation_counts(tallies.by_phase["backward"])["aten::mul"] == 1


def test_inference_mode_hides_nothing(marks: MarkRecorder[PhaseNode], tallies: ThreadTallies) -> None:
    def work() -> None:
        layer = torch.nn.Linear(3, 4)
        with torch.no_grad() if marks.main.node.path == "plain" else torch.inference_mode():
            layer(torch.ones(2, 3)).reshape(8).to(torch.float64).sum().item()

    for name in ("plain", "inference"):
        with marks.phase(name):
            work()
    assert operation_counts(tallies.by_phase["inference"]) == operation_counts(tallies.by_phase["plain"])
    assert tallies.by_phase["inference"].scalar_reads == 1


@pytest.mark.parametrize("grad", [torch.enable_grad, torch.inference_mode])
def test_every_conversion_to_a_number_is_a_scalar_read(tallies: ThreadTallies, grad: Any) -> None:
    with grad():
        tensor = torch.ones(1)
        for convert in (bool, float, int, complex):
            convert(tensor)
        tensor.item(), tensor.tolist()
        assert 1.0 in tensor
    assert tallies.current_tally().scalar_reads == 7


# The meta device stands for any device that isn't the host: it dispatches the same operations.
@pytest.mark.parametrize("grad", [torch.enable_grad, torch.inference_mode])
def test_a_copy_to_a_device_counts_with_its_bytes(tallies: ThreadTallies, grad: Any) -> None:
    with grad():
        host = torch.ones(10)
        host[:5].to("meta")
        host.to(torch.float64).cpu()
        torch.empty(10, device="meta").copy_(host, non_blocking=True)
        torch._foreach_copy_([torch.empty(1, device="meta")] * 2, [host[:1]] * 2)
    tally = tallies.current_tally()
    assert (tally.copies, tally.copied_bytes, tally.synchronisations) == (4, 68, 3)


def test_results_of_unknown_size_wait_for_the_device(tallies: ThreadTallies, monkeypatch: Any) -> None:
    monkeypatch.setattr("torch.fx.experimental._config.meta_nonzero_assume_all_nonzero", True)
    device = torch.ones(3, device="meta")
    torch.ones(3).nonzero()
    assert tallies.current_tally().synchronisations == 0
    device.nonzero()
    assert device[device > 0].shape
    device[device > 0] = 1.0
    device[torch.zeros(1, dtype=torch.int64, device="meta")] = 1.0
    assert tallies.current_tally().synchronisations == 2


def test_explicit_waits_count(tallies: ThreadTallies, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(torch.cuda.Event, "synchronize", waited.append)
    before = torch.cuda.Event.synchronize
    with hooks.install_hooks(tallies.current_tally):
        torch.cuda.Event.synchronize("event")  # type: ignore[arg-type]
    assert waited == ["event"]
    assert tallies.current_tally().synchronisations == 1
    assert torch.cuda.Event.synchronize is before


def test_new_storages_count_and_views_do_not(tallies: ThreadTallies) -> None:
    tensor = torch.ones(4)
    tensor.view(2, 2).t().add_(1)
    torch.from_numpy(numpy.ones(3))
    assert (tallies.current_tally().tensors, tallies.current_tally().allocated_bytes) == (1, 16)
    torch.tensor([1.0, 2.0])
    tensor.reshape(2, 2).t().reshape(4)
    torch.empty(0)
    assert (tallies.current_tally().tensors, tallies.current_tally().allocated_bytes) == (3, 40)


def test_steps_of_any_optimizer_count(tallies: ThreadTallies) -> None:
    weight = torch.ones(1, requires_grad=True)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        weight.grad = torch.ones(1)
        kind([weight], lr=0.1).step()
    assert tallies.current_tally().optimizer_steps == 2


def test_nothing_is_counted_outside_the_window(marks: MarkRecorder[PhaseNode]) -> None:
    found = ThreadTallies(marks.main)
    with OperationMode(found, OperationSwitch()):
        torch.ones(2)
    assert found.by_phase == {}
