"""Where the detector's weights lie, and how they get there: they are no part of the repository.

A file's name is a hash of all that decides the weights, so that a change of the scenes or of the network
makes new ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

DEFAULT_STEPS = 240
"""Updates of the detector's network."""

SOURCES = ("detector", "palette", "renderer", "scenes", "screens", "textures", "train_detector")
"""The files whose code decides the weights."""


class WeightsError(RuntimeError):
    """One sentence: why there are no weights."""


def cache_folder() -> Path:
    """The folder for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paceline" / "cs2_vision"


def weights_path(steps: int, seed: int) -> Path:
    """The file for the weights of this code, torch, numpy and kind of processor."""
    digest = hashlib.sha256(
        f"{steps} {seed} {torch.__version__} {np.__version__} {platform.machine()}".encode()
    )
    for name in SOURCES:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return cache_folder() / f"detector-{digest.hexdigest()[:16]}.pt"


def store(weights: dict[str, torch.Tensor], path: Path) -> None:
    """Write a file at once: another process sees all of it, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".weights-", delete=False) as file:
        torch.save(weights, file)
    Path(file.name).replace(path)


def load(path: Path) -> dict[str, torch.Tensor]:
    """Read weights; raises WeightsError."""
    try:
        return dict(torch.load(path, weights_only=True))
    except (OSError, RuntimeError, pickle.UnpicklingError, ValueError, EOFError) as error:
        raise WeightsError(f"{path} holds no weights of the detector") from error


def make(path: Path, steps: int, seed: int) -> None:
    """Train the detector into this file, unless it is there; of two processes at once, one trains.

    The training is a process of its own, so that this one is the same whether it was needed or not. Raises
    WeightsError.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        print(f"training the detector once, {steps} updates, into {path}", flush=True)
        command = [sys.executable, str(Path(__file__).with_name("train_detector.py"))]
        command += ["--seed", str(seed), "--steps", str(steps), "--weights", str(path)]
        ended = subprocess.run(command, check=False)
    if ended.returncode or not path.exists():
        raise WeightsError(f"training the detector has ended with status {ended.returncode}")
