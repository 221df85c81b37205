"""The arguments of snake_dqn, its variants, and what the machine leaves of them.

There are three variants. `baseline` builds every batch from nested lists and trains at every step;
`optimized` is what the engineers of such a loop made of it; `beyond` is what can be done on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from benchmark_support import machine
from benchmark_support.arguments import MOST_SEED, option, parse_arguments, refuse
from benchmark_support.checkpoints import check_place
from benchmark_support.machine import AdaptedArguments


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=MOST_SEED)
    total_steps: int = option(12_000, "decisions of the snake, in training", least=1, most=10**9)

    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)
    tensors: bool | None = option(None, "toggle: build batches through numpy arrays, not nested lists")
    memory: bool | None = option(None, "toggle: views kept as arrays, in-place ReLU, gradients set to None")
    train_every: int | None = option(None, "toggle: steps per update of the network", least=1, most=10**9)
    device: str | None = option(
        None, "toggle: cpu, cuda, or auto for cuda where there is one", choices=("cpu", "cuda", "auto")
    )
    inference: bool | None = option(None, "toggle: act and look ahead in torch.inference_mode")
    batch_size: int | None = option(None, "toggle: transitions in an update", least=1)
    cudnn_benchmark: bool | None = option(None, "toggle: let cuDNN try its algorithms out")
    tf32: bool | None = option(None, "toggle: matrix products in TF32, on Ampere and later")
    compile: bool = option(False, "toggle: torch.compile the network; refused where that can't work")

    ring: bool = option(None, "toggle: transitions kept in arrays, not one by one in a deque")
    numpy_draw: bool = option(None, "toggle: samples drawn by numpy, which may draw one twice")
    fused: bool = option(None, "toggle: Adam in one fused operation")
    written_backward: bool = option(
        None, "toggle: forward and backward written out in numpy; on the CPU only"
    )
    numpy_acting: bool = option(None, "toggle: act without torch; on the CPU only")
    bf16: bool = option(None, "toggle: the network in bfloat16; on CUDA only")
    pinned: bool = option(None, "toggle: copies to the device from pinned memory; on CUDA only")
    graphs: bool = option(None, "toggle: each update replayed as one CUDA graph; on CUDA only")

    quantized_acting: bool = option(
        False, "toggle: act with int8 weights, quantized anew after each update; on the CPU only"
    )

    hidden: int = option(128, "units in each of the two hidden layers", least=1, most=10_000)
    learning_rate: float = option(3e-4, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one step later", most=1)
    capacity: int = option(5_000, "transitions that the memory holds", least=1, most=10**6)
    exploration_steps: int = option(
        500, "steps until random moves are down to their last share", least=1, most=10**9
    )
    exploration: float = option(0.05, "last share of random moves", most=1)
    score_episodes: int = option(20, "games played after training to measure the score", least=1, most=10_000)
    save: str = option("", "file for all that the training needs to go on, written at its end")
    save_every: int = option(1_000, "episodes from one save to the next, where there is a file", least=1)
    resume: str = option("", "file of a training to go on with")


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "tensors": False,
        "memory": False,
        "train_every": 1,
        "device": "cpu",
        "inference": False,
        "batch_size": 32,
        "cudnn_benchmark": False,
        "tf32": False,
    },
    "optimized": {
        "tensors": True,
        "memory": True,
        "train_every": 4,
        "device": "auto",
        "inference": True,
        "batch_size": 64,
        "cudnn_benchmark": True,
        "tf32": True,
    },
}
# What neither the loop nor its engineers' report has: off, save in the variant beyond.
BEYOND = ("ring", "numpy_draw", "fused", "written_backward", "numpy_acting", "bf16", "pinned", "graphs")
# As many samples a step as optimized learns from, in half as many updates of twice the size.
VARIANTS["beyond"] = (
    VARIANTS["optimized"] | {"train_every": 8, "batch_size": 128} | dict.fromkeys(BEYOND, True)
)


def with_int8(found: machine.Machine) -> str:
    """Quantized layers are torch's own operations, with a library of their own for each processor."""
    has_engine = set(torch.backends.quantized.supported_engines) - {"none"}
    return machine.on_cpu(found) or ("" if has_engine else "needs a torch with quantized layers")


# Where a toggle can work at all, and where it pays.
WORKS = {
    "written_backward": machine.on_cpu,
    "numpy_acting": machine.on_cpu,
    "quantized_acting": with_int8,
    "pinned": machine.on_cuda,
    "graphs": machine.on_cuda,
}
PAYS = {"bf16": machine.with_bfloat16_on_cuda, "tf32": machine.with_tf32, "cudnn_benchmark": machine.on_cuda}


def read_arguments(arguments: Sequence[str]) -> AdaptedArguments[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    variants = {name: dict.fromkeys(BEYOND, False) | values for name, values in VARIANTS.items()}
    given = parse_arguments(Args, variants, arguments, __doc__)
    check_place(given.args.save)
    if given.args.batch_size > given.args.capacity:
        refuse(f"--batch-size is {given.args.batch_size}, more than the --capacity of {given.args.capacity}")
    fitted = machine.fit_to_machine(given, machine.find_machine(str(given.args.device)), WORKS, PAYS)
    if fitted.args.written_backward and not fitted.args.ring:
        refuse("--written-backward needs --ring, whose batches are arrays")
    if fitted.args.quantized_acting and fitted.args.numpy_acting:
        refuse("--quantized-acting is through torch; give --no-numpy-acting too")
    if fitted.args.numpy_acting and not fitted.args.memory:
        refuse("--numpy-acting needs --memory, which keeps views as arrays")
    return fitted
