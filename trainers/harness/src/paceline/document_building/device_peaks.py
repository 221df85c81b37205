"""How many floating-point operations a device can do in a second, by the type of its numbers.

Dense figures (no structured sparsity), at the boost clock, from NVIDIA's own documents; where these only have
a figure with sparsity, half of it:

- H100 SXM, PCIe and NVL: "NVIDIA H100 Tensor Core GPU Datasheet" and "NVIDIA H100 Tensor Core GPU
  Architecture" (whitepaper), tables of peak rates.
- H200 SXM and NVL: "NVIDIA H200 Tensor Core GPU Datasheet".
- A100: "NVIDIA A100 Tensor Core GPU Datasheet". A10, L4, L40S: their product datasheets.
- V100 and V100S: "NVIDIA V100 Tensor Core GPU Datasheet". T4: "NVIDIA T4 Tensor Core GPU Datasheet".
- GeForce RTX 4090: "NVIDIA Ada GPU Architecture" (whitepaper), appendix A; GeForce RTX 3090: "NVIDIA Ampere
  GA102 GPU Architecture" (whitepaper), appendix A; both with sums in 32 bits, as PyTorch computes.

Double precision is that of the tensor cores where there are any for it, since matrix products use them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

TERA = 1e12

_HOPPER_SXM = {
    **{"float64": 66.9, "float32": 66.9, "tf32": 494.7, "bfloat16": 989.4, "float16": 989.4},
    **{"float8": 1978.9, "int8": 1978.9},
}
_HOPPER_NVL = {
    **{"float64": 60.0, "float32": 60.0, "tf32": 417.5, "bfloat16": 835.5, "float16": 835.5},
    **{"float8": 1670.5, "int8": 1670.5},
}
_AMPERE = {
    **{"float64": 19.5, "float32": 19.5, "tf32": 156.0, "bfloat16": 312.0, "float16": 312.0},
    "int8": 624.0,
}
# By the whole of the name that the driver gives; a part of a divided device has a name of its own.
_PEAKS: tuple[tuple[str, Mapping[str, float]], ...] = (
    (r"H100 80GB HBM3", _HOPPER_SXM),
    (
        r"H100 PCIe",
        {
            **{"float64": 51.2, "float32": 51.2, "tf32": 378.0, "bfloat16": 756.0, "float16": 756.0},
            **{"float8": 1513.0, "int8": 1513.0},
        },
    ),
    (r"H100 NVL", _HOPPER_NVL),
    (r"H200", _HOPPER_SXM),
    (r"H200 NVL", _HOPPER_NVL),
    (r"A100-(SXM4|PCIE)-(40|80)GB|A100 80GB PCIe|A100-SXM-(40|80)GB", _AMPERE),
    (r"A10", {"float32": 31.2, "tf32": 62.5, "bfloat16": 125.0, "float16": 125.0, "int8": 250.0}),
    (
        r"L4",
        {
            **{"float32": 30.3, "tf32": 60.0, "bfloat16": 121.0, "float16": 121.0},
            **{"float8": 242.5, "int8": 242.5},
        },
    ),
    (
        r"L40S",
        {
            **{"float32": 91.6, "tf32": 183.0, "bfloat16": 362.05, "float16": 362.05},
            **{"float8": 733.0, "int8": 733.0},
        },
    ),
    (r"V100-SXM2-(16|32)GB", {"float64": 7.8, "float32": 15.7, "float16": 125.0}),
    (r"V100-PCIE-(16|32)GB", {"float64": 7.0, "float32": 14.0, "float16": 112.0}),
    (r"V100S-PCIE-32GB", {"float64": 8.2, "float32": 16.4, "float16": 130.0}),
    (r"T4", {"float32": 8.1, "float16": 65.0, "int8": 130.0}),
    (
        r"GeForce RTX 4090",
        {
            **{"float64": 1.29, "float32": 82.6, "tf32": 82.6, "bfloat16": 165.2, "float16": 165.2},
            **{"float8": 330.3, "int8": 660.6},
        },
    ),
    (r"GeForce RTX 3090", {"float32": 35.6, "tf32": 35.6, "bfloat16": 71.0, "float16": 71.0}),
)


def find_peaks(device_name: str) -> dict[str, float] | None:
    """Return a device's operations per second by type, or None for a device that isn't in the table."""
    model = re.sub(r"^(NVIDIA|Tesla)\s+", "", device_name.strip())
    for pattern, peaks in _PEAKS:
        if re.fullmatch(pattern, model):
            return {kind: peak * TERA for kind, peak in peaks.items()}
    return None
