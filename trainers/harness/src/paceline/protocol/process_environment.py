"""The environment variables of a measured process: those of the host, the manifest and the protocol."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from ..manifest.benchmarks import Benchmark
from ..manifest.environment_variables import THREAD_VARIABLES


def child_environment(
    benchmark: Benchmark, folder: Path | None = None, hash_seed: int | None = None
) -> dict[str, str]:
    """Return the environment variables of the measured process; `folder` is that of its code.

    `hash_seed`: of Python's hashes, instead of the benchmark's seed.
    """
    inherited = os.environ.get("PYTHONPATH", "")
    own = [str(folder.absolute() / name) for name in benchmark.python_path] if folder else []
    return {
        # NVML counts devices in the order of their addresses, and so must the code that is measured.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **os.environ,
        **benchmark.variables,
        **{name: str(benchmark.threads) for name in THREAD_VARIABLES},
        "PYTHONHASHSEED": str(benchmark.seed if hash_seed is None else hash_seed),
        "PYTHONPATH": os.pathsep.join(filter(None, [_package_root(), *own, inherited])),
        "PYTHONUNBUFFERED": "1",
        "PACELINE_SEED": str(benchmark.seed),
        "PACELINE_GC": benchmark.gc,
    }


def unchanged_environment() -> dict[str, str]:
    """Return this process's own variables, and what a measured process needs: it computes as without us."""
    inherited = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [_package_root(), inherited]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def _package_root() -> str:
    """Return the folder to import this package from; empty where the measured process will anyway."""
    # Not resolved: a link to the package alone must not become the folder that the package really lies in.
    root = str(Path(__file__).absolute().parents[2])
    return "" if root == sysconfig.get_path("purelib") else root
