"""What the machine can do, and which of a variant's toggles that leaves.

A variant switches a toggle on only where the hardware makes it pay: bfloat16 passes on a processor without
bfloat16 instructions took up to seventeen times as long. Whoever says a toggle gets it, wherever it can work.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import paceline
import torch
from paceline.measured.fingerprint import processor_features, processor_name

from .arguments import ArgsT, SpecifiedArguments, refuse

# Matrix units compute in fp16 from Volta on, in bfloat16 and TF32 from Ampere on.
VOLTA, AMPERE = (7, 0), (8, 0)

# Values of the variables that hold torch and oneDNN to instructions older than AVX-512.
TORCH_BEFORE_AVX512 = ("default", "avx2")
ONEDNN_BEFORE_AVX512 = ("sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2")


@dataclass(frozen=True)
class Machine:
    """Where a training runs: `device` is cpu or cuda, `name` the processor or the GPU.

    `features` are the processor's, as Linux names them; `capability` is the GPU's compute capability.
    """

    device: str
    name: str
    features: tuple[str, ...] = ()
    capability: tuple[int, int] = (0, 0)
    gpus: int = 0
    has_compiler: bool = False

    def __str__(self) -> str:
        if self.device == "cuda":
            return f"{self.name}, compute capability {'.'.join(map(str, self.capability))}"
        return f"{self.name} ({' '.join(self.features) or 'no AVX2'})"


def find_machine(device: str) -> Machine:
    """This machine; `device` is cpu, cuda, or auto for cuda where there is one, and cuda must be there."""
    has_cuda = device != "cpu" and torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        refuse("--device is cuda, but torch finds no CUDA device here")
    features = tuple(allowed_features(processor_features(), os.environ))
    if not has_cuda:
        return Machine("cpu", processor_name(), features)
    return Machine(
        "cuda",
        torch.cuda.get_device_name(),
        features,
        torch.cuda.get_device_capability(),
        torch.cuda.device_count(),
        has_triton(),
    )


def allowed_features(features: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """What of a processor's features torch and oneDNN may use, where variables hold them to older ones.

    Sources: torch's documentation of ATEN_CPU_CAPABILITY, oneDNN's of ONEDNN_MAX_CPU_ISA.
    """
    of_torch = variables.get("ATEN_CPU_CAPABILITY", "").lower()
    of_onednn = variables.get("ONEDNN_MAX_CPU_ISA", "").lower()
    if of_torch not in TORCH_BEFORE_AVX512 and of_onednn not in ONEDNN_BEFORE_AVX512:
        return list(features)
    return [name for name in features if not name.startswith(("avx512", "amx"))]


def has_triton() -> bool:
    """Whether torch.compile has its compiler for GPUs."""
    return importlib.util.find_spec("triton") is not None


Rule = Callable[[Machine], str]
"""Why a toggle stays off on a machine; empty where it may be on."""


def on_cuda(machine: Machine) -> str:
    return "" if machine.device == "cuda" else "works on CUDA only, and this run is on the CPU"


def on_cpu(machine: Machine) -> str:
    return "" if machine.device == "cpu" else "works on the CPU only, give --device cpu too"


def on_two_gpus(machine: Machine) -> str:
    return "" if machine.gpus >= 2 else "needs two CUDA devices, which torch doesn't find here"


def with_bfloat16(machine: Machine) -> str:
    """Mixed precision pays where multiplications of bfloat16 are instructions of their own."""
    if machine.device == "cuda":
        return "" if machine.capability >= AMPERE else "needs an Ampere or a later GPU"
    has_instructions = {"avx512_bf16", "amx_bf16", "bf16"}.intersection(machine.features)
    return "" if has_instructions else "needs a processor with bfloat16 instructions"


def with_float16(machine: Machine) -> str:
    """Half precision with a scaler of gradients, as matrix units have it from the first ones on."""
    if machine.device != "cuda":
        return "pays on CUDA only, and this run is on the CPU"
    return "" if machine.capability >= VOLTA else "needs a Volta or a later GPU"


def with_bfloat16_on_cuda(machine: Machine) -> str:
    """For small networks: on a processor the casts cost more than they save."""
    return on_cuda(machine) or with_bfloat16(machine)


def with_tf32(machine: Machine) -> str:
    return on_cuda(machine) or ("" if machine.capability >= AMPERE else "needs an Ampere or a later GPU")


def with_channels_last(machine: Machine) -> str:
    """Channels innermost is how matrix units read pictures, and how convolutions of float32 are fastest.

    Measured on `beyond` of mario_pipeline: 1.2 times the speed in float32, with AVX2 and with AVX-512 alike,
    but 0.85 to 0.95 in bfloat16 by AVX-512's instructions.
    """
    if machine.device == "cuda":
        return "" if machine.capability >= VOLTA else "needs a Volta or a later GPU"
    slower = not with_bfloat16(machine) and "amx_bf16" not in machine.features
    return "costs time in bfloat16 without matrix units" if slower else ""


def with_compiler(machine: Machine) -> str:
    """On a processor compiling takes longer than a short training saves by it."""
    if machine.device != "cuda":
        return "pays on CUDA only, and this run is on the CPU"
    if machine.capability < VOLTA:
        return "needs a Volta or a later GPU"
    return "" if machine.has_compiler else "needs the package triton"


@dataclass(frozen=True)
class AdaptedArguments(Generic[ArgsT]):
    """The arguments as the machine can do them, and for each decided toggle `on`, or why it is off."""

    args: ArgsT
    machine: Machine
    settings: Mapping[str, str]


def fit_to_machine(
    given: SpecifiedArguments[ArgsT], machine: Machine, works: Mapping[str, Rule], pays: Mapping[str, Rule]
) -> AdaptedArguments[ArgsT]:
    """Switch off what only the variant says and the machine is not made for.

    Toggles in `works` can't be on against their rule: whoever said one is refused, with status 2. Those in
    `pays` can, but no variant wants them there.
    """
    args, settings = replace(given.args, device=machine.device), {}  # type: ignore[type-var]
    for name, rule in {**works, **pays}.items():
        if not getattr(args, name):
            continue
        why = rule(machine)
        if why and name in works and name in given.explicit:
            refuse(f"--{name.replace('_', '-')} {why}")
        stays = not why or name in given.explicit
        args = replace(args, **{name: stays})  # type: ignore[type-var]
        settings[name] = "on" if stays else f"off: {why.partition(',')[0]}"
    return AdaptedArguments(args, machine, settings)


def prepare_torch(fitted: AdaptedArguments[Any], *details: str) -> torch.device:
    """Set torch up, print which path is taken, and report what was decided as settings of the run."""
    args, machine = fitted.args, fitted.machine
    threads = args.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    torch.manual_seed(args.seed)
    number = f"{threads} thread{'' if threads == 1 else 's'}"
    path = ", ".join([f"path: {machine.device}", number, f"variant {args.variant}", *details])
    print("; ".join([path, str(machine), *_decisions(fitted.settings)]))
    for name, value in fitted.settings.items():
        paceline.setting(name, value)
    return torch.device(machine.device)


def _decisions(settings: Mapping[str, str]) -> list[str]:
    """`bf16 on`, `graphs, pinned off: works on CUDA only`."""
    toggles: dict[str, list[str]] = {}
    for name, value in settings.items():
        toggles.setdefault(value, []).append(name)
    return [f"{', '.join(names)} {value}" for value, names in toggles.items()]
