"""Tensor operations by kind and phase, seen by a dispatch mode. Imported only where torch is imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..measured.phase_nodes import ThreadState
from ..phase_names import DATA_LOADING
from . import model_flops
from .tally import Tally
from .unused_gradients import ForwardPass

# What item() and the conversions to a Python number come down to.
SCALAR_READ = "aten::_local_scalar_dense"
COPYING_OPERATIONS = frozenset(
    {"aten::_to_copy", "aten::copy_", "aten::copy", "aten::_copy_from", "aten::_foreach_copy_"}
)
# The size of their result, or an error, lies on the device, so the host waits for it.
WAITING_OPERATIONS = frozenset(
    {
        "aten::nonzero",
        "aten::masked_select",
        "aten::_unique2",
        "aten::unique_dim",
        "aten::unique_consecutive",
        "aten::equal",
        "aten::bincount",
        "aten::repeat_interleave",
        "aten::_linalg_check_errors",
        SCALAR_READ,
    }
)
# A mask as an index is first turned into positions, whose number lies on the device.
INDEXING_OPERATIONS = frozenset({"aten::index", "aten::index_put_", "aten::index_put"})
MASKS = (torch.bool, torch.uint8)
# torch.tensor() and its like fill a tensor behind the dispatcher and then show it under this name.
LIFT = "aten::lift_fresh"
# Views whose schema doesn't say that they are one.
UNSAFE_VIEWS = frozenset({"aten::_unsafe_view"})


class ThreadTallies:
    """One thread's counts, by the path of its innermost open phase."""

    def __init__(self, state: ThreadState) -> None:
        self.state = state
        self.by_phase: defaultdict[str, Tally] = defaultdict(Tally)
        # The outermost call of a module that is running.
        self.forward_pass: ForwardPass | None = None
        # Such calls so far, of modules with weights and of others.
        self.model_calls = 0
        self.weightless_calls = 0

    def current_tally(self) -> Tally:
        """Return the tally of the phase that is open now."""
        return self.by_phase[self.state.node.path]

    def makes_batch(self) -> bool:
        """Return whether the thread makes a DataLoader's batch: weightless modules are transforms there."""
        return any(node.name == DATA_LOADING for node in self.state.open_nodes())


class _OperationKind:
    """The properties of an operation that are known before it runs."""

    __slots__ = (
        "creates_results",
        "flop_formula",
        "func",
        "is_composite",
        "is_copy",
        "is_profiler_mark",
        "is_scalar_read",
        "is_torch_own",
        "is_uncounted",
        "lifts_tensor",
        "may_wait",
        "name",
    )

    def __init__(self, func: Any) -> None:
        schema = getattr(func, "_schema", None)
        # Kept, so that its identity stays its own.
        self.func = func
        self.name = str(schema.name if schema is not None else func.name())[:200]
        # The profiler's marks are operations without tensors.
        self.is_profiler_mark = self.name.startswith("profiler::")
        self.is_copy = self.name in COPYING_OPERATIONS
        self.may_wait = self.name in WAITING_OPERATIONS or self.name in INDEXING_OPERATIONS
        self.is_scalar_read = self.name == SCALAR_READ
        self.lifts_tensor = self.name == LIFT
        # The schemas of PyTorch's own operations are right about new results; others are compared with their
        # arguments.
        self.is_torch_own = self.name.startswith("aten::")
        returns = schema.returns if schema is not None else ()
        self.creates_results = self.name not in UNSAFE_VIEWS and any(
            returned.alias_info is None for returned in returns
        )
        self.flop_formula = model_flops.find_formula(self.name, getattr(func, "_overloadpacket", func))
        self.is_uncounted = self.flop_formula is None and model_flops.is_uncounted(self.name)
        self.is_composite = schema is not None and torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        )


class OperationSwitch:
    """Turns all threads' modes on and off at once."""

    def __init__(self) -> None:
        self.on = False


