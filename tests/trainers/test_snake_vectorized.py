from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.conftest import ROOT, import_script, parse_arguments, run_script

SNAKE = ROOT / "trainers" / "snake_vectorized"
MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["snake_vectorized"]
SMALL = [
    "--total-steps",
    "12",
    "--environments",
    "16",
    "--updates",
    "2",
    "--batch-size",
    "16",
    "--device",
    "cpu",
]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def train() -> ModuleType:
    return import_script(SNAKE, "train")


@pytest.fixture(scope="module")
def flood() -> ModuleType:
    return import_script(SNAKE, "flood")


@pytest.fixture(scope="module")
def memories() -> ModuleType:
    return import_script(SNAKE, "memory")


def train_snakes(train: ModuleType, *arguments: str) -> Any:
    args = parse_arguments(train, [*SMALL, *arguments])
    torch.manual_seed(args.seed)
    return train.train(args, CPU)


def learned_fingerprint(train: ModuleType, *arguments: str) -> str:
    return str(train.fingerprint(train_snakes(train, *arguments).agent))


def random_boards(flood: ModuleType) -> Iterator[Any]:
    """Snakes of all lengths, in positions that random moves lead to."""
    chance, games = np.random.default_rng(3), flood.Snakes(24, 3)
    for _ in range(60):
        views = np.zeros((24, 11), dtype=np.float32)
        games.view(views)
        games.step((views[:, :3] + chance.random((24, 3)) / 2).argmin(axis=1))
        # Food in front of the heads lets them grow.
        games.food = np.where(
            games.boards[games.rows, games.ahead()[:, 0]] == 0, games.ahead()[:, 0], games.food
        )
        yield games


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--save", "nowhere/snakes.pt"], "--save is 'nowhere/snakes.pt', in a folder that isn't there"),
        (
            ["--variant", "beyond", "--environment", "tensors"],
            "--environment is tensors, which is only for --network torch",
        ),
        (["--floodfill", "off"], "there is no argument --floodfill, did you mean --flood-fill?"),
        (
            ["--variant", "fast"],
            "--variant is 'fast', must be one of baseline, optimized, beyond, superlinear",
        ),
        (["--push", "all"], "--push is 'all', must be one of item, rows, batch"),
        (["--flood-fill", "bfs"], "--flood-fill is 'bfs', must be one of off, search, cached, masks"),
        (["--environments", "0"], "--environments is 0, must be from 1 to 100000"),
        (["--batch-size", "64", "--capacity", "32"], "--batch-size is 64, more than the --capacity of 32"),
        (["--capacity", "64"], "--environments is 256, more than the --capacity of 64"),
        (["--learning-rate", "nan"], "--learning-rate is nan, must be from 0 to 1"),
        (["--variant", "beyond", "--acting", "each"], "--acting is each, which is only for --network torch"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    train: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(train, ["--device", "cpu", *arguments])
    assert raised.value.code == 2
    assert capsys.readouterr().err == f"train.py: {sentence}\n"


@pytest.mark.usefixtures("gpu")
def test_with_a_device_the_network_is_there_in_bfloat16(
    train: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    args, baseline = (
        parse_arguments(train, ["--variant", "beyond"]),
        parse_arguments(train, ["--variant", "baseline"]),
    )
    assert (args.device, args.network, args.bf16, args.pinned) == ("cuda", "torch", True, True)
    assert (baseline.device, baseline.bf16, baseline.pinned) == ("cpu", False, False)
    with pytest.raises(SystemExit):
        parse_arguments(train, ["--network", "numpy"])
    assert (
        capsys.readouterr().err == "train.py: --network is numpy, which has no CUDA; give --device cpu too\n"
    )


def test_the_variants_set_the_same_toggles(train: ModuleType) -> None:
    toggles = {name: set(values) for name, values in train.VARIANTS.items()}
    assert set(toggles) == {"baseline", "optimized", "beyond", "superlinear"}
    assert all(names == toggles["baseline"] for names in toggles.values())


def test_every_argument_has_a_line_of_documentation(train: ModuleType) -> None:
    assert all(len(spec.metadata["help"]) > 10 for spec in dataclasses.fields(train.Args))


@pytest.mark.parametrize("variant", ["baseline", "optimized", "beyond", "superlinear"])
def test_the_same_seed_learns_the_same_parameters(train: ModuleType, variant: str) -> None:
    first, second, other = (
        learned_fingerprint(train, "--variant", variant, "--seed", seed) for seed in "112"
    )
    assert first == second != other


@pytest.mark.parametrize(
    "toggle",
    [
        "--environment numpy",
        "--push rows",
        "--push batch",
        "--memory list",
        "--memory ring",
        "--flood-fill cached",
        "--flood-fill masks",
        "--log-every 0",
        "--log-every 7",
        "--whole-mean",
    ],
)
def test_a_toggle_of_speed_alone_changes_no_bit(train: ModuleType, toggle: str) -> None:
    # So small a memory is overwritten again and again.
    same = ["--variant", "baseline", "--capacity", "40"]
    assert learned_fingerprint(train, *same, *toggle.split()) == learned_fingerprint(train, *same)


@pytest.mark.parametrize("variant", ["baseline", "optimized", "beyond"])
def test_a_resumed_training_ends_where_one_ends_that_never_stopped(
    train: ModuleType, variant: str, tmp_path: Path
) -> None:
    # So small a memory is full when it is saved.
    arguments, path = ["--variant", variant, "--capacity", "70"], str(tmp_path / "snakes.pt")
    train_snakes(train, *arguments, "--total-steps", "7", "--save", path)
    resumed = train_snakes(train, *arguments, "--resume", path)
    whole = train_snakes(train, *arguments)
    assert train.fingerprint(resumed.agent) == train.fingerprint(whole.agent)
    assert (resumed.step, resumed.metrics.episodes) == (12, whole.metrics.episodes)
    assert [file.name for file in tmp_path.iterdir()] == ["snakes.pt"]


def test_another_variant_goes_on_with_a_saved_training(train: ModuleType, tmp_path: Path) -> None:
    path = str(tmp_path / "snakes.pt")
    saved = train_snakes(train, "--variant", "baseline", "--save", path, "--save-every", "3")
    for variant in ("optimized", "beyond"):
        resumed = train_snakes(train, "--variant", variant, "--resume", path)
        assert train.fingerprint(resumed.agent) == train.fingerprint(saved.agent)


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        (None, [], "which can't be read: No such file or directory"),
        (b"not one", [], "which is no checkpoint"),
        (
            {"format": "paceline.checkpoint/1", "benchmark": "pong"},
            [],
            "a checkpoint of pong, not of snake_vectorized",
        ),
        ([1, 2], [], "which is no checkpoint"),
        ("saved", ["--hidden", "64"], "whose --hidden is 128, not 64"),
    ],
)
def test_a_wrong_file_to_go_on_with_gets_one_sentence(
    train: ModuleType,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: Any,
    arguments: list[str],
    sentence: str,
) -> None:
    path = tmp_path / "snakes.pt"
    if content == "saved":
        train_snakes(train, "--total-steps", "1", "--save", str(path))
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(SystemExit):
        train_snakes(train, "--resume", str(path), *arguments)
    assert capsys.readouterr().err == f"train.py: --resume is {str(path)!r}, {sentence}\n"


