"""How large the tensors are that a collective takes, and whether they lie on a device."""

from __future__ import annotations

from typing import Any


def describe_tensors(value: Any) -> tuple[int, bool]:
    """Return the bytes of a tensor or of all in a list, and whether they lie on a device; else (0, False)."""
    try:
        return value.nbytes, value.is_cuda
    except (AttributeError, RuntimeError):  # sparse tensors refuse the first
        return _describe_others(value)


def _describe_others(value: Any) -> tuple[int, bool]:
    if isinstance(value, list | tuple):
        described = [describe_tensors(part) for part in value]
        return sum(size for size, _ in described), any(on_device for _, on_device in described)
    if hasattr(value, "element_size"):
        return value.numel() * value.element_size(), value.is_cuda
    return 0, False
