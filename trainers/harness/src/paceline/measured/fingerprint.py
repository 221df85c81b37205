"""The fingerprint of the environment and machine that a repetition ran in, taken by the measured process."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from . import cuda_device

VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "PYTHONHASHSEED",
    "PACELINE_SEED",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    # What torch and oneDNN are held to, of the processor's instructions.
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
)

# Of a processor's features those that decide how fast a network trains on it, as Linux names them; sve and
# bf16 are ARM's.
FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16", "sve", "bf16")


def environment_fingerprint() -> dict[str, Any]:
    """Return the document's `environment`, without the driver, which the harness's process knows."""
    torch = sys.modules.get("torch")
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "torch": str(torch.__version__) if torch else None,
        "cuda": torch.version.cuda if torch else None,
        "driver": None,
        "os": _os_name(),
        "kernel": platform.release(),
        "cpu_model": processor_name(),
        "cpu_features": processor_features(),
        "cpu_count": os.cpu_count() or 1,
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": _memory_bytes(),
        "gpus": _gpu_properties(),
        "packages": _imported_packages(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "path": "cuda" if cuda_device.is_device_used() else "cpu",
        **_kept_files(),
    }


def _kept_files() -> dict[str, str]:
    """Return the version of the files that a site has put beside the code, where there are any."""
    version = os.environ.get("PACELINE_KEPT_FILES", "")[:100]
    return {"kept_files": version} if version else {}


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def processor_name() -> str:
    """Return the processor's model, or its architecture where the system doesn't tell."""
    try:
        model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        model = None
    return model.group(1).strip() if model else platform.machine()


def processor_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return which of FEATURES the processor has, in that order; empty where the system doesn't tell."""
    try:
        flags = re.search(r"^(?:flags|Features)\s*:(.+)", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        flags = None
    has = set(flags.group(1).split()) if flags else set()
    return [name for name in FEATURES if name in has]


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _gpu_properties() -> list[dict[str, Any]]:
    if not cuda_device.is_device_used():
        return []
    cuda = sys.modules["torch"].cuda
    devices = [cuda.get_device_properties(index) for index in range(cuda.device_count())]
    return [{"name": device.name, "memory_bytes": device.total_memory} for device in devices]


def _imported_packages() -> dict[str, str]:
    """Return the installed versions of what the code has imported, the measured code itself left out.

    Each is looked for by its name: to read what all installed ones say of themselves would take longer than
    everything else here, at the end of each process.
    """
    imported = {name.partition(".")[0] for name in list(sys.modules)}
    versions: dict[str, str] = {}
    for module in sorted(imported - sys.stdlib_module_names):
        for distribution in metadata.distributions(name=module):
            name = distribution.metadata["Name"]
            if name and name.replace("-", "_").lower() == module and not _comes_from_folder(distribution):
                versions[name.lower()] = distribution.version
    return versions


def _comes_from_folder(distribution: metadata.Distribution) -> bool:
    """Whether it was installed from a folder: a commit's own package, whose version is no dependency's."""
    return '"dir_info"' in (distribution.read_text("direct_url.json") or "")
