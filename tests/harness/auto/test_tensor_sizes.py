"""How many bytes a rank gives into a collective."""

from __future__ import annotations

import array
from typing import Any

import pytest
import torch
from paceline.auto.tensor_sizes import describe_tensors


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (torch.zeros(3, 4), 48),
        (torch.zeros(3, device="meta", dtype=torch.float64), 24),
        # Of every second element only those that are sent.
        (torch.zeros(10)[::2], 20),
        # What a dense tensor of its shape would have: it refuses to tell its own.
        (torch.eye(4).to_sparse(), 64),
        ([torch.zeros(2), (torch.eye(2).to_sparse(), torch.zeros(1))], 28),
    ],
    ids=["dense", "meta", "a view", "sparse", "a list"],
)
def test_tensors_have_the_bytes_of_their_elements(given: Any, size: int) -> None:
    assert describe_tensors(given) == (size, False)


@pytest.mark.parametrize(
    "given",
    [None, array.array("d", [1.0]), memoryview(b"ab"), "ab", {"a": 1}, []],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_tensor_has_no_bytes(given: object) -> None:
    assert describe_tensors(given) == (0, False)
