"""Which of a variant's toggles the machine leaves on: what hardware decides is asked of the hardware."""

from __future__ import annotations

from types import ModuleType

import pytest
from benchmark_support import machine
from benchmark_support.machine import Machine

from tests.trainers.conftest import ROOT, import_script

PLAIN = Machine("cpu", "old", ("avx2",))
BFLOAT16 = Machine("cpu", "Zen 4", ("avx2", "avx512f", "avx512_bf16"))
MATRIX = Machine("cpu", "Sapphire Rapids", ("avx2", "avx512f", "avx512_bf16", "amx_bf16"))
VOLTA = Machine("cuda", "V100", ("avx2",), (7, 0), 1, True)
HOPPER = Machine("cuda", "H100", ("avx2",), (9, 0), 1, True)
NO_COMPILER = Machine("cuda", "H100", ("avx2",), (9, 0), 1, False)


@pytest.fixture(scope="module")
def pipeline() -> ModuleType:
    return import_script(ROOT / "trainers" / "mario_pipeline", "arguments")


@pytest.mark.parametrize(
    ("found", "on"),
    [
        (PLAIN, {"channels_last"}),
        (BFLOAT16, {"bf16"}),
        (MATRIX, {"bf16", "channels_last"}),
        (VOLTA, {"channels_last", "compile"}),
        (HOPPER, {"bf16", "channels_last", "compile"}),
        (NO_COMPILER, {"bf16", "channels_last"}),
    ],
)
def test_a_variant_takes_what_the_machine_is_made_for(
    pipeline: ModuleType, monkeypatch: pytest.MonkeyPatch, found: Machine, on: set[str]
) -> None:
    monkeypatch.setattr(machine, "find_machine", lambda _: found)
    fitted = pipeline.read_arguments(["--variant", "beyond"])
    assert {name for name in ("bf16", "channels_last", "compile") if getattr(fitted.args, name)} == on
    assert {name for name, value in fitted.settings.items() if value == "on"} == on


def test_whoever_says_a_toggle_gets_it(pipeline: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_machine", lambda _: PLAIN)
    fitted = pipeline.read_arguments(["--variant", "beyond", "--bf16"])
    assert fitted.args.bf16
    assert fitted.settings == {
        "bf16": "on",
        "channels_last": "on",
        "compile": "off: pays on CUDA only",
    }


def test_what_was_decided_is_said_and_reported(
    pipeline: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reported: dict[str, str] = {}
    monkeypatch.setattr("paceline.setting", reported.__setitem__)
    monkeypatch.setattr("torch.set_num_interop_threads", lambda _: None)
    monkeypatch.setattr(machine, "find_machine", lambda _: PLAIN)
    machine.prepare_torch(pipeline.read_arguments(["--variant", "optimized"]), "4 collectors")
    said = "path: cpu, 1 thread, variant optimized, 4 collectors; old (avx2)"
    bf16, compiled = "off: needs a processor with bfloat16 instructions", "off: pays on CUDA only"
    assert capsys.readouterr().out == f"{said}; bf16 {bf16}; fp16, compile {compiled}\n"
    assert reported == {"bf16": bf16, "fp16": compiled, "compile": compiled}


def test_two_gpus_are_asked_for(
    pipeline: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "find_machine", lambda _: HOPPER)
    with pytest.raises(SystemExit):
        pipeline.read_arguments(["--data-parallel"])
    assert "--data-parallel needs two CUDA devices" in capsys.readouterr().err


def test_this_machine_is_named() -> None:
    found = machine.find_machine("cpu")
    assert (found.device, bool(found.name)) == ("cpu", True)
    assert found.name in str(found)


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        ({}, ["avx2", "avx512f", "amx_bf16"]),
        ({"ATEN_CPU_CAPABILITY": "avx512"}, ["avx2", "avx512f", "amx_bf16"]),
        ({"ATEN_CPU_CAPABILITY": "avx2"}, ["avx2"]),
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, ["avx2"]),
    ],
)
def test_variables_hold_a_processor_to_older_instructions(variables: dict[str, str], left: list[str]) -> None:
    assert machine.allowed_features(["avx2", "avx512f", "amx_bf16"], variables) == left
