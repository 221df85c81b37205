"""What the machine is, as the measured process tells it."""

from __future__ import annotations

from pathlib import Path

import pytest
from paceline.measured.fingerprint import processor_features


@pytest.mark.parametrize(
    ("line", "features"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16", ["avx2", "avx512f", "avx512_bf16", "amx_bf16"]),
        ("flags\t\t: fpu avx avx2 avx512fx", ["avx2"]),
        ("Features\t: fp asimd sve bf16", ["sve", "bf16"]),
        ("model name\t: avx2", []),
    ],
)
def test_the_features_that_decide_are_told(tmp_path: Path, line: str, features: list[str]) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\n{line}\nbugs\t: sve\n")
    assert processor_features(cpuinfo) == features


def test_a_system_that_does_not_tell_has_none(tmp_path: Path) -> None:
    assert processor_features(tmp_path / "cpuinfo") == []
