from __future__ import annotations

import dataclasses
import gc
import hashlib
import importlib
import re
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

from tests.trainers.conftest import ROOT, import_script, parse_arguments, run_script

ZELDA = ROOT / "trainers" / "zelda_overworld"
CPU = torch.device("cpu")
MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["zelda_overworld"]

# What is switched together works in different parts of a step.
NEUTRAL = [
    "--stack --full-location --gae",
    "--is-loaded --map-location --gather",
    "--equipment --lazy --direct",
    "--information --categorical",
]


class Trained(NamedTuple):
    parameters: str
    states: int
    learner: Any
    environments: list[Any]


@pytest.fixture(scope="module")
def zelda() -> ModuleType:
    return import_script(ZELDA, "train")


@pytest.fixture(scope="module")
def emulator() -> ModuleType:
    return import_script(ZELDA, "emulator")


@pytest.fixture(scope="module", autouse=True)
def _frozen_imports(zelda: ModuleType) -> None:
    """stable-retro collects garbage for each console: what is imported is left out of that."""
    # What the first optimizer imports, and the first console.
    for name in ("torch._dynamo", "stable_retro"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@pytest.fixture
def console(emulator: ModuleType) -> Iterator[Any]:
    console = emulator.Emulator(direct=True)
    yield console
    console.close()


def train_zelda(zelda: ModuleType, *arguments: str) -> Trained:
    # Of small pictures it is learned in a fourth of the time.
    size = ["--small", "--total-steps", "64", "--rollout", "32"]
    args = parse_arguments(zelda, ["--variant", "baseline", *size, *arguments])
    torch.manual_seed(args.seed)
    sources = zelda.sources(args)
    environments = [zelda.Environment(source, args, args.seed + at) for at, source in enumerate(sources)]
    learner = zelda.train(args, CPU, environments)
    for source in sources:
        source.close()
    return Trained(learner.fingerprint(), environments[0].states, learner, environments)


def refuse_training(zelda: ModuleType, *arguments: str) -> None:
    """What is refused before a game begins needs no emulator."""
    args = parse_arguments(zelda, ["--variant", "baseline", "--small", "--rollout", "32", *arguments])
    with pytest.raises(SystemExit):
        zelda.train(args, CPU, [])


@pytest.fixture(scope="module")
def baseline(zelda: ModuleType) -> Trained:
    return train_zelda(zelda)


# --- the emulator and the model of the game -----------------------------------------------------------------


def test_a_game_begins_behind_title_and_menu(console: Any) -> None:
    info = console.reset(0).info
    assert (info["mode"], info["location"], info["health"], info["thing"]) == (2, 0x11, 8, 6)


def test_the_player_walks_two_pixels_a_frame(console: Any) -> None:
    before = console.reset(0).info["player_y"]
    console.begin(0)
    assert before - console.finish().info["player_y"] == 14


def test_the_next_room_is_built_and_known(zelda: ModuleType, console: Any) -> None:
    environment = zelda.Environment(console, parse_arguments(zelda, []), 0)
    environment.reset()
    for _ in range(20):
        environment.begin(0)
        environment.finish()
    places = [(room.location.location, room.is_loaded) for room in environment.rooms.values()]
    assert places == [(0x11, True), (0x01, True)]


def test_a_room_that_is_being_built_is_not_loaded(zelda: ModuleType, console: Any) -> None:
    environment = zelda.Environment(console, parse_arguments(zelda, []), 0)
    environment.reset()
    loaded = []
    for _ in range(12):
        environment.begin(0)
        environment.finish()
        loaded.append((environment.game.is_playing, environment.objective is not None))
    assert (False, False) in loaded
    assert all(playing == objective for playing, objective in loaded)


def test_the_way_of_the_objective_leads_to_the_thing(zelda: ModuleType, console: Any) -> None:
    environment = zelda.Environment(console, parse_arguments(zelda, []), 0)
    environment.reset()
    rewards: dict[str, float] = {}
    for _ in range(60):
        ways = environment.objective.ways(environment.game) if environment.objective else []
        environment.begin(ways[0].value if ways else 1)
        environment.finish()
        rewards |= environment.rewards
    assert environment.found >= 1
    assert rewards["lens"] == 1.0
    assert "nearer" in rewards


def test_standing_among_enemies_costs_health_and_then_the_game(zelda: ModuleType, console: Any) -> None:
    environment = zelda.Environment(console, parse_arguments(zelda, []), 0)
    environment.reset()
    ended, reasons = False, set()
    while not ended:
        environment.begin(7)
        _, _, ended = environment.finish()
        reasons |= set(environment.rewards)
    assert environment.game.player.health < 8
    assert reasons >= {"health lost", "blow into the air"}


def test_an_emulator_in_another_process_reads_the_same(emulator: ModuleType, console: Any) -> None:
    remote = emulator.Remote(direct=False)
    digests = []
    for source in (console, remote):
        readings = [source.reset(7)]
        for action in range(8):
            source.begin(action)
            readings.append(source.finish())
        seen = b"".join(part.tobytes() for reading in readings for part in (reading.memory, reading.picture))
        digests.append((hashlib.sha256(seen).hexdigest(), readings[-1].info))
    remote.close()
    assert digests[0] == digests[1]


def test_an_emulator_that_has_ended_is_told_of(emulator: ModuleType) -> None:
    remote = emulator.Remote(direct=True)
    remote.process.kill()
    with pytest.raises(
        emulator.MissingEmulatorError, match="the emulator's process has ended with status -9"
    ):
        remote.reset(0)
    remote.close()


def test_a_state_of_the_game_can_not_be_changed(zelda: ModuleType, console: Any) -> None:
    environment = zelda.Environment(console, parse_arguments(zelda, []), 0)
    environment.reset()
    with pytest.raises(AttributeError, match="a state of the game can't be changed: level"):
        environment.game.level = 3


# --- training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toggles", NEUTRAL)
def test_neutral_toggles_change_no_bit(zelda: ModuleType, baseline: Trained, toggles: str) -> None:
    switched = train_zelda(zelda, *toggles.split())
    assert (switched.states, switched.parameters) == (baseline.states, baseline.parameters)


@pytest.fixture(scope="module")
def gray_by_image(zelda: ModuleType) -> Trained:
    return train_zelda(zelda, "--image")


def test_gray_by_other_weights_differs_in_the_last_bits(baseline: Trained, gray_by_image: Trained) -> None:
    observation = import_script(ZELDA, "observation")
    frames = torch.randint(256, (3, 3, 112, 120)).float()
    assert gray_by_image.parameters != baseline.parameters
    assert torch.allclose(observation.image_in_two(frames), observation.image_in_three(frames), atol=1e-6)


def test_a_rolling_stack_is_the_same_as_one_made_anew(zelda: ModuleType, gray_by_image: Trained) -> None:
    rolling = train_zelda(zelda, "--image", "--rolling")
    assert (rolling.states, rolling.parameters) == (gray_by_image.states, gray_by_image.parameters)


def test_one_worker_plays_as_no_worker(zelda: ModuleType, baseline: Trained) -> None:
    assert train_zelda(zelda, "--workers", "1").parameters == baseline.parameters


def test_beyond_learns_otherwise_in_two_environments(zelda: ModuleType, baseline: Trained) -> None:
    """That it ends in the same parameters twice, test_counters.py says."""
    beyond = train_zelda(zelda, "--variant", "beyond")
    assert beyond.parameters != baseline.parameters
    assert len(beyond.environments) == 2


def test_what_fails_in_the_learning_thread_ends_the_training(zelda: ModuleType) -> None:
    class Broken:
        device = CPU

        def learn(self, rollout: int) -> float:
            return 1 / rollout

    background_learner = zelda.BackgroundLearner(Broken(), overlap=True)
    background_learner.learn(0)
    with pytest.raises(ZeroDivisionError):
        background_learner.wait()


def test_batched_advantages_are_those_of_the_loop(zelda: ModuleType) -> None:
    rollout = zelda.Rollout(32, 4, 56, 60, CPU)
    rollout.rewards, rollout.values = torch.randn(32), torch.randn(36)
    rollout.ends[[3, 10, 31]] = 1.0
    ppo = import_script(ZELDA, "ppo")
    loop, batched = (how(rollout, 0.9, 0.8) for how in (ppo.advantages_in_a_loop, ppo.advantages_batched))
    assert torch.equal(loop, batched)
    assert loop[31] == rollout.rewards[31] - rollout.values[31]


def test_without_a_learning_rate_nothing_is_learned(zelda: ModuleType, baseline: Trained) -> None:
    still, untrained = train_zelda(zelda, "--learning-rate", "0"), train_zelda(zelda, "--total-steps", "1")
    assert still.parameters == untrained.parameters != baseline.parameters


def test_an_untrained_player_stays_below_the_guard(zelda: ModuleType) -> None:
    args = parse_arguments(zelda, ["--direct"])
    learner = zelda.Learner(args, 112, 120, CPU)
    (source,) = zelda.sources(args)
    found = zelda.score(learner, zelda.Environment(source, args, 0), args)
    source.close()
    assert found < MANIFEST["guard"]["score"]["minimum"]


# --- checkpoints and trained policies -----------------------------------------------------------------------

# That the baseline does, the test of toggles that change on the way says.
VARIANTS_THAT_GO_ON = (["--variant", "beyond"], ["--workers", "2", "--stack"])


@pytest.mark.parametrize("arguments", VARIANTS_THAT_GO_ON, ids=" ".join)
def test_a_run_that_goes_on_ends_as_one_that_was_never_interrupted(
    zelda: ModuleType, tmp_path: Path, arguments: list[str]
) -> None:
    more = [*arguments, "--rollout", "16", "--minibatch", "16", "--save-every", "32"]
    whole = train_zelda(zelda, *more, "--total-steps", "64", "--save", str(tmp_path / "whole"))
    gone_on = train_zelda(
        zelda, *more, "--total-steps", "64", "--resume", str(tmp_path / "whole" / "overworld_32.pt")
    )
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert (gone_on.states, gone_on.parameters) == (whole.states, whole.parameters)
    assert names == ["overworld_32.pt", "overworld_64.pt"]


def test_a_neutral_toggle_may_change_on_the_way(zelda: ModuleType, baseline: Trained, saved: Path) -> None:
    gone_on = train_zelda(zelda, "--direct", "--lazy", "--resume", str(saved))
    assert gone_on.parameters == baseline.parameters


@pytest.fixture(scope="module")
def saved(zelda: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a short training."""
    path = tmp_path_factory.mktemp("saved") / "given.pt"
    train_zelda(zelda, "--total-steps", "32", "--save", str(path))
    return path


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        (b"something else", [], "which is no checkpoint"),
        (None, [], "where there is no checkpoint"),
        ({"a": 1}, [], "which is no checkpoint"),
        ("a checkpoint", ["--epochs", "2"], "whose training has --epochs 3, and this one 2"),
        ("a checkpoint", ["--total-steps", "16"], "--total-steps is 16, the checkpoint has 32 already"),
    ],
)
def test_a_file_that_can_not_be_gone_on_from_gets_one_sentence(
    zelda: ModuleType,
    saved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: Any,
    arguments: list[str],
    sentence: str,
) -> None:
    path = tmp_path / "given.pt"
    if isinstance(content, str):
        path = saved
    elif isinstance(content, dict):
        torch.save(content, path)
    elif content is not None:
        path.write_bytes(content)
    capsys.readouterr()
    refuse_training(zelda, "--total-steps", "64", "--resume", str(path), *arguments)
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_checkpoint_without_its_console_gets_one_sentence(
    zelda: ModuleType, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = torch.load(saved)
    state["environments"][0]["console"] = torch.zeros(7, dtype=torch.uint8)
    torch.save(state, tmp_path / "given.pt")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        train_zelda(zelda, "--resume", str(tmp_path / "given.pt"))
    said = capsys.readouterr().err
    assert "which this version of the benchmark can't go on from: the emulator takes no such state" in said
    assert said.count("\n") == 1


def test_one_command_begins_and_goes_on(
    zelda: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "runs")
    ends = [
        train_zelda(zelda, "--save", folder, "--resume", folder, "--total-steps", steps)
        for steps in ("32", "64", "64")
    ]
    assert "holds no checkpoint yet: training begins" in capsys.readouterr().out
    assert ends[1].parameters == ends[2].parameters != ends[0].parameters


def test_a_place_that_can_not_be_written_is_refused_before_training(
    zelda: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse_training(zelda, "--save", "/nowhere/at/all.pt")
    assert (
        "train.py: --save is '/nowhere/at/all.pt', in a folder that isn't there\n" in capsys.readouterr().err
    )


def test_saving_needs_whole_updates(zelda: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    refuse_training(zelda, "--save", "somewhere.pt", "--total-steps", "33")
    said = "train.py: --total-steps is 33, must be a multiple of --rollout, 32, with --save\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("size", [[], ["--small"]], ids=["112x120", "56x60"])
def test_the_trained_policies_play_well(zelda: ModuleType, size: list[str]) -> None:
    args = parse_arguments(zelda, ["--start", "trained", "--direct", *size])
    learner = zelda.make_learner(args, CPU)
    (source,) = zelda.sources(args)
    found = zelda.score(learner, zelda.Environment(source, args, 0), args)
    source.close()
    assert found >= 5


# --- the document's table -----------------------------------------------------------------------------------


@pytest.fixture
def gauges(zelda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    reported: dict[str, float] = {}
    monkeypatch.setattr("paceline.gauge", reported.__setitem__)
    return reported


def test_a_profiled_rollout_reports_the_documents_categories(
    zelda: ModuleType, baseline: Trained, gauges: dict[str, float]
) -> None:
    profiled = train_zelda(zelda, "--profiled-rollout", "2")
    time_shares = import_script(ZELDA, "time_shares")
    seconds = {part.name: gauges[f"profiled_seconds.{part.name}"] for part in time_shares.CATEGORIES}
    assert profiled.parameters == baseline.parameters
    assert min(seconds.values()) > 0
    assert sum(seconds.values()) + gauges["profiled_seconds.other"] == pytest.approx(
        gauges["profiled_seconds.all"]
    )
    assert gauges["profiled_calls.action_to_array"] == 70_000
    assert gauges["profiled_calls.equipment_isinstance"] == 400_000


def test_another_profiler_is_left_alone(zelda: ModuleType, gauges: dict[str, float]) -> None:
    threading.setprofile(lambda *_: None)
    try:
        train_zelda(zelda, "--profiled-rollout", "2")
    finally:
        threading.setprofile(None)
    assert "profiled_seconds.all" not in gauges


def test_every_claim_can_be_measured_or_says_why_not() -> None:
    claims = tomllib.loads((ZELDA / "claims.toml").read_text())["claims"]
    toggles = {spec.name for spec in dataclasses.fields(import_script(ZELDA, "arguments").Args)}
    sides = [claim[side] for claim in claims for side in ("case", "before", "after") if side in claim]
    numbers = [claim for claim in claims if "value" in claim]
    assert len({claim["id"] for claim in claims}) == len(claims)
    assert [claim["id"] for claim in claims if "untestable" in claim] == ["tests"]
    assert len(numbers) > 60
    assert {name for side in sides for name in side} <= toggles


# --- arguments and words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--is-load"], "there is no argument --is-load, did you mean --is-loaded?"),
        (["--variant", "fast"], "--variant is 'fast', must be one of baseline, optimized, beyond"),
        (["--workers", "-1"], "--workers is -1, must be from 0 to 64"),
        (["--workers", "3"], "--rollout is 128, must be a multiple of --workers, 3"),
        (["--epochs", "many"], "argument --epochs: invalid int value: 'many'"),
        (["--learning-rate", "nan"], "--learning-rate is nan, must be from 0 to 1"),
        (["--device", "gpu"], "--device is 'gpu', must be one of cpu, cuda, auto"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    zelda: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(zelda, arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err == f"train.py: {sentence}\n"


@pytest.mark.parametrize(("workers", "why"), [("0", ": not here"), ("2", "")])
def test_a_machine_without_the_emulator_says_what_it_can_not_run(
    tmp_path: Path, workers: str, why: str
) -> None:
    (tmp_path / "stable_retro.py").write_text("raise ImportError('not here')")
    path = f"{tmp_path}:{ROOT / 'trainers/harness/src'}"
    ended = run_script(ZELDA / "train.py", "--workers", workers, env={"PYTHONPATH": path})
    sentence = "zelda_overworld can't run here, since its emulator, the package stable-retro, is missing"
    assert (ended.returncode, ended.stderr) == (1, f"train.py: {sentence}{why}\n")


def test_the_script_says_its_path_score_states_and_parameters() -> None:
    more = ["--total-steps", "8", "--device", "cpu", "--score-games", "1", "--score-steps", "5"]
    said = run_script(ZELDA / "train.py", *more, check=True, cwd=ROOT).stdout
    assert re.fullmatch(
        r"path: cpu, 1 thread, variant optimized; .+\nscore: \S+ things found per game\n"
        r"states: [0-9a-f]{8}\nparameters: [0-9a-f]{64}\n",
        said,
    )


def test_the_variants_set_the_same_toggles(zelda: ModuleType) -> None:
    variants = import_script(ZELDA, "arguments").VARIANTS
    assert {frozenset(toggles) for toggles in variants.values()} == {frozenset(variants["baseline"])}
    assert parse_arguments(zelda, ["--variant", "baseline", "--lazy"]).lazy is True


def test_every_argument_has_a_line_of_documentation(zelda: ModuleType) -> None:
    assert all(len(spec.metadata["help"]) > 10 for spec in dataclasses.fields(zelda.Args))


def test_the_standard_size_is_the_one_the_guard_is_for(zelda: ModuleType) -> None:
    readme = (ZELDA / "README.md").read_text()
    assert MANIFEST["warmup_steps"] + MANIFEST["steps"] == parse_arguments(zelda, []).total_steps
    assert f"at least {MANIFEST['guard']['score']['minimum']} things" in readme


def test_every_toggle_is_in_the_readme(zelda: ModuleType) -> None:
    readme = (ZELDA / "README.md").read_text()
    toggles = [
        spec for spec in dataclasses.fields(zelda.Args) if spec.metadata["help"].startswith("toggle: ")
    ]
    missing = [spec.name for spec in toggles if f"`--{spec.name.replace('_', '-')}`" not in readme]
    assert (len(toggles), missing) == (20, [])
