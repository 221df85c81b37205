"""How large the tensors are that a collective takes, and whether they lie on a device."""

from __future__ import annotations

from typing import Any

_SEVERAL = (list, tuple)


def bytes_of(value: Any) -> int:
    """Return the bytes of a tensor, or of all tensors in a list; 0 for anything else."""
    if isinstance(value, _SEVERAL):
        return sum(map(bytes_of, value))
    # Not `nbytes`, which sparse tensors refuse.
    return int(value.numel() * value.element_size()) if hasattr(value, "element_size") else 0


def is_on_device(value: Any) -> bool:
    """Return whether a tensor, or one in a list, lies on a device."""
    if isinstance(value, _SEVERAL):
        return any(map(is_on_device, value))
    return bool(getattr(value, "is_cuda", False))
