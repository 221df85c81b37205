"""Copies between host and device, and reads of values: timed as phases, and otherwise torch's own methods."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from paceline.auto import copies, wrapping
from paceline.measured.timing import TimingRecorder

from tests.harness.auto.conftest import phase_counts


@pytest.fixture
def patched(recorder: TimingRecorder) -> Iterator[TimingRecorder]:
    before = {name: getattr(torch.Tensor, name) for name in (*copies.READS, "cpu", "cuda", "to", "copy_")}
    makers = {name: getattr(torch, name) for name in copies.MAKERS}
    copies.patch_tensor(torch, wrapping.is_never_traced)
    yield recorder
    for name, method in before.items():
        setattr(torch.Tensor, name, method)
    for name, maker in makers.items():
        setattr(torch, name, maker)


def test_the_host_alone_copies_nothing(patched: TimingRecorder) -> None:
    numbers = torch.tensor([1.0, 2.0]).to(torch.float64).cpu()
    assert numbers.sum().item() == float(numbers.sum()) == 3
    assert (numbers.tolist(), numbers.numpy().shape) == ([1, 2], (2,))
    assert phase_counts(patched) == {}


def test_copies_to_a_device(patched: TimingRecorder) -> None:
    # The meta device holds no data, yet is another device than the host.
    host = torch.ones(3)
    for target in ("meta", torch.device("meta"), torch.ones(1, device="meta")):
        assert host.to(target).device.type == "meta"
    host.to(device="meta"), torch.tensor([1.0], device="meta"), torch.as_tensor(host, device="meta")
    torch.ones(3, device="meta").copy_(host)
    assert phase_counts(patched) == {"host_to_device": 7}


def test_tensors_are_made_on_the_default_device(patched: TimingRecorder) -> None:
    with torch.device("meta"):
        made = [torch.tensor([1.0]), torch.as_tensor([1.0]), torch.ones(1)]
    assert {tensor.device.type for tensor in made} == {"meta"}
    assert phase_counts(patched) == {"host_to_device": 2}


@pytest.mark.usefixtures("patched")
def test_a_mode_is_told_of_functions_by_what_torch_holds() -> None:
    seen: list[object] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.tensor([1.0])
    assert seen == [torch.tensor]


@pytest.mark.usefixtures("patched")
def test_a_subclass_of_the_scripts_is_told_of_its_own_calls_alone() -> None:
    seen: list[str] = []

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    numbers = torch.ones(2).as_subclass(Told)
    numbers.to(torch.float64)
    torch.ones(2).copy_(numbers)
    numbers.tolist()
    assert seen == ["to", "copy_", "tolist"]


@pytest.mark.usefixtures("patched")
def test_weights_that_a_lazy_module_has_not_made_yet_may_move() -> None:
    layer = torch.nn.LazyLinear(2).to("meta")
    assert layer.weight.device.type == "meta"


@pytest.mark.usefixtures("patched")
@pytest.mark.parametrize("name", ["tensor", "as_tensor", "Tensor.cpu", "Tensor.tolist", "Tensor.numpy"])
def test_functions_of_torch_are_pickled_by_their_names(name: str) -> None:
    pickled = pickle.dumps(operator.attrgetter(name)(torch))
    assert all(word.encode() in pickled for word in ("torch", *name.split(".")))


@pytest.mark.usefixtures("patched")
def test_the_compiler_takes_methods_for_torchs_own() -> None:
    timed = torch.Tensor.to
    rules: Any = SimpleNamespace(get_tensor_method=lambda: frozenset({len}))
    copies._allow_in_graphs(rules)
    assert {len, timed} <= rules.get_tensor_method()
    # What torch has in Python is traced through, ours too.
    assert torch.Tensor.__array__ not in rules.get_tensor_method()
    # Versions differ.
    copies._allow_in_graphs(SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.usefixtures("patched")
def test_a_graph_calls_methods_by_their_names_in_the_class() -> None:
    graph = torch.fx.Graph()
    numbers = graph.placeholder("numbers")
    graph.output(graph.call_function(torch.Tensor.to, (numbers, torch.float64)))
    module = torch.fx.GraphModule({}, graph)
    assert "torch.Tensor.to(numbers, torch.float64)" in module.code
    assert module(torch.ones(2)).dtype == torch.float64


def test_reads_from_a_device(patched: TimingRecorder) -> None:
    device = torch.ones(3, device="meta")
    for read in (device.cpu, device[0].item, device.tolist, lambda: device.to("cpu")):
        with pytest.raises((NotImplementedError, RuntimeError)):
            read()
    assert phase_counts(patched) == {"device_to_host": 4}


@pytest.mark.usefixtures("patched")
def test_scripted_functions_still_compile() -> None:
    def make(number: float) -> torch.Tensor:
        return torch.tensor(number).to(torch.float64)

    assert torch.jit.script(make)(2.0).item() == 2
