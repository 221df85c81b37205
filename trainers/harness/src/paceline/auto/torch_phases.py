"""Phases of PyTorch: from forward and backward to what its libraries around a step do."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import paceline

from ..measured.module_weights import has_weights
from ..phase_names import DATA_LOADING
from ..step_kinds import BATCH
from . import (
    backward_passes,
    collectives,
    compilation,
    copies,
    gradient_reduction,
    graphs,
    import_hooks,
    loaders,
    optimizers,
)
from .wrapping import (
    Function,
    calls_of_phase,
    is_never_traced,
    wrap_in_every_class,
    wrap_outermost,
    wrap_step,
)

FORWARD = "forward"
CLIP_GRADIENTS = "clip_gradients"
DISTRIBUTION = "distribution"
LOGGING = "logging"
GENERATE = "generate"

CLIPPERS = ("clip_grad_norm_", "clip_grad_value_")
# Making a distribution is timed as well, since it checks the parameters.
DISTRIBUTION_METHODS = ("__init__", "sample", "rsample", "log_prob", "entropy", "cdf", "icdf")
WRITER_METHODS = (
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "add_text",
    "flush",
)
# What Lightning calls before a backward pass that lies within the forward call.
LIGHTNING_OVERRIDES = ("lightning.pytorch.overrides.distributed", "pytorch_lightning.overrides.distributed")
_loading = calls_of_phase(DATA_LOADING)


def patch_torch(torch: Any) -> None:
    """Time PyTorch's parts, once it is imported."""
    is_traced = getattr(torch.compiler, "is_dynamo_compiling", torch.jit.is_scripting)
    # What tells of a compiler that begins to trace is as old as that function.
    paceline.may_be_traced = is_traced is torch.jit.is_scripting
    _patch_modules(torch, is_traced)
    _patch_backward(torch, is_traced)
    optimizers.patch_optimizers(torch, is_traced)
    _patch_clipping(torch, is_traced)
    _patch_loaders(torch, is_traced)
    _patch_distributions(torch, is_traced)
    copies.patch_copies(torch, is_traced)
    graphs.patch_graphs(torch)
    import_hooks.call_after_import(
        {
            "torch.distributed": lambda module: collectives.patch_distributed(module, is_traced),
            "torch.nn.parallel.distributed": lambda module: gradient_reduction.patch_parallel_model(
                module.DistributedDataParallel, torch, is_traced
            ),
            **dict.fromkeys(
                LIGHTNING_OVERRIDES,
                lambda module: gradient_reduction.patch_manual_passes(module, torch, is_traced),
            ),
        }
    )
    import_hooks.call_after_import(
        {
            "torch._dynamo.utils": _unhide_modules,
            "torch._dynamo.callback": compilation.patch_compilation,
            "torch._dynamo.trace_rules": compilation.trace_through_wrappers,
            "torch.utils.tensorboard.writer": _patch_writer,
            "transformers.generation.utils": _patch_generation,
        }
    )


def _patch_modules(torch: Any, is_traced: Any) -> None:
    module = torch.nn.Module
    # Wrapping costs less than global hooks, which send every nested module through the slow path.
    module.__call__ = wrap_outermost(FORWARD, module.__call__, is_traced, passes_through=_is_transform)
    module.zero_grad = wrap_outermost(optimizers.ZERO_GRAD, module.zero_grad, is_traced)


def _is_transform(ident: int, arguments: tuple[Any, ...]) -> bool:
    """Whether a module without weights is called where a batch is made: it belongs to its dataset."""
    return _loading.is_inside(ident) and not has_weights(arguments[0])


def _unhide_modules(utils: ModuleType) -> None:
    """Tell the compiler that our call of a module is the original one, for which it has a shorter way."""
    utils.unpatched_nn_module_call = sys.modules["torch"].nn.Module.__call__  # type: ignore[attr-defined]


def _patch_backward(torch: Any, is_traced: Any) -> None:
    for owner, name in (
        (torch.Tensor, "backward"),
        (torch.autograd, "backward"),
        (torch.autograd, "grad"),
    ):
        setattr(owner, name, backward_passes.wrap_backward(getattr(owner, name), is_traced))


def _patch_clipping(torch: Any, is_traced: Any) -> None:
    for name in CLIPPERS:
        clip = wrap_outermost(CLIP_GRADIENTS, getattr(torch.nn.utils, name), is_traced)
        setattr(torch.nn.utils, name, clip)
        setattr(torch.nn.utils.clip_grad, name, clip)


def _patch_loaders(torch: Any, is_traced: Any) -> None:
    def data_loading(original: Function) -> Function:
        return wrap_outermost(DATA_LOADING, original, is_traced)

    wrap_in_every_class(torch.utils.data.DataLoader, "__iter__", data_loading)

    def next_batch(original: Function) -> Function:
        return wrap_step(DATA_LOADING, BATCH, original, is_traced, _dataset_of_batches)

    wrap_in_every_class(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", next_batch)
    loaders.patch_loaders(torch.utils.data.dataloader, is_traced)


def _dataset_of_batches(batches: Any) -> object:
    """Iterators come and go with epochs; training and evaluation differ in what they read."""
    return batches._dataset


def _patch_distributions(torch: Any, is_traced: Any) -> None:
    def distribution(original: Function) -> Function:
        return wrap_outermost(DISTRIBUTION, original, is_traced)

    for method in DISTRIBUTION_METHODS:
        wrap_in_every_class(torch.distributions.Distribution, method, distribution)
    divergence = distribution(torch.distributions.kl_divergence)
    torch.distributions.kl_divergence = torch.distributions.kl.kl_divergence = divergence


def _patch_writer(tensorboard: Any) -> None:
    writer = tensorboard.SummaryWriter
    for name in WRITER_METHODS:
        setattr(writer, name, wrap_outermost(LOGGING, getattr(writer, name), is_never_traced))


def _patch_generation(generation: Any) -> None:
    mixin = generation.GenerationMixin
    mixin.generate = wrap_outermost(GENERATE, mixin.generate, is_never_traced)
