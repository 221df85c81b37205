"""Unmodified scripts of frameworks: what a step is, what it holds, which phases it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import counters
from tests.harness.conftest import Project
from tests.harness.strangers import UNCOMPILED, phase_counts, run_script, start_uncompiled

SCRIPTS = Path(__file__).resolve().parents[3] / "bench" / "frameworks"


def run_framework(folder: Path, name: str, steps: int = 20, kind: str = "timing") -> dict[str, Any]:
    return run_script(folder, (SCRIPTS / f"{name}.py").read_text(), steps, kind)


def test_lightning_steps_its_optimizer_after_four_batches(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "lightning_module")
    counts = phase_counts(left)
    assert left["step"] == {"kind": "optimizer", "owner": "Adam", "chosen": False}
    # The last of four batches is learned inside the optimizer's closure. Every fourth step ends an epoch,
    # after which two batches validate.
    assert counts["optimizer"] == counts["optimizer/forward"] == counts["optimizer/backward"] == 1
    assert counts["optimizer/clip_gradients"] == 1
    assert counts["backward"] == 3
    assert counts["forward"] == pytest.approx(3 + 2 / 4)


def test_accelerate_steps_after_four_batches(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "accelerate_loop")
    counts = phase_counts(left)
    assert left["step"] == {"kind": "optimizer", "owner": "AdamW", "chosen": False}
    assert counts["forward"] == counts["backward"] == 4
    assert counts["clip_gradients"] == 1


def test_a_document_names_the_passes_within_a_step(tmp_path: Path) -> None:
    options = ("--quick", "--repetitions", "1", "--steps", "20", "--document", "out.json")
    script = start_uncompiled((SCRIPTS / "accelerate_loop.py").read_text())
    (tmp_path / "train.py").write_text(script)
    ended = Project(tmp_path, prepared=True).call("script", *options, "train.py")
    assert ended.returncode == 0, ended.stderr
    step = {"kind": "optimizer", "owner": "AdamW", "chosen": False}
    passes = {"forward": 4, "backward": 4, "optimizer": 1}
    assert json.loads((tmp_path / "out.json").read_text())["step"] == {**step, "passes": passes}
    assert "a step ends with the optimizer of AdamW, which stepped first" in ended.stdout
    assert "a step holds 4 forward passes, 4 backward passes, 1 optimizer step" in ended.stdout


LOSS_MODULE = (
    UNCOMPILED
    + """
from torch import nn
model, entropy = nn.Sequential(nn.Linear(8, 4), nn.ReLU()), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    for _ in range(4):
        entropy(model(torch.randn(16, 8)), torch.randint(4, (16,))).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
)


def test_a_loss_is_no_forward_pass(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOSS_MODULE)
    options = ("--quick", "--repetitions", "1", "--steps", "20", "--document", "out.json")
    ended = Project(tmp_path, prepared=True).call("script", *options, "train.py")
    assert "a step holds 4 forward passes, 4 backward passes, 1 optimizer step" in ended.stdout


def test_without_a_counting_no_forward_pass_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOSS_MODULE.replace("while True", "for _ in range(30)"))
    ended = Project(tmp_path, prepared=True).call("script", "--keep-running", "--steps", "20", "train.py")
    assert "a step holds 4 backward passes, 1 optimizer step" in ended.stdout


def test_a_trainer_of_transformers_steps_after_four_batches(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "transformers_trainer", kind="counting")
    counted = left["result"]["operations"]
    assert left["step"] == {"kind": "optimizer", "owner": "AdamW", "chosen": False}
    assert {"forward", "backward", "optimizer", "clip_gradients", "data_loading"} <= set(counted)
    assert counted["optimizer"]["optimizer_steps"] == 1
    # One embedding of tokens and one of positions for each of four batches.
    assert counted["forward"]["kinds"]["aten::embedding"] == 8
    assert not any(tally["unused_gradient_operations"] for tally in counted.values())


