"""The documents' claims are about cases that the scripts know, and about marks that they set."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from paceline import claims, manifest
from paceline.claims import Claim
from paceline.manifest.script_arguments import format_arguments

from tests.trainers.conftest import ROOT, import_script, parse_arguments

MANIFEST = manifest.load_manifest(ROOT / "paceline.toml")
SNAKES = ("snake_dqn", "snake_vectorized")
ZELDA = ("zelda_overworld", "arguments")

NAMED = {
    "snake_dqn": "tensors memory train_every device inference batch_size cudnn_benchmark tf32 threads",
    "snake_vectorized": "push updates train_every flood_fill flood_every log_every environments",
}


def benchmark_folder(name: str) -> Path:
    return (ROOT / MANIFEST.benchmarks[name].script).parent


def claims_of(name: str) -> tuple[Claim, ...]:
    return claims.load_claims(benchmark_folder(name) / claims.FILE_NAME).claims


@pytest.mark.parametrize("name", SNAKES)
@pytest.mark.usefixtures("gpu")
def test_every_case_of_a_claim_is_one_that_the_script_takes(
    name: str,
) -> None:
    train = import_script(benchmark_folder(name), "train")
    sides = [side for claim in claims_of(name) for side in (claim.before, claim.after) if side is not None]
    assert len(sides) > 30
    for side in sides:
        args = parse_arguments(train, format_arguments(side))
        assert all(getattr(args, key) == value for key, value in side.items())


@pytest.mark.parametrize("name", SNAKES)
def test_every_toggle_that_a_document_names_is_claimed(name: str) -> None:
    toggles = {key for claim in claims_of(name) for side in (claim.before, claim.after) for key in side or {}}
    assert set(NAMED[name].split()) <= toggles


@pytest.mark.parametrize("name", SNAKES)
def test_every_phase_of_a_claim_is_marked_in_the_script(name: str) -> None:
    text = "".join(path.read_text() for path in sorted(benchmark_folder(name).glob("*.py")))
    phases = {claim.phase for claim in claims_of(name) if claim.phase}
    assert phases
    parts = {part for phase in phases for part in phase.split("/")}
    assert [part for part in parts if f'phase("{part}")' not in text] == []


@pytest.mark.parametrize(("name", "module"), [*((name, "train") for name in SNAKES), ZELDA])
def test_every_toggle_is_claimed_off_against_on(name: str, module: str) -> None:
    fields = dataclasses.fields(import_script(benchmark_folder(name), module).Args)
    toggles = {spec.name for spec in fields if spec.metadata["help"].startswith("toggle: ")}
    assert toggles == {claim.toggle for claim in claims_of(name) if claim.toggle}
