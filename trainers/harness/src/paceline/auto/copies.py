"""Phases of tensor copies between the host and an accelerator, reads of single values included."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FunctionType, ModuleType
from typing import Any

import paceline

from . import import_hooks
from .passthrough import call_original
from .wrapping import Function

TO_DEVICE = "host_to_device"
TO_HOST = "device_to_host"
READS = ("item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__index__", "__array__")
MAKERS = ("tensor", "as_tensor")

IsTraced = Callable[[], bool]
# The phase of a call with these arguments; None where nothing crosses between host and device.
Direction = Callable[[tuple[Any, ...], dict[str, Any]], str | None]

_inside: set[int] = set()
# One for all wrappers that a function makes.
_wrapper_codes: set[CodeType] = set()
# Torch's own, bound once: they are asked for at each call.
_tensor: Any = None
_is_mode_enabled: Any = None
_without_functions: Any = None
# Of methods that torch has in C, which a compiled graph may hold.
_timed_methods: set[Function] = set()


def patch_copies(torch: Any, is_traced: IsTraced) -> None:
    """Time copies, in a PyTorch that was built for an accelerator; elsewhere there are none."""
    mps = getattr(torch.backends, "mps", None)
    if torch.version.cuda or getattr(torch.version, "hip", None) or (mps is not None and mps.is_built()):
        patch_tensor(torch, is_traced)


def patch_tensor(torch: Any, is_traced: IsTraced) -> None:
    """Time copies, whatever PyTorch was built for."""
    global _tensor, _is_mode_enabled, _without_functions
    _tensor = tensor = torch.Tensor
    _is_mode_enabled = torch._C._is_torch_function_mode_enabled
    _without_functions = torch._C.DisableTorchFunction
    directions: dict[str, Direction] = {
        **dict.fromkeys((*READS, "cpu"), _read_direction),
        "cuda": lambda args, _kwargs: TO_DEVICE if _is_on_host(args[0]) else None,
        "to": functools.partial(_move_direction, torch),
        "copy_": _copy_direction,
    }
    allowed = _methods_without_data(torch)
    for name, direction in directions.items():
        original = getattr(tensor, name)
        timed = _name_as(f"Tensor.{name}", _time_copy(original, direction, is_traced))
        setattr(tensor, name, timed)
        if not isinstance(original, FunctionType):
            _timed_methods.add(timed)
        if original in allowed:
            allowed.append(timed)
    constructors = _device_constructors()
    for name in MAKERS:
        maker = _name_as(name, _time_creation(torch, getattr(torch, name), is_traced))
        setattr(torch, name, maker)
        constructors.add(maker)
        # The script compiler knows built-in functions by their identity.
        torch.jit._builtins._register_builtin(maker, f"aten::{name}")
    import_hooks.call_after_import(
        {
            "torch._dynamo.eval_frame": _keep_uncompiled,
            "torch._dynamo.trace_rules": _allow_in_graphs,
            "torch.fx.node": _name_in_graphs,
        }
    )


def _allow_in_graphs(trace_rules: ModuleType) -> None:
    """Let the compiler take our methods for torch's own where they are called as functions.

    So it does where the code says `torch.Tensor.to(x)`, or a subclass `super().to()`.
    """
    original = getattr(trace_rules, "get_tensor_method", None)
    if original is not None:
        patched = functools.lru_cache(None)(lambda: original() | _timed_methods)
        trace_rules.get_tensor_method = patched  # type: ignore[attr-defined]


def _name_in_graphs(node: ModuleType) -> None:
    """Let the code of a graph call our methods by their names in the class, as it calls torch's."""
    original = getattr(node, "_find_module_of_method", None)
    if original is None:
        return

    @functools.wraps(original)
    def find_module(method: Any) -> Any:
        return "torch.Tensor" if method in _timed_methods else original(method)

    node._find_module_of_method = find_module  # type: ignore[attr-defined]


