from collections.abc import Iterator
from typing import Any

import pytest
import torch
from paceline.counting.operations import OperationMode, Tally
from paceline.measured.marks import Marks, Node


@pytest.fixture
def marks() -> Marks[Node]:
    return Marks(Node)


@pytest.fixture
def mode(marks: Marks[Node]) -> Iterator[OperationMode]:
    with OperationMode(marks.main, lambda: True) as found:
        yield found


def test_operations_belong_to_their_phase(marks: Marks[Node], mode: OperationMode) -> None:
    with marks.phase("forward"):
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert dict(mode.tallies["forward"].operations) == {"aten::ones": 2, "aten::mm": 1}


def test_backward_operations_are_seen(marks: Marks[Node], mode: OperationMode) -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * 2).sum()
    with marks.phase("backward"):
        loss.backward()
    assert mode.tallies["backward"].operations["aten::mul"] == 1


def test_every_conversion_to_a_number_is_a_scalar_read(mode: OperationMode) -> None:
    one = torch.ones(1)
    for read in (one.item, lambda: float(one), lambda: int(one), lambda: bool(one)):
        read()
    assert mode.tallies[""].operations["aten::_local_scalar_dense"] == 4


# The meta device stands for any device that isn't the host: it dispatches the same operations.
def test_a_copy_to_a_device_counts_with_its_bytes(mode: OperationMode) -> None:
    host = torch.ones(10)
    host.to("meta")
    host.to(torch.float64)
    torch.empty(10, device="meta").copy_(host, non_blocking=True)
    tally = mode.tallies[""]
    assert (tally.copies, tally.copied_bytes, tally.synchronisations) == (2, 80, 1)


def test_results_of_unknown_size_wait_for_the_device(mode: OperationMode) -> None:
    torch.ones(3).nonzero()
    assert mode.tallies[""].synchronisations == 0
    mode._count(torch.ops.aten.nonzero.default, [torch.ones(3, device="meta")], {}, None)
    assert mode.tallies[""].synchronisations == 1


def test_an_explicit_wait_counts(mode: OperationMode, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    mode.count_synchronize()
    torch.cuda.synchronize("cuda:0")
    assert waited == ["cuda:0"]
    assert mode.tallies[""].synchronisations == 1


def test_nothing_is_counted_outside_the_window(marks: Marks[Node]) -> None:
    with OperationMode(marks.main, lambda: False) as mode:
        torch.ones(2)
    assert mode.tallies == {}
    assert Tally().copies == 0
