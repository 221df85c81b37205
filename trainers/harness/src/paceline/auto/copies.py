"""Phases of tensor copies between the host and an accelerator, reads of single values included."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

import paceline

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


def patch_copies(torch: Any, is_traced: IsTraced) -> None:
    """Time copies, in a PyTorch that was built for an accelerator; elsewhere there are none."""
    mps = getattr(torch.backends, "mps", None)
    if torch.version.cuda or getattr(torch.version, "hip", None) or (mps is not None and mps.is_built()):
        patch_tensor(torch, is_traced)


def patch_tensor(torch: Any, is_traced: IsTraced) -> None:
    """Time copies, whatever PyTorch was built for."""
    tensor = torch.Tensor
    directions: dict[str, Direction] = {
        **dict.fromkeys((*READS, "cpu"), _read_direction),
        "cuda": lambda args, _kwargs: TO_DEVICE if args[0].is_cpu else None,
        "to": functools.partial(_move_direction, torch),
        "copy_": _copy_direction,
    }
    for name, direction in directions.items():
        setattr(tensor, name, _time_copy(getattr(tensor, name), direction, is_traced))
    for name in MAKERS:
        original = getattr(torch, name)
        setattr(torch, name, _time_copy(original, functools.partial(_creation_direction, torch), is_traced))
        # The script compiler knows built-in functions by their identity.
        torch.jit._builtins._register_builtin(getattr(torch, name), f"aten::{name}")


def _time_copy(original: Function, direction: Direction, is_traced: IsTraced) -> Function:
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

    return wrapped


def _read_direction(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str | None:
    return None if args[0].is_cpu else TO_HOST


def _move_direction(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Tell where Tensor.to moves; its first argument is a device, a type, or another tensor."""
    target = kwargs.get("device", kwargs.get("other", args[1] if len(args) > 1 else None))
    return _copy_phase(args[0].is_cpu, _is_host(torch, target))


def _copy_direction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    source = args[1] if len(args) > 1 else kwargs.get("src")
    return _copy_phase(bool(getattr(source, "is_cpu", True)), bool(args[0].is_cpu))


def _creation_direction(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Tell where a new tensor's data go; without a device, data that are a tensor stay where they are."""
    data = args[0] if args else kwargs.get("data")
    return _copy_phase(bool(getattr(data, "is_cpu", True)), _is_host(torch, kwargs.get("device")))


def _copy_phase(from_host: bool, to_host: bool | None) -> str | None:
    if to_host is None or from_host == to_host:
        return None
    return TO_DEVICE if from_host else TO_HOST


def _is_host(torch: Any, target: Any) -> bool | None:
    """Tell whether a device, its name or number, or a tensor is the host's; None for anything else."""
    if isinstance(target, torch.Tensor):
        return bool(target.is_cpu)
    if isinstance(target, str):
        return target.startswith("cpu")
    if isinstance(target, torch.device):
        return bool(target.type == "cpu")
    return False if isinstance(target, int) and not isinstance(target, bool) else None
