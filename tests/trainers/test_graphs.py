"""Updates as CUDA graphs, without a device: what a graph records and replays is done on the CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.trainers.conftest import ROOT, import_script, parse_arguments

CPU = torch.device("cpu")
ADAM = torch.optim.Adam
FOLDERS = ["snake_dqn", "snake_vectorized"]


class Recording(TorchDispatchMode):
    """Like a CUDA graph: keeps operations with their tensors, and does the same to them again."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.overwritten: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.replays = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            self.overwritten += [(tensor, tensor.clone()) for tensor in given]
        result = func(*args, **kwargs)
        self.operations.append((func, args, kwargs, result))
        return result

    def take_back(self) -> None:
        """A capture does nothing on the device: undo what it did here."""
        with torch.inference_mode():
            for tensor, before in reversed(self.overwritten):
                tensor.copy_(before)

    @torch.inference_mode()
    def replay(self) -> None:
        self.replays += 1
        for func, args, kwargs, result in self.operations:
            for old, new in zip(tree_leaves(result), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(old, torch.Tensor) and old is not new:
                    old.copy_(new)


class Stream:
    def wait_stream(self, other: Stream) -> None:
        """Nothing runs beside anything here."""


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """All graphs that were made."""
    made: list[Recording] = []

    def new() -> Recording:
        made.append(Recording())
        return made[-1]

    @contextmanager
    def capture(graph: Recording, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        with graph:
            yield
        graph.take_back()

    def adam(parameters: Any, lr: float, **_: Any) -> torch.optim.Adam:
        # torch refuses a capturable one on the CPU; in one operation it waits for no value either.
        return ADAM(parameters, lr=lr, fused=True)

    monkeypatch.setattr(torch.optim, "Adam", adam)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", new)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    return made


def random_batches(features: int, number: int) -> list[Any]:
    chance = np.random.default_rng(1)
    return [
        (
            chance.random((16, features), dtype=np.float32),
            chance.integers(3, size=16),
            chance.random(16, dtype=np.float32),
            chance.random((16, features), dtype=np.float32),
            (chance.random(16) < 0.3).astype(np.float32),
        )
        for _ in range(number)
    ]


def learned_parameters(name: str, graphed: bool) -> list[torch.Tensor]:
    """The parameters after eight updates."""
    train = import_script(ROOT / "trainers" / name, "train")
    arguments = ["--device", "cpu", "--batch-size", "16"]
    torch.manual_seed(1)
    if name == "snake_dqn":
        toggles = ["--variant", "beyond", "--no-written-backward", "--no-numpy-acting"]
        args = dataclasses.replace(parse_arguments(train, [*arguments, *toggles]), graphs=graphed)
        agent = train.Agent(args, CPU)
        for batch in random_batches(400, 8):
            agent.learn(agent.batch(batch))
    else:
        args = dataclasses.replace(parse_arguments(train, arguments), graphs=graphed)
        agent = train.Agent(args, 11, CPU)
        for batch in random_batches(11, 8):
            agent.learn(batch)
    return [parameter.detach() for parameter in agent.network.parameters()]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_replayed_update_learns_what_an_update_learns(name: str, graphs: list[Recording]) -> None:
    plain, replayed = learned_parameters(name, graphed=False), learned_parameters(name, graphed=True)
    assert all(torch.equal(parameter, other) for parameter, other in zip(plain, replayed, strict=True))
    assert [graph.replays for graph in graphs] == [5], "three updates run before the capture"


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("device", ["cpu", "auto"])
@pytest.mark.parametrize("toggle", ["graphs", "pinned"])
def test_what_needs_a_device_is_refused_on_a_cpu(
    name: str, toggle: str, device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    train = import_script(ROOT / "trainers" / name, "train")
    with pytest.raises(SystemExit) as raised:
        parse_arguments(train, [f"--{toggle}", "--device", device])
    assert raised.value.code == 2
    said = f"train.py: --{toggle} works on CUDA only, and this run is on the CPU\n"
    assert capsys.readouterr().err == said
    assert not getattr(parse_arguments(train, ["--variant", "beyond", "--device", device]), toggle)


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.usefixtures("gpu")
def test_with_a_device_beyond_replays_its_updates(name: str) -> None:
    args = parse_arguments(import_script(ROOT / "trainers" / name, "train"), ["--variant", "beyond"])
    assert (args.graphs, args.bf16, args.pinned) == (True, True, True)
