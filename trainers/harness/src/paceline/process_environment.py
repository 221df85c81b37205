"""The environment of a measured process as the protocol fixes it: variables, threads, seeds, processors."""

from __future__ import annotations

import contextlib
import os
import re
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from .benchmarks import Benchmark
from .toml_table import TomlTable

CPU_LIMIT = 4096
VARIABLES_LIMIT = 40

# Where PyTorch and its libraries look for their number of threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# Variables that the protocol sets, and the key of the manifest for each of them.
KEY_OF_VARIABLE = {
    **dict.fromkeys(THREAD_VARIABLES, "threads"),
    "PYTHONHASHSEED": "seed",
    "PACELINE_SEED": "seed",
    "PACELINE_GC": "gc",
}
FORBIDDEN_VARIABLES = ("PYTHONUNBUFFERED", "PACELINE_KEPT_FILES")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def parse_variables(table: TomlTable | None) -> Mapping[str, str]:
    """Read the manifest's table `variables`; raises ManifestError."""
    if table is None:
        return {}
    names = table.names()
    if len(names) > VARIABLES_LIMIT:
        raise table.error("", f"has {len(names)} names, at most {VARIABLES_LIMIT} are allowed")
    return {name: _parse_variable(table, name) for name in names}


def _parse_variable(table: TomlTable, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise table.error(name, "must be named with letters, digits and underscore")
    if name in KEY_OF_VARIABLE:
        raise table.error(name, f"is set by the protocol, use {KEY_OF_VARIABLE[name]} instead")
    if name == "PYTHONPATH":
        raise table.error(name, "is set by the protocol, name the folders in python_path of [environment]")
    if name in FORBIDDEN_VARIABLES:
        raise table.error(name, "is set by the protocol and can't be changed")
    text = table.text(name)
    if len(text) > 2000 or "\0" in text:
        raise table.error(name, "must have at most 2000 characters and no null")
    return text


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


def missing_processors(benchmark: Benchmark) -> list[int]:
    """Return the processors that the manifest asks for and this process may not use."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    return sorted(set(benchmark.affinity or ()) - usable)


def pin_process(pid: int, benchmark: Benchmark) -> None:
    """Keep a process, which has just been started, and all that it will start on the chosen processors."""
    if benchmark.affinity is not None:
        # A process that has ended already is reported by its exit status.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, benchmark.affinity)


def _package_root() -> str:
    """Return the folder to import this package from; empty where the measured process will anyway."""
    # Not resolved: a link to the package alone must not become the folder that the package really lies in.
    root = str(Path(__file__).absolute().parent.parent)
    return "" if root == sysconfig.get_path("purelib") else root
