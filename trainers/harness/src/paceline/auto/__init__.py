"""Automatic phases: an unmodified script is timed from inside the measured process.

`install_automatic_phases` patches PyTorch and the environment libraries as the script imports them; nothing
is imported for the script's sake. The phases' names are fixed:

    forward         the outermost call of an nn.Module
    backward        Tensor.backward, torch.autograd.backward, torch.autograd.grad
    optimizer       step of any torch optimizer
    zero_grad       zero_grad of any optimizer or module
    clip_gradients  clip_grad_norm_ and clip_grad_value_
    data_loading    starting a DataLoader's iterator and waiting for its next item
    env_step        the outermost step of an environment or vector environment
    env_reset       the outermost reset of one
    generate        generation of tokens by transformers
    distribution    making, sampling and asking a torch.distributions.Distribution
    logging         writing to a torch.utils.tensorboard.SummaryWriter
    host_to_device  copies of tensors to an accelerator
    device_to_host  copies of tensors and reads of single values from one, the waiting included
    compile         torch.compile at work
    graph_replay    replaying a CUDA graph in which an optimizer's step was captured
    all_reduce ...  collectives and messages of torch.distributed, the waiting for other ranks included

They nest in each other and in phases marked by hand: `learn/forward`, `forward/compile`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from . import backward_passes, collectives, environments, graphs, import_hooks, step_finder, wrapping
from .step_finder import ScriptEnded, StepFinder, start_step_finder

__all__ = ["ScriptEnded", "StepFinder", "forget_calls", "install_automatic_phases", "start_step_finder"]


def install_automatic_phases(
    start_finder: Callable[[], StepFinder],
) -> StepFinder:
    """Patch what the script will import, and let its environment or its optimizer set the pace.

    Call it in the main thread, before the recorder is activated.
    """
    from . import torch_phases

    finder = start_finder()
    import_hooks.call_after_import({"torch": torch_phases.patch_torch, **environments.environment_patches()})
    if hasattr(os, "register_at_fork"):
        # A forked child, such as a worker of a vector environment, takes none of this process's steps.
        os.register_at_fork(after_in_child=step_finder.stop_step_finder)
    return finder


def forget_calls() -> None:
    """Forget in a forked process which calls its parent is in: they end there."""
    wrapping.forget_calls()
    backward_passes.forget_calls()
    graphs.forget_calls()
    collectives.forget_calls()
