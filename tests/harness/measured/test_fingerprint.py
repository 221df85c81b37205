"""What the machine is, as the measured process tells it."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
from paceline.measured.fingerprint import environment_fingerprint, processor_features, processor_model


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
    assert processor_model(tmp_path / "cpuinfo") is None


def test_the_processors_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast 9000 @ 3: GHz\n")
    assert processor_model(tmp_path / "cpuinfo") == "Fast 9000 @ 3: GHz"
    (tmp_path / "cpuinfo").write_text("model name\t: \nstepping\t: 1\n")
    assert processor_model(tmp_path / "cpuinfo") is None
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: sve\n")
    assert processor_model(tmp_path / "cpuinfo") is None


def test_the_packages_that_the_code_imported_are_told_with_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"paceline_a-1.dist-info": "Paceline-A", "paceline_b-1.dist-info": "paceline-b"}
    for folder, name in installed.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "METADATA").write_text(f"Name: {name}\nVersion: 3\n")
    (tmp_path / "paceline_b-1.dist-info" / "direct_url.json").write_text('{"dir_info": {}}')
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("paceline_a", "paceline_b"):
        monkeypatch.setitem(sys.modules, module, sys)
    told = environment_fingerprint()["packages"]
    assert (told["paceline-a"], told["pytest"]) == ("3", metadata.version("pytest"))
    # One is a commit's own, whose version is no dependency's; others are installed and were never imported.
    assert {"paceline-b", "ruff"}.isdisjoint(told)
