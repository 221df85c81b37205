from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from paceline import claims
from paceline.manifest.script_arguments import format_arguments

from tests.trainers.conftest import ROOT, import_script, parse_arguments, run_script

MARIO = ROOT / "trainers" / "mario_pipeline"
CPU = torch.device("cpu")
MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["mario_pipeline"]
SIZE = "--environments 4 --epoch 32 --samples 1 --batch-size 16 --accumulate 1 --capacity 72 --chunk 8"
SMALL = [
    *SIZE.split(),
    "--total-steps",
    "32",
    "--exploration-steps",
    "20",
    "--target-every",
    "2",
    "--device",
    "cpu",
]
# A console takes longer to load than a short training to learn: two suffice where no thread is the subject.
FEW_CONSOLES = ["--environments", "2", "--collectors", "2"]

NEUTRAL = [
    "--collectors 1",
    "--collectors 4 --chunk 3",
    "--queues local --chunk 1024",
    "--overlap",
    "--overlap --queues local",
]
NEUTRAL_OF_FEW = [
    "--memory ring --preallocate",
    "--memory ring --no-uint8",
    "--preallocate --inplace",
    "--no-uint8 --clear-every 1",
]


class LoadedConsoles:
    """Consoles that are loaded once for each seed, which takes longer than what most trainings play."""

    def __init__(self, ale_py: Any) -> None:
        self.ale_py = ale_py
        self.free: dict[int, list[Any]] = {}
        self.taken: list[tuple[int, Any]] = []

    def take_back(self) -> None:
        """The trainings before have ended: others may play on their consoles."""
        for seed, loaded in self.taken:
            self.free.setdefault(seed, []).append(loaded)
        self.taken.clear()

    def ALEInterface(self) -> Any:  # noqa: N802  # as ale-py names it
        return LoadedConsole(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ale_py, name)


class LoadedConsole:
    """A console, with the state that it had when it was loaded."""

    def __init__(self, consoles: LoadedConsoles) -> None:
        self.consoles = consoles

    def setInt(self, _: str, seed: int) -> None:  # noqa: N802
        self.seed = seed

    def setFloat(self, *option: Any) -> None:  # noqa: N802
        self.option = option

    def loadROM(self, path: Any) -> None:  # noqa: N802
        free = self.consoles.free.get(self.seed)
        if free:
            self.console, state = loaded = free.pop()
            self.console.restoreSystemState(state)
        else:
            self.console = self.consoles.ale_py.ALEInterface()
            self.console.setInt("random_seed", self.seed)
            self.console.setFloat(*self.option)
            self.console.loadROM(path)
            loaded = self.console, self.console.cloneSystemState()
        self.consoles.taken.append((self.seed, loaded))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.console, name)


@pytest.fixture(scope="module")
def train() -> ModuleType:
    script = import_script(MARIO, "train")
    games = script.games.__globals__
    script.consoles = consoles = LoadedConsoles(games["emulator"]())  # type: ignore[attr-defined]
    games["emulator"] = lambda: consoles
    return script


def train_variant(train: ModuleType, *arguments: str) -> Any:
    train.consoles.take_back()
    args = parse_arguments(train, ["--variant", "baseline", *SMALL, *arguments])
    torch.manual_seed(args.seed)
    return train.train(args, CPU)


def learned_fingerprint(train: ModuleType, *arguments: str) -> str:
    return str(train_variant(train, *arguments).learner.fingerprint())


@pytest.fixture(scope="module")
def baseline(train: ModuleType) -> str:
    return learned_fingerprint(train)


@pytest.fixture(scope="module")
def baseline_of_few(train: ModuleType) -> str:
    return learned_fingerprint(train, *FEW_CONSOLES)


# --- games, queues and memory -------------------------------------------------------------------------------


