"""Which modules of PyTorch are a part of a model: those with weights. A loss or a transform has none."""

from __future__ import annotations

from typing import Any


def has_weights(module: Any) -> bool:
    """Whether it or a module within it has any; methods that tell so may be the program's own."""
    within, seen = [module], set()
    for current in within:
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if any(weight is not None for weight in (getattr(current, "_parameters", None) or {}).values()):
            return True
        within += (getattr(current, "_modules", None) or {}).values()
    return False