class OperationMode(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Counts what one thread dispatches, and what autograd's threads for a device do on its behalf."""

    supports_higher_order_operators = True

    def __init__(self, tallies: ThreadTallies, switch: OperationSwitch) -> None:
        super().__init__()
        self._tallies = tallies
        self._switch = switch
        self._kinds: dict[int, _OperationKind] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Spare the program the import of torch's compiler, and every operation a wrapper."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let compiled code run as it does without a mode; otherwise it would run uncompiled."""
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation and count it."""
        keywords = kwargs or {}
        kind = self._kinds.get(id(func))
        if kind is None:
            kind = self._kinds[id(func)] = _OperationKind(func)
        if kind.is_profiler_mark or not self._switch.on:
            return func(*args, **keywords)
        if kind.is_composite and torch.is_inference_mode_enabled():
            # Inference mode hides what it is made of; taken apart it counts as it does elsewhere.
            with self:
                return func.decompose(*args, **keywords)
        tally = self._tallies.current_tally()
        if self._tallies.forward_pass is not None:
            self._tallies.forward_pass.add_operation(tally, args)
        started = perf_counter()
        result = func(*args, **keywords)
        row = tally.operations[kind.name]
        row[1] += perf_counter() - started
        row[0] += 1
        if kind.is_copy:
            _count_copies(tally, args, keywords, result)
        elif kind.may_wait:
            _count_wait(tally, kind, args)
        if kind.flop_formula is not None:
            _count_flops(tally, kind, args, keywords, result)
        elif kind.is_uncounted:
            tally.uncounted.add(kind.name)
        if kind.creates_results:
            _count_new_memory(tally, result, () if kind.is_torch_own else (*args, *keywords.values()))
        elif kind.lifts_tensor:
            _count_lifted_memory(tally, result)
        return result


def _count_flops(
    tally: Tally, kind: _OperationKind, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> None:
    assert kind.flop_formula is not None  # noqa: S101
    found = model_flops.count_flops(kind.name, kind.flop_formula, args, kwargs, result)
    if found is None:
        tally.uncounted.add(kind.name)
    else:
        tally.flops[found[0]] += found[1]


def _count_copies(tally: Tally, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
    asynchronous = bool(kwargs.get("non_blocking", False) or (len(args) > 2 and args[2] is True))
    tensors = [_tensors_in(argument) for argument in args]
    if len(tensors) > 1 and tensors[1]:
        pairs = zip(tensors[1], tensors[0], strict=False)
    else:
        pairs = zip(tensors[0], _tensors_in(result), strict=False)
    for source, target in pairs:
        _count_copy(tally, source, target, asynchronous=asynchronous)


def _count_copy(tally: Tally, source: Any, target: Any, *, asynchronous: bool) -> None:
    if (source.device.type == "cpu") == (target.device.type == "cpu"):
        return
    tally.copies += 1
    tally.copied_bytes += target.nbytes
    tally.synchronisations += not asynchronous


def _count_wait(tally: Tally, kind: _OperationKind, args: Sequence[Any]) -> None:
    if kind.is_scalar_read:
        tally.scalar_reads += 1
    if args and isinstance(args[0], torch.Tensor) and args[0].device.type != "cpu":
        tally.synchronisations += kind.name not in INDEXING_OPERATIONS or _waits_for_mask(args)


def _waits_for_mask(args: Sequence[Any]) -> bool:
    masked = any(index.dtype in MASKS for index in _tensors_in(args[1]))
    # One value behind a mask is filled in, without positions.
    return masked and not (len(args) > 2 and isinstance(args[2], torch.Tensor) and args[2].numel() == 1)


def _count_new_memory(tally: Tally, result: Any, arguments: Sequence[Any]) -> None:
    """Count the memory of the results that none of the arguments has."""
    argument_tensors = [tensor for value in arguments for tensor in _tensors_in(value)]
    storages = {storage._cdata for tensor in argument_tensors if (storage := _storage_of(tensor))}
    for tensor in _tensors_in(result):
        storage = _storage_of(tensor)
        if storage is not None and storage._cdata not in storages and (size := storage.nbytes()):
            storages.add(storage._cdata)
            tally.tensors += 1
            tally.allocated_bytes += size


def _count_lifted_memory(tally: Tally, tensor: Any) -> None:
    storage = _storage_of(tensor)
    # Memory that belongs to somebody else, such as an array of NumPy, can't be resized.
    if storage is not None and storage.resizable() and (size := storage.nbytes()):
        tally.tensors += 1
        tally.allocated_bytes += size
        if tensor.device.type != "cpu":
            # It was filled on the host and copied behind the dispatcher.
            tally.copies += 1
            tally.copied_bytes += tensor.nbytes
            tally.synchronisations += 1


def _tensors_in(value: Any) -> Sequence[Any]:
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, list | tuple):
        return [member for member in value if isinstance(member, torch.Tensor)]
    return ()


def _storage_of(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        # A sparse tensor has none of its own.
        return None


# All that runs inside the mode.
CODES = tuple(
    value.__code__
    for value in (
        *vars(OperationMode).values(),
        *vars(ThreadTallies).values(),
        *vars(Tally).values(),
        *vars(_OperationKind).values(),
        *globals().values(),
    )
    if hasattr(value, "__code__") and value.__module__ == __name__
)
