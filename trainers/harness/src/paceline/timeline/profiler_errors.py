"""What keeps a profiler from seeing the device, from what CUPTI and Kineto print: a code and a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class ProfilerError:
    """Why there are no kernels: `name` is CUPTI's, empty where none was printed."""

    name: str
    sentence: str
    advice: str


_IN_USE = (
    "another profiler or monitor uses the device's counters",
    "end nsys, ncu and DCGM's profiling (dcgmi profile --pause) while it is measured",
)
_NOT_ALLOWED = (
    "the driver lets only an administrator profile the device",
    "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the container CAP_SYS_ADMIN",
)
_KNOWN = {
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": _IN_USE,
    "CUPTI_ERROR_HARDWARE_BUSY": _IN_USE,
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": _NOT_ALLOWED,
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED": (
        "the device is a virtual one that can't be profiled",
        "turn profiling on for the virtual machine, or measure on a device of its own",
    ),
    "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED": (
        "the device is in the mode for confidential computing, in which it can't be profiled",
        "turn that mode off where kernels are to be seen",
    ),
}
_NAME = re.compile(r"CUPTI_ERROR_[A-Z0-9_]+")
# Kineto prints this behind every failure: it isn't the failure's own name.
_ADVICE = "If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
_MISSING = "CUDA profiler activities will be missing"


def find_profiler_error(output: str) -> ProfilerError | None:
    """Return why kernels are missing, as far as the profiled process printed it; None for nothing."""
    names = _NAME.findall(output.replace(_ADVICE, ""))
    name = next((name for name in names if name in _KNOWN), names[0] if names else "")
    if name in _KNOWN:
        return ProfilerError(name, *_KNOWN[name])
    if name or _MISSING in output:
        sentence = f"CUPTI, which profiles the device, failed with {name}" if name else "CUPTI didn't start"
        return ProfilerError(name, sentence, "look it up in CUPTI's documentation")
    return None


def read_profiler_output(path: Path) -> str:
    """Return the begin of what the profiled process printed, where a profiler complains."""
    with path.open("rb") as output:
        return output.read(READ_BYTES).decode(errors="replace")
