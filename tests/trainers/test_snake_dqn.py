from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.conftest import ROOT, SNAKE, parse_arguments, run_script

CPU = torch.device("cpu")
MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["snake_dqn"]


def train_agent(train: ModuleType, *arguments: str) -> Any:
    args = parse_arguments(train, ["--total-steps", "150", "--device", "cpu", *arguments])
    torch.manual_seed(args.seed)
    return train.train(args, CPU)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--bach-size", "3"], "there is no argument --bach-size, did you mean --batch-size?"),
        (["--variant", "fast"], "--variant is 'fast', must be one of baseline, optimized, beyond"),
        (["--batch-size", "0"], "--batch-size is 0, must be at least 1"),
        (["--batch-size", "many"], "argument --batch-size: invalid int value: 'many'"),
        (["--batch-size", "64", "--capacity", "32"], "--batch-size is 64, more than the --capacity of 32"),
        (["--hidden", "10000000000"], "--hidden is 10000000000, must be from 1 to 10000"),
        (["--tensors=maybe"], "argument --tensors/--no-tensors: takes no value, but was given 'maybe'"),
        (["--learning-rate", "nan"], "--learning-rate is nan, must be from 0 to 1"),
        (["--discount", "2"], "--discount is 2.0, must be from 0 to 1"),
        (["--device", "gpu"], "--device is 'gpu', must be one of cpu, cuda, auto"),
        (["--save", "nowhere/a.pt"], "--save is 'nowhere/a.pt', in a folder that isn't there"),
        (
            ["--variant", "beyond", "--device", "cpu", "--quantized-acting"],
            "--quantized-acting is through torch; give --no-numpy-acting too",
        ),
        (["--seed", "-1"], "--seed is -1, must be from 0 to 4294967295"),
        (
            ["--written-backward", "--device", "cpu"],
            "--written-backward needs --ring, whose batches are arrays",
        ),
        (
            ["--variant", "baseline", "--numpy-acting"],
            "--numpy-acting needs --memory, which keeps views as arrays",
        ),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    train: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(train, arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err == f"train.py: {sentence}\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_is_refused_without_a_device(train: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(train, ["--device", "cuda"])
    assert "torch finds no CUDA device here" in capsys.readouterr().err


def test_the_variant_fills_in_what_no_argument_says(train: ModuleType) -> None:
    args = parse_arguments(train, ["--variant", "baseline", "--batch-size", "64", "--tensors"])
    assert (args.batch_size, args.tensors, args.memory, args.train_every) == (64, True, False, 1)


def test_the_variants_differ_in_every_toggle_that_they_set(train: ModuleType) -> None:
    baseline, optimized = train.VARIANTS["baseline"], train.VARIANTS["optimized"]
    assert baseline.keys() == optimized.keys()
    assert [name for name in baseline if baseline[name] == optimized[name]] == []


def test_every_argument_has_a_line_of_documentation(train: ModuleType) -> None:
    assert all(len(spec.metadata["help"]) > 10 for spec in dataclasses.fields(train.Args))


def test_the_seed_comes_from_the_measurement(train: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_SEED", "5")
    assert (parse_arguments(train, []).seed, parse_arguments(train, ["--seed", "6"]).seed) == (5, 6)


@pytest.mark.parametrize(
    "script", ["snake_dqn/train.py", "snake_vectorized/train.py", "zelda_overworld/train.py"]
)
def test_a_seed_that_is_no_number_is_refused(script: str) -> None:
    environment = {**os.environ, "PACELINE_SEED": "x"}
    ended = run_script(ROOT / "trainers" / script, env=environment)
    sentence = "train.py: PACELINE_SEED is 'x', must be a number from 0 to 4294967295\n"
    assert (ended.returncode, ended.stderr) == (2, sentence)


@pytest.mark.parametrize("variant", ["optimized", "beyond"])
def test_another_seed_learns_other_parameters(train: ModuleType, variant: str) -> None:
    """That the same one learns the same, test_counters.py says."""
    first, other = (train_agent(train, "--variant", variant, "--seed", seed) for seed in "12")
    assert first.fingerprint() != other.fingerprint()


@pytest.fixture(scope="module")
def baseline(train: ModuleType) -> str:
    return str(train_agent(train, "--variant", "baseline").fingerprint())


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@pytest.mark.parametrize("toggle", ["--tensors", "--memory", "--inference"])
def test_a_toggle_of_speed_alone_changes_no_bit(train: ModuleType, baseline: str, toggle: str) -> None:
    assert train_agent(train, "--variant", "baseline", toggle).fingerprint() == baseline


@pytest.mark.parametrize("arguments", ["--variant optimized", "--variant optimized --capacity 70"])
def test_a_ring_holds_what_a_deque_holds(train: ModuleType, arguments: str) -> None:
    plain = train_agent(train, *arguments.split()).fingerprint()
    assert train_agent(train, *arguments.split(), "--ring").fingerprint() == plain


def test_the_written_out_network_takes_the_step_that_torch_takes(train: ModuleType) -> None:
    chance, beyond = (
        np.random.default_rng(1),
        ["--variant", "beyond", "--device", "cpu", "--batch-size", "16"],
    )
    view = chance.random(400, dtype=np.float32)
    batch = (
        chance.random((16, 400), dtype=np.float32),
        chance.integers(3, size=16),
        chance.random(16, dtype=np.float32),
        chance.random((16, 400), dtype=np.float32),
        (chance.random(16) < 0.3).astype(np.float32),
    )
    agents = []
    for toggles in (
        [],
        ["--no-written-backward"],
        ["--no-written-backward", "--no-numpy-acting", "--no-fused"],
    ):
        torch.manual_seed(1)
        agents.append(train.Agent(parse_arguments(train, [*beyond, *toggles]), CPU))
        for _ in range(5):
            agents[-1].learn(agents[-1].batch(batch))
    first, *others = agents
    for other in others:
        for parameter, same in zip(first.network.parameters(), other.network.parameters(), strict=True):
            assert torch.allclose(parameter, same, atol=1e-5)
        assert other.act(view) == first.act(view)


@pytest.mark.usefixtures("gpu")
def test_numpy_stays_on_the_cpu(train: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    args = parse_arguments(train, ["--variant", "beyond"])
    assert (args.ring, args.fused, args.written_backward, args.numpy_acting) == (True, True, False, False)
    with pytest.raises(SystemExit):
        parse_arguments(train, ["--variant", "beyond", "--numpy-acting"])
    assert "--numpy-acting works on the CPU only" in capsys.readouterr().err


@pytest.mark.parametrize("variant", ["baseline", "optimized", "beyond"])
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_a_resumed_training_ends_where_one_ends_that_never_stopped(
    train: ModuleType, variant: str, tmp_path: Path
) -> None:
    # So small a memory is full when it is saved.
    arguments, path = ["--variant", variant, "--batch-size", "32", "--capacity", "60"], str(tmp_path / "a.pt")
    saved = train_agent(train, *arguments, "--total-steps", "90", "--save", path, "--save-every", "2")
    resumed = train_agent(train, *arguments, "--resume", path)
    assert saved.fingerprint() != resumed.fingerprint() == train_agent(train, *arguments).fingerprint()
    assert [file.name for file in tmp_path.iterdir()] == ["a.pt"]


def test_another_variant_goes_on_with_a_saved_training(train: ModuleType, tmp_path: Path) -> None:
    path = str(tmp_path / "snake.pt")
    saved = train_agent(train, "--variant", "optimized", "--save", path)
    for variant in ("baseline", "beyond"):
        assert train_agent(train, "--variant", variant, "--resume", path).fingerprint() == saved.fingerprint()


def test_a_wrong_file_to_go_on_with_gets_one_sentence(
    train: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "snake.pt")
    train_agent(train, "--total-steps", "1", "--save", path)
    for other, arguments in ((path, ["--hidden", "64"]), (str(tmp_path / "none"), []), (__file__, [])):
        with pytest.raises(SystemExit):
            train_agent(train, "--resume", other, *arguments)
    assert capsys.readouterr().err == (
        f"train.py: --resume is {path!r}, whose --hidden is 128, not 64\n"
        f"train.py: --resume is {str(tmp_path / 'none')!r}, which can't be read: No such file or directory\n"
        f"train.py: --resume is {__file__!r}, which is no checkpoint\n"
    )


def test_int8_weights_act_like_those_they_were_made_of(train: ModuleType) -> None:
    agent, views = train_agent(train, "--quantized-acting"), torch.rand(64, 400)
    transitions = [(view.numpy(), 0, 5.0, view.numpy(), True) for view in views]
    for _ in range(2):
        with torch.inference_mode():
            values, rounded = agent.network(views), agent.quantized(views)
        # A step is a 127th of a layer's largest weight, and of its largest input.
        assert 0 < float((values - rounded).abs().max()) < 0.05
        agent.learn(agent.batch(transitions))


def test_without_a_learning_rate_nothing_is_learned(train: ModuleType) -> None:
    untrained, still = train_agent(train, "--total-steps", "1"), train_agent(train, "--learning-rate", "0")
    assert still.fingerprint() == untrained.fingerprint() != train_agent(train).fingerprint()


def test_more_transitions_than_the_memory_holds_are_forgotten(train: ModuleType) -> None:
    assert train_agent(train, "--capacity", "64").fingerprint() != train_agent(train).fingerprint()


def test_an_untrained_player_stays_below_the_guard(train: ModuleType) -> None:
    args = parse_arguments(train, ["--total-steps", "1", "--device", "cpu"])
    assert train.score(train.train(args, CPU), args) < MANIFEST["guard"]["score"]["minimum"] / 2


def test_a_player_that_sees_the_food_passes_the_guard(train: ModuleType) -> None:
    class Hungry:
        def act(self, view: Any) -> int:
            grid = view.reshape(train.VIEW, train.VIEW)
            row, column = divmod(int(grid.argmax()), train.VIEW)
            return 0 if row < 12 and grid[11, 10] >= 0 else 1 if column > 10 or grid[12, 9] < 0 else 2

    assert train.score(Hungry(), parse_arguments(train, [])) > MANIFEST["guard"]["score"]["minimum"]


def test_the_script_says_its_path_score_and_parameters() -> None:
    more = ["--total-steps", "40", "--device", "cpu"]
    said = run_script(SNAKE / "train.py", *more, check=True, cwd=ROOT).stdout
    assert re.fullmatch(
        r"path: cpu, 1 thread, variant optimized; .+\nscore: \S+ foods per game\nparameters: [0-9a-f]{64}\n",
        said,
    )


def test_the_standard_size_is_the_one_the_guard_is_for() -> None:
    readme = (SNAKE / "README.md").read_text()
    assert MANIFEST["warmup_steps"] + MANIFEST["steps"] == 12_000
    assert f"at least {MANIFEST['guard']['score']['minimum']:.0f} foods" in readme


def test_every_toggle_is_in_the_readme(train: ModuleType) -> None:
    readme = (SNAKE / "README.md").read_text()
    toggles = [
        spec for spec in dataclasses.fields(train.Args) if spec.metadata["help"].startswith("toggle: ")
    ]
    missing = [spec.name for spec in toggles if f"`--{spec.name.replace('_', '-')}`" not in readme]
    assert (len(toggles), missing) == (19, [])
