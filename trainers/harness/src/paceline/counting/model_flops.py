"""Floating-point operations of what a model computes, by PyTorch's own formulas. Imported only beside torch.

Matrix products, convolutions and attention: what is left is memory traffic. What runs as compiled code isn't
dispatched one by one, so that its operations can't be counted; what has no formula is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import flop_counter

Formula = Callable[..., int]

UNCOUNTED_LIMIT = 20
# Heavy ones of PyTorch's own without a formula.
_HEAVY = frozenset(
    {
        *("aten::_cudnn_rnn", "aten::_cudnn_rnn_backward"),
        *("aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"),
        *("aten::_grouped_mm", "aten::_int_mm", "aten::_weight_int4pack_mm", "aten::_weight_int8pack_mm"),
    }
)
# Namespaces whose operations are of this list or light.
_OWN = (
    "aten",
    "prim",
    "prims",
    "profiler",
    "c10d",
    "_c10d_functional",
    "_c10d_functional_autograd",
    "inductor",
)
_CONVOLUTIONS = ("aten::convolution", "aten::cudnn_convolution", "aten::_convolution", "aten::miopen")
_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def find_formula(name: str, packet: Any) -> Formula | None:
    """Return the formula of an operation: takes its arguments and `out_val`, returns a number."""
    # PyTorch has none for the attention that it computes on a processor.
    if name == "aten::_scaled_dot_product_flash_attention_for_cpu":
        return _count_attention
    if name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward":
        return _count_attention_backward
    found: Formula | None = flop_counter.flop_registry.get(packet)
    return found


def is_uncounted(name: str) -> bool:
    """Whether an operation without a formula may be heavy: somebody's own, or one of the known ones."""
    return name in _HEAVY or name.partition("::")[0] not in _OWN


def count_flops(
    name: str, formula: Formula, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> tuple[str, int] | None:
    """Return the type that is computed with and the number of operations; None where that isn't known."""
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    # The formulas take each element for one that is multiplied.
    if not tensors or any(tensor.layout in _SPARSE for tensor in tensors):
        return None
    try:
        return _type_of(name, tensors[0]), int(formula(*args, **kwargs, out_val=result))
    except (AssertionError, ValueError, TypeError, IndexError, RuntimeError):
        # The formula doesn't know arguments of this form.
        return None


def runs_compiled_code() -> bool:
    """Whether PyTorch's compiler has compiled a function of this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo is not None and dynamo.counters["frames"]["ok"])


def _type_of(name: str, tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype.startswith("float8"):
        return "float8"
    if dtype == "float32" and tensor.device.type == "cuda" and _uses_tf32(name):
        return "tf32"
    return dtype


def _uses_tf32(name: str) -> bool:
    is_convolution = name.startswith(_CONVOLUTIONS)
    # The former came with PyTorch 2.9.
    conv = getattr(torch.backends.cudnn, "conv", None)
    backend = conv if is_convolution else torch.backends.cuda.matmul
    precision = getattr(backend, "fp32_precision", None)
    if precision is not None:
        return bool(precision == "tf32")
    return bool(torch.backends.cudnn.allow_tf32 if is_convolution else torch.backends.cuda.matmul.allow_tf32)


def _count_attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(flop_counter.sdpa_flop_count(query.shape, key.shape, value.shape))


def _count_attention_backward(grad: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(flop_counter.sdpa_backward_flop_count(grad.shape, query.shape, key.shape, value.shape))