def test_climbing_is_rewarded(train: ModuleType) -> None:
    games = train.games(parse_arguments(train, ["--variant", "baseline"]), 2, 0)
    first = games.reset()
    results = [games.step(np.array([1 + step // 4 % 2 * 3, 0])) for step in range(120)]
    rewards = np.sum([result.rewards for result in results], axis=0)
    assert first.shape == (2, 4, 52, 53)
    assert rewards[0] > rewards[1] == 0


@pytest.mark.parametrize("vectorized", ["--vectorized", "--no-vectorized"])
def test_a_game_ends_and_begins_anew(train: ModuleType, vectorized: str) -> None:
    games = train.games(parse_arguments(train, ["--small", "--game-steps", "10", vectorized]), 2, 0)
    games.reset()
    ended = np.array([games.step(np.zeros(2, dtype=np.int64)).ended for _ in range(25)])
    games.close()
    assert ended.sum(axis=0).tolist() == [2, 2]


def test_list_and_ring_give_the_same_batches(train: ModuleType) -> None:
    memories = [
        train.memory(parse_arguments(train, ["--variant", "baseline", *SMALL, *more]))
        for more in ([], ["--memory", "ring"])
    ]
    chance = np.random.default_rng(0)
    for step in range(50):
        views = chance.integers(256, size=(4, 4, 52, 53), dtype=np.uint8)
        rewards, ended = chance.random(4), chance.random(4) < 0.2
        for memory in memories:
            memory.write(
                [train.Experience(step, at, views[at], at, rewards[at], ended[at]) for at in range(4)]
            )
            memory.rounds += 1
    for memory in memories:
        memory.show()
    batch, other = (memory.sample(np.random.default_rng(1), 0) for memory in memories)
    assert all(np.array_equal(a, b) for a, b in zip(batch, other, strict=True))
    assert 0 < (batch.onward == 0).sum() < 16


def test_rewards_are_summed_up_to_an_end(train: ModuleType) -> None:
    memory = train.memory(parse_arguments(train, ["--variant", "optimized", *SMALL, "--discount", "0.5"]))
    view = np.zeros((4, 52, 53), dtype=np.uint8)
    memory.write([train.Experience(step, 0, view, 0, 1.0, step == 5) for step in range(12)])
    batch = memory.gather(np.array([0, 4, 6] + [0] * 13), np.zeros(16, dtype=np.int64), 0)
    assert batch.returns[:3].tolist() == [1.875, 1.5, 1.875]
    assert batch.onward[:3].tolist() == [0.0625, 0.0, 0.0625]


@pytest.mark.parametrize("kind", ["shared", "local"])
def test_what_finds_no_room_is_dropped_and_counted(train: ModuleType, kind: str) -> None:
    args = parse_arguments(
        train, ["--variant", "baseline", *SMALL, "--queues", kind, "--queue-limit", "3", "--chunk", "9"]
    )
    way = train.queues(args, train.memory(args))
    for step in range(5):
        way.put(0, train.Experience(step, 0, np.ones((4, 52, 53), dtype=np.uint8), 0, 1.0, False))
    way.flush()
    way.close()
    assert way.drops == 2


def test_collectors_wait_for_the_lock_and_say_how_long(train: ModuleType) -> None:
    queues = import_script(MARIO, "queues")
    held, asked = threading.Lock(), threading.Event()
    lock = queues.TimedLock(SimpleNamespace(acquire=lambda: (asked.set(), held.acquire())))
    held.acquire()
    thread = threading.Thread(target=lock.__enter__)
    thread.start()
    assert asked.wait(60)
    time.sleep(0.05)
    held.release()
    thread.join()
    assert lock.taken == 1
    assert lock.waited > 0.04


# --- training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toggle", NEUTRAL)
def test_a_neutral_toggle_changes_no_bit(train: ModuleType, baseline: str, toggle: str) -> None:
    assert learned_fingerprint(train, *toggle.split()) == baseline


@pytest.mark.parametrize("toggle", NEUTRAL_OF_FEW)
def test_a_neutral_toggle_of_memory_changes_no_bit(
    train: ModuleType, baseline_of_few: str, toggle: str
) -> None:
    assert learned_fingerprint(train, *FEW_CONSOLES, *toggle.split()) == baseline_of_few


@pytest.mark.parametrize(
    "toggle",
    [
        "--bf16",
        "--fp16",
        "--batch-norm",
        "--he-init",
        "--no-conv-biases",
        "--clip 0.01",
        "--small",
        "--vectorized",
        "--batch-size 32",
        "--accumulate 2",
        "--seed 1",
    ],
)
def test_another_toggle_changes_what_is_learned(train: ModuleType, baseline_of_few: str, toggle: str) -> None:
    assert learned_fingerprint(train, *FEW_CONSOLES, *toggle.split()) != baseline_of_few


def test_collectors_that_get_weights_more_often_play_otherwise(train: ModuleType, baseline: str) -> None:
    assert learned_fingerprint(train, "--sync-every", "1") != baseline


def test_batched_acting_takes_the_same_actions(train: ModuleType) -> None:
    args = parse_arguments(train, ["--variant", "baseline", *SMALL])
    actions = []
    for batched in (False, True):
        args = dataclasses.replace(args, batched=batched)
        torch.manual_seed(3)
        way = train.queues(args, train.memory(args))
        collector = train.Collector(args, 0, CPU, way)
        chosen = train.choose_actions(
            collector.network, collector.view_loader, collector.views, collector.chances, 0.0, batched=batched
        )
        actions.append(chosen.tolist())
        collector.close()
        way.close()
    assert actions[0] == actions[1]


@pytest.mark.parametrize("variant", ["optimized", "beyond"])
def test_a_variant_learns_otherwise(train: ModuleType, baseline: str, variant: str) -> None:
    """That each ends in the same parameters twice, test_counters.py says."""
    assert learned_fingerprint(train, "--variant", variant) != baseline


def test_float16_scales_its_gradients_and_clips_them_as_they_are(train: ModuleType) -> None:
    learner = train_variant(train, *FEW_CONSOLES, "--fp16", "--clip", "0.01", "--total-steps", "1").learner
    norms: list[torch.Tensor] = []
    learner.optimizer.register_step_pre_hook(
        lambda *_: norms.append(torch.stack([p.grad.norm() for p in learner.network.parameters()]).norm())
    )
    view = np.full((2, 4, 52, 53), 200, dtype=np.uint8)
    ones = np.ones(2, dtype=np.float32)
    for _ in range(20):  # what overflows is not learned, and scaled up less the next time
        learner.learn(train.Batch(view, np.zeros(2, dtype=np.int64), ones, view, ones))
    assert learner.scaler.get_scale() > 1
    assert norms[0] == pytest.approx(0.01, rel=1e-3)


def test_pictures_cast_at_once_end_in_the_same_bits(train: ModuleType) -> None:
    by_float32, at_once = (
        learned_fingerprint(train, *FEW_CONSOLES, "--bf16", toggle)
        for toggle in ("--no-direct-cast", "--direct-cast")
    )
    assert by_float32 == at_once


def test_compiled_passes_are_graphs_where_there_is_a_device(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    monkeypatch.setattr(torch, "compile", lambda network, mode: modes.append(mode) or network)
    train_variant(train, *FEW_CONSOLES, "--compile")
    assert modes == ["reduce-overhead"] * 2


def test_compiled_passes_add_up_in_gradients_of_their_own(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda network, **_: network)
    split = train_variant(train, *FEW_CONSOLES, "--compile", "--accumulate", "2").learner
    # What an optimizer's step leaves are zeros, not none: the next pass adds to them.
    assert not any(parameter.grad.any() for parameter in split.network.parameters())
    plain = train_variant(train, *FEW_CONSOLES, "--accumulate", "2").learner
    assert plain.fingerprint() == split.fingerprint()


def test_without_a_learning_rate_nothing_is_learned(train: ModuleType, baseline_of_few: str) -> None:
    still = learned_fingerprint(train, *FEW_CONSOLES, "--learning-rate", "0")
    untrained = learned_fingerprint(train, *FEW_CONSOLES, "--total-steps", "1")
    assert still == untrained != baseline_of_few


def test_an_untrained_network_stays_below_the_guard(train: ModuleType) -> None:
    assert train.skill(train_variant(train, "--total-steps", "1")) < MANIFEST["guard"]["skill"]["minimum"]


def test_what_fails_in_a_collector_ends_the_training(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, order: Any) -> None:
        raise ZeroDivisionError(order.round)

    monkeypatch.setattr(train.Collector, "_play", fail)
    with pytest.raises(ZeroDivisionError):
        train_variant(train)
    assert not [thread for thread in threading.enumerate() if thread.name in ("collector", "processor")]


def test_what_fails_in_the_consolidation_ends_the_training(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, experiences: Any) -> None:
        raise ZeroDivisionError(len(experiences))

    rows = type(train.memory(parse_arguments(train, ["--variant", "baseline", *SMALL])))
    monkeypatch.setattr(rows, "write", fail)
    with pytest.raises(ZeroDivisionError):
        train_variant(train)


# --- the document's table and claims ------------------------------------------------------------------------


def test_the_table_puts_the_document_beside_what_was_measured() -> None:
    def document(rate: float) -> dict[str, Any]:
        values = {"throughput": rate, "count.experiences": 8.0, "gauge.lock_wait_ms": 1 / rate}
        return {"metrics": [{"name": name, "value": value} for name, value in values.items()]}

    said = import_script(MARIO, "table").lines(document(32.0), document(64.0))
    assert (
        "Experience rate, exp/s                  256        512      +100%      ~1000      ~1800       +80%"
        in said
    )
    assert (
        "Epoch time, s                             1        0.5       -50%        ~30        ~12       -60%"
        in said
    )
    assert (
        "Queue drops, per step                     -          -          -          -     near 0          -"
        in said
    )


def test_what_is_no_document_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    command = [sys.executable, str(MARIO / "table.py"), *[str(tmp_path / "a.json")] * 2]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "a.json is no document of a measurement" in ended.stderr


@pytest.mark.usefixtures("gpu")
def test_every_claim_can_be_measured_or_says_why_not(
    train: ModuleType,
) -> None:
    found = claims.load_claims(MARIO / claims.FILE_NAME).claims
    sides = [side for claim in found for side in (claim.before, claim.after) if side is not None]
    assert len(found) == 135
    for side in sides:
        args = parse_arguments(train, format_arguments(side))
        assert all(getattr(args, key) == value for key, value in side.items())


def test_every_toggle_is_claimed_off_against_on(train: ModuleType) -> None:
    specs = dataclasses.fields(train.Args)
    toggles = {spec.name for spec in specs if spec.metadata["help"].startswith("toggle: ")}
    claimed = {claim.toggle for claim in claims.load_claims(MARIO / claims.FILE_NAME).claims if claim.toggle}
    assert toggles == claimed


def test_every_phase_of_a_claim_is_marked() -> None:
    text = "".join(path.read_text() for path in sorted(MARIO.glob("*.py")))
    found = claims.load_claims(MARIO / claims.FILE_NAME).claims
    names = {part for claim in found if claim.phase for part in claim.phase.split("/")}
    needed = {"act", "env", "enqueue", "lock_wait", "consolidate", "sample", "update", "sync"}
    assert [name for name in names | needed if f'phase("{name}")' not in text] == []


# --- arguments and words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--queue", "local"], "there is no argument --queue, did you mean --queues?"),
        (["--variant", "fast"], "--variant is 'fast', must be one of baseline, optimized, beyond"),
        (["--queues", "none"], "--queues is 'none', must be one of shared, local"),
        (["--collectors", "0"], "--collectors is 0, must be from 1 to 64"),
        (["--collectors", "3"], "--environments is 8, must be a multiple of --collectors, 3"),
        (["--epoch", "100"], "--epoch is 100, must be a multiple of --environments, 8"),
        (
            ["--batch-size", "300"],
            "--batch-size is 300, must divide the 1024 samples of an epoch, --epoch times --samples",
        ),
        (
            ["--capacity", "256"],
            "--capacity is 256, must be at least 296, an --epoch and --horizon rounds more",
        ),
        (["--horizon", "32"], "--horizon is 32, must be below the 32 rounds of an --epoch"),
        (["--sync-every", "often"], "argument --sync-every: invalid int value: 'often'"),
        (["--learning-rate", "nan"], "--learning-rate is nan, must be from 0 to 1"),
        (["--device", "gpu"], "--device is 'gpu', must be one of cpu, cuda, auto"),
        (["--data-parallel"], "--data-parallel needs two CUDA devices, which torch doesn't find here"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    train: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(train, ["--device", "cpu", *arguments])
    assert raised.value.code == 2
    assert capsys.readouterr().err == f"train.py: {sentence}\n"


def test_a_machine_without_the_emulator_says_what_it_can_not_run(tmp_path: Path) -> None:
    (tmp_path / "ale_py.py").write_text("raise ImportError('not here')")
    path = f"{tmp_path}:{ROOT / 'trainers/harness/src'}"
    ended = run_script(MARIO / "train.py", "--device", "cpu", env={"PYTHONPATH": path})
    sentence = "mario_pipeline can't run here, since its emulator, the package ale-py, is missing"
    assert (ended.returncode, ended.stderr) == (1, f"train.py: {sentence}: not here\n")


def test_the_script_says_its_path_skill_and_parameters() -> None:
    said = run_script(MARIO / "train.py", *SMALL, "--total-steps", "8", check=True, cwd=ROOT).stdout
    assert re.fullmatch(
        r"path: cpu, 1 thread, variant optimized, 4 collectors; .+\nheld-out TD loss: \S+\n"
        r"skill: \S+ of the rewards' variance in the frozen replay\nparameters: [0-9a-f]{64}\n",
        said,
    )


@pytest.mark.usefixtures("gpu")
def test_with_a_device_the_network_is_compiled(train: ModuleType) -> None:
    args, baseline = parse_arguments(train, []), parse_arguments(train, ["--variant", "baseline"])
    assert (args.device, args.compile, args.fp16, args.bf16) == ("cuda", True, True, False)
    assert (baseline.device, baseline.compile, baseline.fp16) == ("cuda", False, False)
    assert parse_arguments(train, ["--variant", "beyond"]).bf16 is True
    assert parse_arguments(train, ["--bf16"]).bf16 is True
    split = parse_arguments(train, ["--data-parallel"])
    assert (split.data_parallel, split.compile) == (True, False)
    assert parse_arguments(train, ["--device", "cpu"]).compile is False
    assert parse_arguments(train, ["--device", "cpu", "--compile"]).compile is True


def test_the_variants_set_the_same_toggles(train: ModuleType) -> None:
    variants = import_script(MARIO, "arguments").VARIANTS
    assert {frozenset(toggles) for toggles in variants.values()} == {frozenset(variants["baseline"])}
    assert parse_arguments(train, ["--variant", "baseline", "--overlap"]).overlap is True


def test_every_argument_has_a_line_of_documentation(train: ModuleType) -> None:
    assert all(len(spec.metadata["help"]) > 10 for spec in dataclasses.fields(train.Args))


def test_the_standard_size_is_the_one_the_guard_is_for(train: ModuleType) -> None:
    readme = (MARIO / "README.md").read_text()
    assert MANIFEST["warmup_steps"] + MANIFEST["steps"] == parse_arguments(train, []).total_steps
    assert MANIFEST["limits"]["count.queue_drops"] == {"maximum": 0}
    assert f"a skill of at least {MANIFEST['guard']['skill']['minimum']}" in readme


def test_every_toggle_is_in_the_readme(train: ModuleType) -> None:
    readme = (MARIO / "README.md").read_text()
    toggles = [
        spec for spec in dataclasses.fields(train.Args) if spec.metadata["help"].startswith("toggle: ")
    ]
    missing = [spec.name for spec in toggles if f"`--{spec.name.replace('_', '-')}`" not in readme]
    assert (len(toggles), missing) == (35, [])
