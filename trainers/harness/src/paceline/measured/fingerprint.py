"""The fingerprint of the environment and machine that a repetition ran in, taken by the measured process."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Collection, Iterator
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

# Where an installed package says what it is, by the kind of its folder.
_DESCRIBED_IN = {"dist-info": "METADATA", "egg-info": "PKG-INFO"}


def environment_fingerprint() -> dict[str, Any]:
    """Return the document's `environment`, without the driver, which the harness's process knows."""
    torch = sys.modules.get("torch")
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "torch": str(torch.__version__) if torch else None,
        "cuda": torch.version.cuda if torch else None,
        "driver": None,
        "os": operating_system(),
        "kernel": platform.release(),
        "cpu_model": processor_name(),
        "cpu_features": processor_features(),
        "cpu_count": os.cpu_count() or 1,
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": memory_bytes(),
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


def operating_system() -> str:
    """Return the system's name and version, as /etc/os-release has them."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def processor_name() -> str:
    """Return the processor's model, or its architecture where the system doesn't tell."""
    return processor_model() or platform.machine()


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the first processor's model; None where the system doesn't tell, as on ARM."""
    model = re.search(r"^model name[ \t]*:(.+)", _read_text(cpuinfo), re.MULTILINE)
    return model.group(1).strip() or None if model else None


def processor_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Return all features of the processor, as Linux names them; empty where the system doesn't tell."""
    flags = re.search(r"^(?:flags|Features)\s*:(.+)", _read_text(cpuinfo), re.MULTILINE)
    return frozenset(flags.group(1).split()) if flags else frozenset()


def processor_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return which of FEATURES the processor has, in that order; empty where the system doesn't tell."""
    has = processor_flags(cpuinfo)
    return [name for name in FEATURES if name in has]


def _read_text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def memory_bytes() -> int | None:
    """Return the machine's memory; None where the system doesn't tell."""
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

    Looked for by their names, in the folders that modules are imported from. `importlib.metadata` finds them
    too, but to import it takes a third of all that a process imports before it can measure.
    """
    imported = {name.partition(".")[0] for name in list(sys.modules)} - sys.stdlib_module_names
    versions: dict[str, str] = {}
    for place in sys.path:
        for described in _installed_in(Path(place or "."), imported):
            headers = dict(_read_headers(described))
            name = headers.get("name", "").lower()
            if name.replace("-", "_") in imported and "version" in headers:
                versions[name] = headers["version"]
    return dict(sorted(versions.items()))


def _installed_in(folder: Path, modules: Collection[str]) -> Iterator[Path]:
    """What installed packages that may have one of these names say of themselves."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return
    for name in names:
        stem, _, kind = name.rpartition(".")
        if kind in _DESCRIBED_IN and re.sub(r"[-_.]+", "_", stem.partition("-")[0]).lower() in modules:
            described = folder / name / _DESCRIBED_IN[kind]
            # A commit's own package, installed from its folder, has a version that is no dependency's.
            if not _comes_from_folder(folder / name) and described.is_file():
                yield described


def _read_headers(described: Path) -> Iterator[tuple[str, str]]:
    """The fields of a package's metadata, their names in small letters; the text below isn't read."""
    with described.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.strip():
                return
            name, _, value = line.partition(":")
            if name.lower() in ("name", "version"):
                yield name.lower(), value.strip()


def _comes_from_folder(described: Path) -> bool:
    try:
        return '"dir_info"' in (described / "direct_url.json").read_text()
    except OSError:
        return False