def test_feedback_generates_between_updates(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "human_feedback", steps=30)
    counts = phase_counts(left)
    assert left["step"]["kind"] == "optimizer"
    # Three updates per generation of eight tokens, and two models that look at what was generated.
    assert counts["generate"] == pytest.approx(1 / 3)
    assert counts["generate/forward"] == pytest.approx(8 / 3)
    assert counts["forward"] == pytest.approx(1 + 3 / 3)


def test_a_vector_environment_of_stable_baselines_steps_once(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "stable_baselines", steps=40)
    counts = phase_counts(left)
    step = {"kind": "environment", "owner": "DummyVecEnv", "chosen": False}
    # The first of eight steps only begins the loop.
    assert left["step"] == {**step, "learned_after": 7}
    assert counts["env_step"] == 1
    # Two passes over 32 samples in batches of 16, after eight steps of four environments.
    assert counts["optimizer"] == pytest.approx(4 / 8)


def test_one_file_ppo_on_a_vector_environment(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "single_file_ppo", steps=40)
    counts = phase_counts(left)
    step = {"kind": "environment", "owner": "SyncVectorEnv", "chosen": False}
    # The first of eight steps only begins the loop.
    assert left["step"] == {**step, "learned_after": 7}
    assert counts["env_step"] == 1
    assert counts["optimizer"] == counts["clip_gradients"] == pytest.approx(2 / 8)
    assert counts["distribution"] > 3


def test_a_scaler_that_skips_an_update_breaks_no_step(tmp_path: Path) -> None:
    left = run_framework(tmp_path, "image_recipe", steps=40)
    counts = phase_counts(left)
    assert left["step"]["owner"] == "AdamW"
    assert counts["optimizer"] == 1
    # Of five updates one is skipped, so that four steps hold five passes.
    assert counts["forward"] == counts["backward"] == pytest.approx(5 / 4)


def test_compilations_and_graph_breaks_are_counted_with_their_place(tmp_path: Path) -> None:
    result = run_framework(tmp_path, "compiled_model", steps=20, kind="counting")["result"]
    assert sum(result["graph_breaks"].values()) == 1
    place = result["graph_break_places"][0]
    assert (place["function"], place["file"], place["breaks"]) == ("compute_loss", "train.py", 1)
    assert "if hidden.sum() >" in (tmp_path / "train.py").read_text().splitlines()[place["line"] - 1]
    assert "branching" in place["reason"]
    # What follows the break depends on the scale, which changes twice in 20 steps.
    assert sum(result["recompilations"].values()) == pytest.approx(2 / 20)


PLANTED = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    loss = model(torch.randn(4, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {planted}
"""


@pytest.mark.parametrize(
    ("planted", "phase", "counters"),
    [
        ("with torch.no_grad(): model(torch.randn(4, 16)).sum()", "", {}),
        # A transposition and a product of each layer, and a relu that keeps its result.
        ("model(torch.randn(4, 16)).sum()", "forward", {"unused_gradient_operations": 6}),
        ("loss.item()", "(unattributed)", {"scalar_reads": 1}),
    ],
)
def test_a_planted_mistake_is_seen_in_its_phase(
    tmp_path: Path, planted: str, phase: str, counters: dict[str, float]
) -> None:
    result = run_script(tmp_path, PLANTED.format(planted=planted), 20, "counting")["result"]
    names = ("unused_gradient_operations", "scalar_reads")
    found = {
        (path, name): row[name] for path, row in result["operations"].items() for name in names if row[name]
    }
    assert found == {(phase, name): number for name, number in counters.items()}


def test_counters_repeat_with_another_hash_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "stable_baselines"
    (tmp_path / f"{name}.py").write_text(start_uncompiled((SCRIPTS / f"{name}.py").read_text()))
    monkeypatch.setattr(counters, "SCRIPTS", tmp_path)
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path / "logs"))
    found = counters.count_processes(name, 2)
    assert len(found[0]) > 30
    assert counters.differing_counters(found) == {}