def test_a_push_of_single_values_copies_both_views_of_every_game(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    monkeypatch.setattr(train.paceline, "count", lambda name, number=1: counted.append((name, number)))
    for way in ("item", "rows"):
        train_snakes(
            train, "--variant", "baseline", "--push", way, "--environments", "256", "--total-steps", "1"
        )
    assert [number for name, number in counted if name == "push_copies"] == [512, 5]


def test_a_filled_memory_holds_random_moves_of_which_nothing_is_learned(train: ModuleType) -> None:
    filled = train_snakes(train, "--prefill", "40", "--updates", "0")
    plain = train_snakes(train, "--updates", "0")
    assert (len(filled.memory), len(plain.memory)) == (12 * 16 + 48, 12 * 16)
    assert train.fingerprint(filled.agent) == train.fingerprint(plain.agent)
    assert filled.step == plain.step


def test_random_moves_fade_with_the_episodes(train: ModuleType) -> None:
    training = train_snakes(train, "--exploration-decay", "0.9", "--exploration", "0.2")
    training.metrics.episodes = 3
    assert training.exploration(0) == pytest.approx(0.9**3)
    training.metrics.episodes = 100
    assert training.exploration(0) == 0.2


def test_the_parts_of_a_step_are_printed(train: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    train_snakes(train, "--timing-every", "11", "--log-every", "0")
    number = r"\d\.\d{4}s"
    line = rf"Select: {number}, Step: {number}, Push: {number}, Train: {number}"
    assert re.fullmatch(rf"{line}\n{line}\n", capsys.readouterr().out)


def test_batched_acting_takes_the_same_actions(train: ModuleType) -> None:
    training = train_snakes(train)
    views = torch.rand(16, training.features)
    each = train.Agent(dataclasses.replace(training.args, acting="each"), training.features, CPU)
    each.network = training.agent.network
    assert each.best(views).tolist() == training.agent.best(views).tolist()


def test_the_network_in_numpy_takes_the_step_that_torch_takes(train: ModuleType) -> None:
    args = parse_arguments(train, SMALL)
    chance = np.random.default_rng(1)
    batch = (
        chance.random((16, 14), dtype=np.float32),
        chance.integers(3, size=16),
        chance.random(16, dtype=np.float32),
        chance.random((16, 14), dtype=np.float32),
        (chance.random(16) < 0.3).astype(np.float32),
    )
    torch.manual_seed(1)
    through_torch = train.Agent(args, 14, CPU)
    torch.manual_seed(1)
    in_numpy = train.NumpyNetwork(args, 14)
    losses = [[float(agent.learn(batch)()) for _ in range(5)] for agent in (through_torch, in_numpy)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for parameter, other in zip(through_torch.parameters(), in_numpy.parameters(), strict=True):
        assert np.allclose(parameter, other, atol=1e-5)


def test_the_fills_agree_on_every_board(flood: ModuleType) -> None:
    fills = [kind() for kind in flood.FILLS.values()]
    longest, walked = 0, np.zeros(3)
    for games in random_boards(flood):
        expected, *others = (fill.spaces(games) for fill in fills)
        assert all(np.array_equal(expected, other) for other in others)
        longest, walked = max(longest, int(games.score.max())), walked + [fill.fills for fill in fills]
    assert longest >= 10
    assert walked[0] == 60 * 24 * 3 > 2 * walked[1]


def test_the_memories_hold_the_same_transitions(memories: ModuleType) -> None:
    kept = [
        memories.memory(kind, 10, memories.PositionSampler(0, by_numpy=False), 2)
        for kind in ("deque", "list", "ring")
    ]
    for start in range(0, 28, 4):
        numbers = np.arange(start, start + 4)
        views = np.repeat(numbers[:, None], 2, axis=1).astype(np.float32)
        for memory in kept:
            memory.push_batch(views, numbers, views[:, 0], views, numbers % 2 == 0)
    batches = [memory.sample(10) for memory in kept]
    assert sorted(batches[0][1]) == list(range(18, 28))
    assert all(np.array_equal(a, b) for batch in batches[1:] for a, b in zip(batches[0], batch, strict=True))


def test_the_loop_ends_after_its_episodes(train: ModuleType) -> None:
    training = train_snakes(train, "--episodes", "20", "--warm-steps", "5")
    assert 20 <= training.metrics.episodes < 20 + 16


def test_without_a_learning_rate_the_guard_fails(train: ModuleType) -> None:
    assert learned_fingerprint(train, "--learning-rate", "0") == learned_fingerprint(train, "--updates", "0")
    assert (
        train.score(train_snakes(train, "--learning-rate", "0")) < MANIFEST["guard"]["score"]["minimum"] / 2
    )


def test_the_script_learns_and_says_its_path_score_and_parameters() -> None:
    more = ["--variant", "beyond", "--total-steps", "90", "--log-every", "0", "--device", "cpu"]
    said = run_script(SNAKE / "train.py", *more, check=True, cwd=ROOT).stdout
    found = re.fullmatch(
        r"path: cpu, 1 thread, variant beyond, network in numpy; .+\n"
        r"Total environment steps: 23040\nEpisodes completed: \d+\nSteps per episode \(avg\): [0-9.]+\n"
        r"score: (\S+) foods per game\nparameters: [0-9a-f]{64}\n",
        said,
    )
    assert found is not None
    assert float(found[1]) > MANIFEST["guard"]["score"]["minimum"]


def test_every_toggle_is_in_the_readme(train: ModuleType) -> None:
    readme = (SNAKE / "README.md").read_text()
    toggles = [
        field.name
        for field in dataclasses.fields(train.Args)
        if field.metadata["help"].startswith("toggle: ")
    ]
    missing = [name for name in toggles if f"`--{name.replace('_', '-')}`" not in readme]
    assert (len(toggles), missing) == (20, [])
    assert f"at least {MANIFEST['guard']['score']['minimum']:.0f} foods" in readme
