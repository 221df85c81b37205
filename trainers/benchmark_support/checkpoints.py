"""Checkpoints: all that a training needs to go on as if it had never stopped, in one file.

A file is written beside its place and then moved there, so that a process that is killed leaves the last
whole one. It is read without running any code of it: tensors, numbers and text alone are let in.
"""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .arguments import refuse

FORMAT = "paceline.checkpoint/1"

MOMENTS = ("means", "squares")
"""What Adam keeps for each parameter: means of the gradients, and of their squares."""

State = Mapping[str, Any]


def check_place(path: str) -> None:
    """Refuse a file that could not be written, before a training that would end by writing it."""
    if path and not Path(path).parent.is_dir():
        refuse(f"--save is {path!r}, in a folder that isn't there")


def write_checkpoint(path: str, benchmark: str, state: State) -> None:
    """Write the state of a benchmark's training; exits with one sentence where the file can't be written."""
    partial = Path(f"{path}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            torch.save({"format": FORMAT, "benchmark": benchmark, **state}, file)
        partial.replace(path)
    except OSError as error:
        refuse(f"--save is {path!r}, which can't be written: {error.strerror}")
    finally:
        partial.unlink(missing_ok=True)


def read_checkpoint(path: str, benchmark: str) -> dict[str, Any]:
    """Read what write_checkpoint wrote; exits with one sentence for any other file."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        refuse(f"--resume is {path!r}, which can't be read: {error.strerror}")
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, TypeError):
        refuse(f"--resume is {path!r}, which is no checkpoint")
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        refuse(f"--resume is {path!r}, which is no checkpoint")
    if state["benchmark"] != benchmark:
        refuse(f"--resume is {path!r}, a checkpoint of {state['benchmark']}, not of {benchmark}")
    return state


def generator_state(generator: random.Random | np.random.Generator) -> str:
    """Return the state of a source of random numbers, as text: its numbers are too large for a tensor."""
    if isinstance(generator, random.Random):
        return json.dumps(generator.getstate())
    return json.dumps(generator.bit_generator.state)


def restore_generator(generator: random.Random | np.random.Generator, state: str) -> None:
    """Let the generator go on from the state that generator_state returned."""
    restored = json.loads(state)
    if isinstance(generator, random.Random):
        version, numbers, gauss = restored
        generator.setstate((version, tuple(numbers), gauss))
    else:
        generator.bit_generator.state = restored


def adam_state(optimizer: torch.optim.Adam) -> dict[str, Any]:
    """Return the updates so far and, for each parameter, the means of its gradients and of their squares."""
    parameters = optimizer.param_groups[0]["params"]
    states = [optimizer.state.get(parameter, {}) for parameter in parameters]
    means, squares = (
        [
            (state[name] if state else torch.zeros_like(parameter)).detach().cpu()
            for parameter, state in zip(parameters, states, strict=True)
        ]
        for name in ("exp_avg", "exp_avg_sq")
    )
    return {"updates": int(states[0]["step"]) if states[0] else 0, "means": means, "squares": squares}


def restore_adam(optimizer: torch.optim.Adam, state: State) -> None:
    """Let Adam go on from the state that adam_state returned."""
    moments = zip(state["means"], state["squares"], strict=True)
    states = {
        at: {"step": torch.tensor(float(state["updates"])), "exp_avg": mean, "exp_avg_sq": square}
        for at, (mean, square) in enumerate(moments)
    }
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