def _keep_uncompiled(eval_frame: ModuleType) -> None:
    """Let the compiler leave our wrappers alone where it begins anew inside one, behind a graph break."""
    set_strategy = getattr(eval_frame, "set_code_exec_strategy", None)
    strategy, action = (getattr(eval_frame, f"Frame{name}", None) for name in ("ExecStrategy", "Action"))
    skip = getattr(eval_frame, "skip_code", None)
    for code in _wrapper_codes:
        if set_strategy is not None and strategy is not None and action is not None:
            # And what they call.
            set_strategy(code, strategy(action.SKIP, action.SKIP))
        elif skip is not None:
            skip(code)


def _note_code(wrapper: Any) -> Any:
    """Return a wrapper whose code the compiler is to leave alone."""
    _wrapper_codes.add(wrapper.__code__)
    return wrapper


def _name_as(name: str, timed: Function) -> Function:
    """Name a wrapper as what it stands for: a script may pickle a function of torch by its name."""
    timed.__module__, timed.__qualname__ = "torch", name
    return timed


def _methods_without_data(torch: Any) -> list[Any]:
    """Return the methods that torch allows on a lazy module's parameters; it knows them by their identity."""
    mixin = getattr(torch.nn.parameter, "UninitializedTensorMixin", None)
    return getattr(mixin, "_allowed_methods", [])


def _device_constructors() -> set[Any]:
    """Return the functions that make tensors on the default device, which torch collects at the first use.

    Asked before any of them is replaced: by then it holds what these call.
    """
    # A part of `torch.set_default_device` that some versions import only there.
    default_device = importlib.import_module("torch.utils._device")
    constructors: set[Any] = getattr(default_device, "_device_constructors", set)()
    return constructors


def _time_creation(torch: Any, original: Function, is_traced: IsTraced) -> Any:
    timed = _time_copy(original, functools.partial(_creation_direction, torch), is_traced)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not is_traced() and _is_mode_enabled():
            # A mode compares with what it finds in torch, and built-in functions tell it their own name.
            return torch.overrides.handle_torch_function(wrapped, (), *args, **kwargs)
        return timed(*args, **kwargs)

    return _note_code(wrapped)


def _time_copy(original: Function, direction: Direction, is_traced: IsTraced) -> Any:
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return original(*args, **kwargs)
        phase = direction(args, kwargs)
        if phase is None or get_ident() in _inside:
            return call_original(original, args, kwargs)
        ident = get_ident()
        _inside.add(ident)
        try:
            with paceline.phase(phase):
                return call_original(original, args, kwargs)
        finally:
            _inside.discard(ident)

    return _note_code(wrapped)


def _read_direction(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str | None:
    return None if _is_on_host(args[0]) else TO_HOST


def _move_direction(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Tell where Tensor.to moves; its first argument is a device, a type, or another tensor."""
    target = kwargs.get("device", kwargs.get("other", args[1] if len(args) > 1 else None))
    return _copy_phase(_is_on_host(args[0]), _is_host(torch, target))


def _copy_direction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    source = args[1] if len(args) > 1 else kwargs.get("src")
    return _copy_phase(_is_on_host(source), _is_on_host(args[0]))


def _creation_direction(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Tell where a new tensor's data go; without a device, data that are a tensor stay where they are."""
    data = args[0] if args else kwargs.get("data")
    return _copy_phase(_is_on_host(data), _is_host(torch, kwargs.get("device")))


def _copy_phase(from_host: bool, to_host: bool | None) -> str | None:
    if to_host is None or from_host == to_host:
        return None
    return TO_DEVICE if from_host else TO_HOST


def _is_on_host(value: Any) -> bool:
    """Tell whether a tensor lies on the host, as all else does, without asking subclasses of the script."""
    if type(value) is _tensor and not _is_mode_enabled():
        return bool(value.is_cpu)
    if not isinstance(value, _tensor):
        return True
    with _without_functions():
        return bool(value.is_cpu)


def _is_host(torch: Any, target: Any) -> bool | None:
    """Tell whether a device, its name or number, or a tensor is the host's; None for anything else."""
    if isinstance(target, torch.Tensor):
        return _is_on_host(target)
    if isinstance(target, str):
        return target.startswith("cpu")
    if isinstance(target, torch.device):
        return bool(target.type == "cpu")
    return False if isinstance(target, int) and not isinstance(target, bool) else None
