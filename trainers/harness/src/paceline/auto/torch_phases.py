"""Phases of PyTorch: forward, backward, optimizer, zero_grad, data loading, compilation."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import compilation, copies, imports, pace
from .wrapping import Function, every_class, outermost, stepping

FORWARD = "forward"
BACKWARD = "backward"
OPTIMIZER = "optimizer"
ZERO_GRAD = "zero_grad"
DATA_LOADING = "data_loading"


def patch(torch: Any) -> None:
    """Time PyTorch's parts, once it is imported."""
    is_traced = getattr(torch.compiler, "is_dynamo_compiling", torch.jit.is_scripting)
    _patch_modules(torch, is_traced)
    _patch_backward(torch, is_traced)
    _patch_optimizers(torch, is_traced)
    _patch_loaders(torch, is_traced)
    copies.patch(torch, is_traced)
    imports.watch({"torch._dynamo.utils": _unhide_modules, "torch._dynamo.callback": compilation.patch})


def _patch_modules(torch: Any, is_traced: Any) -> None:
    module = torch.nn.Module
    # Wrapping costs less than global hooks, which send every nested module through the slow path.
    module.__call__ = outermost(FORWARD, module.__call__, is_traced)
    module.zero_grad = outermost(ZERO_GRAD, module.zero_grad, is_traced)


def _unhide_modules(utils: ModuleType) -> None:
    """Let the compiler know our call of a module as the original one: it has a shorter way for that."""
    utils.unpatched_nn_module_call = sys.modules["torch"].nn.Module.__call__  # type: ignore[attr-defined]


def _patch_backward(torch: Any, is_traced: Any) -> None:
    for owner, name in (
        (torch.Tensor, "backward"),
        (torch.autograd, "backward"),
        (torch.autograd, "grad"),
    ):
        setattr(owner, name, outermost(BACKWARD, getattr(owner, name), is_traced))


def _patch_optimizers(torch: Any, is_traced: Any) -> None:
    def step(original: Function) -> Function:
        return stepping(OPTIMIZER, pace.OPTIMIZER, original, is_traced)

    def zero_grad(original: Function) -> Function:
        return outermost(ZERO_GRAD, original, is_traced)

    every_class(torch.optim.Optimizer, "step", step)
    every_class(torch.optim.Optimizer, "zero_grad", zero_grad)


def _patch_loaders(torch: Any, is_traced: Any) -> None:
    every_class(torch.utils.data.DataLoader, "__iter__", lambda f: outermost(DATA_LOADING, f, is_traced))
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    every_class(iterator, "__next__", lambda f: outermost(DATA_LOADING, f, is_traced))
