from __future__ import annotations

import collections
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import paceline
import pytest
import torch
from paceline import claims, protocol

from tests.trainers.conftest import ROOT, import_script, parse_arguments

FOLDER = ROOT / "trainers" / "cs2_vision"
MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["cs2_vision"]
HARNESS = str(ROOT / "trainers/harness/src")

NEUTRAL = [
    ["--keep-alive"],
    ["--pictures", "8", "--parallel", "2"],
    ["--transfer", "rgb"],
    ["--transfer", "palette"],
    ["--cache", "none"],
    ["--cache", "adaptive"],
    ["--similar", "--compact"],
    ["--history-limit", "64", "--history-storage", "palette"],
    ["--history-storage", "shared"],
    ["--collect", "idle"],
    ["--delta", "--asynchronous", "--adaptive"],
]


class Trained(NamedTuple):
    parameters: str
    counts: dict[str, float]
    sight: Any
    checkpoints: Any


@pytest.fixture(scope="module")
def vision() -> ModuleType:
    return import_script(FOLDER, "train")


@pytest.fixture(scope="module")
def service(vision: ModuleType) -> Iterator[Any]:
    service = vision.Service("cpu", 2, 1)
    yield service
    service.close()


def train_agent(vision: ModuleType, service: Any, folder: Path, *arguments: str) -> Trained:
    counts: collections.Counter[str] = collections.Counter()
    few = ["--total-steps", "30", "--games", "2", "--batch-size", "8", "--checkpoint-every", "6"]
    args = parse_arguments(vision, ["--variant", "baseline", *few, *arguments])
    torch.manual_seed(0)
    client = vision.Client(service, keep_alive=args.keep_alive, transfer=args.transfer, compact=args.compact)
    agent = vision.Agent(args)
    sight = vision.Sight(args, client, vision.History(args.games, args.history_limit, args.history_storage))
    checkpoints = vision.Checkpoints(args, agent, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paceline, "count", lambda name, n=1: counts.update({name: n}))
        vision.train(args, sight, agent, checkpoints)
        checkpoints.close()
    client.close()
    return Trained(agent.fingerprint(), dict(counts), sight, checkpoints)


@pytest.fixture
def trained(vision: ModuleType, service: Any, tmp_path: Path) -> Any:
    return partial(train_agent, vision, service, tmp_path)


@pytest.fixture(scope="module")
def baseline(vision: ModuleType, service: Any, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_agent(vision, service, tmp_path_factory.mktemp("baseline"))


@pytest.fixture
def screen(vision: ModuleType) -> Any:
    game = vision.Game(1)
    for _ in range(20):
        game.step(1)
    return game.screen()


# --- pictures, the service's network, its answers -----------------------------------------------------------


@pytest.mark.parametrize("transfer", ["png", "rgb", "palette"])
def test_a_picture_comes_through_unchanged(transfer: str, screen: Any) -> None:
    pictures = import_script(FOLDER, "pictures")
    come = pictures.decode(pictures.encode([screen, screen], transfer), transfer)
    assert come.shape == (2, 210, 160, 3)
    assert (come[1] == pictures.PALETTE[screen]).all()


def test_a_picture_as_a_file_is_a_png(screen: Any) -> None:
    pictures = import_script(FOLDER, "pictures")
    content = pictures.as_png(pictures.PALETTE[screen])
    assert content[:16] == b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    assert (pictures.from_png(content) == pictures.PALETTE[screen]).all()


def test_the_network_finds_what_is_on_the_screen(screen: Any) -> None:
    module, pictures = import_script(FOLDER, "vision"), import_script(FOLDER, "pictures")
    view = module.Vision(torch.device("cpu")).look(pictures.PALETTE[screen][None])[0]
    rows, columns = np.nonzero(screen[module.FIELD] == 14)
    assert (view.kind, view.points) == ("play", (0, 0))
    assert view.places[2] == (columns.min() // 2 * 2, rows.min())
    assert view.places[1] == (140, np.flatnonzero((screen[module.FIELD] == 200).any(1))[0])


def test_the_network_reads_every_number_of_points() -> None:
    module, pictures = import_script(FOLDER, "vision"), import_script(FOLDER, "pictures")
    screens = np.full((21, 210, 160), 34, dtype=np.uint8)
    for points, screen in enumerate(screens):
        for digit, column in ((points // 10, 20), (points % 10, 36)):
            if digit or column == 36:
                glyph = np.array([[block == "#" for block in row] for row in module.GLYPHS[digit]])
                screen[1:21, column : column + 12][glyph.repeat(4, 0).repeat(4, 1)] = 56
    views = module.Vision(torch.device("cpu")).look(pictures.PALETTE[screens])
    assert [view.points for view in views] == [(points, 0) for points in range(21)]


def test_both_formats_of_an_answer_say_the_same() -> None:
    module, answers = import_script(FOLDER, "vision"), import_script(FOLDER, "answers")
    view = module.View("play", ((16.0, 3.0), None, (70.0, 155.0)), (1.0, 0.1, 0.9), (20, 1))
    seen = answers.from_words(module.in_words(view))
    assert seen == answers.from_list(module.in_short(view))
    assert seen == answers.Seen("play", (16.0, 3.0), None, (70.0, 155.0), (20, 1))


def test_a_request_that_is_none_is_refused_and_the_service_goes_on(vision: ModuleType, service: Any) -> None:
    client = vision.Client(service, keep_alive=True, transfer="palette", compact=True)
    with pytest.raises(vision.ServiceError, match="the vision service refused a request: ValueError"):
        client.ask([vision.Request(b"no picture", later=False)])
    client.head = client.head.replace("/look", "/see")
    with pytest.raises(vision.ServiceError, match="there is no POST /see, only POST /look"):
        client.ask([vision.Request(b"", later=False)])
    assert service.process.poll() is None


def test_the_service_ends_when_its_starter_is_killed() -> None:
    code = "import client, time; print(client.Service('cpu', 1, 1).process.pid, flush=True); time.sleep(99)"
    path = {**os.environ, "PYTHONPATH": f"{FOLDER}:{HARNESS}"}
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=path, text=True)
    assert starter.stdout is not None
    number = int(starter.stdout.readline())
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    until = time.monotonic() + 30
    while Path(f"/proc/{number}/cmdline").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{number}/cmdline").exists()


# --- cache, history, checkpoints ----------------------------------------------------------------------------


def test_an_answer_expires_by_steps_and_the_oldest_makes_room() -> None:
    cache = import_script(FOLDER, "cache")
    known = cache.LruCache(cache.Exact(), size=2, timeout=5)
    for step, key in enumerate((b"a", b"b")):
        known.put(key, key.decode(), step)
    assert (known.get(b"a", 4), known.get(b"a", 5), known.get(b"b", 5)) == ("a", None, "b")
    known.put(b"c", "c", 5)
    assert (known.get(b"a", 4), known.get(b"c", 6)) == (None, "c")


def test_a_lifetime_doubles_where_the_answer_was_right() -> None:
    cache = import_script(FOLDER, "cache")
    known = cache.TTLAdaptiveCache(cache.Exact(), 4, 8, lambda answer, other: answer == other)
    lifetimes = []
    for step, text in enumerate(("here", "here", "here", "there", "here")):
        known.put(b"key", text, step)
        lifetimes.append(known.entries[0].lifetime)
    assert lifetimes == [8, 16, 32, 16, 8]


def test_fingerprints_are_as_far_apart_as_the_ball_moved() -> None:
    cache = import_script(FOLDER, "cache")
    screens = np.full((3, 210, 160), 34, dtype=np.uint8)
    for at, (row, column) in enumerate(((90, 70), (91, 72), (90, 120))):
        screens[at, row : row + 4, column : column + 2] = 14
    known = cache.Nearest(8, 3.0, cache.REGIONS["ball"])
    keys = known.keys(screens)
    assert np.abs(keys[0] - keys[1]).sum() == pytest.approx(3, abs=0.2)
    known.put(keys[0], 0)
    assert [known.find(key) for key in keys] == [0, 0, None]


@pytest.mark.parametrize("storage", ["rgb", "palette", "shared"])
def test_the_history_keeps_its_last_pictures(vision: ModuleType, screen: Any, storage: str) -> None:
    history = vision.History(1, 3, storage)
    other = np.flip(screen, 0).copy()
    for picture in (screen, screen, other, other, other):
        history.add(0, picture, history.last[0])
    held = [history.storage.screen(kept.picture) for kept in history.observations]
    assert all((picture == other).all() for picture in held)
    assert history.bytes() == {"rgb": 3 * 100_800, "palette": 3 * 33_600, "shared": 33_600 + 48}[storage]


def test_an_agent_comes_back_from_differences_bit_by_bit(trained: Any, tmp_path: Path) -> None:
    module = import_script(FOLDER, "checkpoints")
    run = trained("--delta", "--asynchronous")
    step, bits = module.load(tmp_path)
    agent = run.checkpoints.agent
    assert (step, run.counts["checkpoints"]) == (30, 5)
    assert (bits == module.state(agent)).all()
    before = agent.fingerprint()
    torch.nn.init.zeros_(agent.network[0].weight)
    module.restore(agent, bits)
    assert agent.fingerprint() == before


def test_stable_rewards_make_checkpoints_rare(trained: Any, baseline: Trained) -> None:
    assert trained("--adaptive").counts["checkpoints"] < baseline.counts["checkpoints"]


def test_a_checkpoint_that_can_not_be_written_ends_the_training(trained: Any, tmp_path: Path) -> None:
    (tmp_path / "000000.checkpoint").mkdir()
    with pytest.raises(IsADirectoryError):
        trained("--asynchronous")


# --- training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toggle", NEUTRAL, ids=" ".join)
def test_a_neutral_toggle_changes_no_bit(trained: Any, baseline: Trained, toggle: list[str]) -> None:
    assert trained(*toggle).parameters == baseline.parameters


def test_the_baseline_asks_twice_where_a_screen_changes(trained: Any) -> None:
    run = trained("--cache", "none")
    assert run.counts["api_calls"] > 62
    assert run.counts["parsed"] == run.counts["api_calls"]


def test_screens_without_play_are_skipped(trained: Any) -> None:
    run = trained("--skip-ui", "--cache", "none")
    assert run.counts["ui_skipped"] > 5
    assert run.counts["api_calls"] + run.counts["ui_skipped"] == 62


def test_answers_that_nobody_waits_for_come_a_decision_later(trained: Any) -> None:
    prompt, later = (trained("--cache", "none", *more) for more in ([], ["--priorities"]))
    first = [
        next(at for at, kept in enumerate(run.sight.history.observations) if kept.seen.kind == "play")
        for run in (prompt, later)
    ]
    assert first[1] > first[0]


def test_with_overlap_the_halves_take_turns(trained: Any) -> None:
    run = trained("--variant", "beyond")
    games = [kept.game for kept in run.sight.history.observations]
    assert games[2:8] == [0, 1] * 3
    assert run.counts["cache_lookups"] + run.counts["ui_skipped"] == 62


def test_without_a_learning_rate_nothing_is_learned(trained: Any, baseline: Trained) -> None:
    still, untrained = trained("--learning-rate", "0"), trained("--total-steps", "1")
    assert still.parameters == untrained.parameters != baseline.parameters


def test_counts_are_equal_whatever_the_hash_seed() -> None:
    code = (
        "import collections, json, paceline; counts = collections.Counter()\n"
        "paceline.count = lambda name, n=1: counts.update({name: n})\n"
        "import train, sys; train.main(); print(json.dumps(sorted(counts.items())))"
    )
    more = ["--variant", "beyond", "--total-steps", "20", "--games", "2", "--score-steps", "1"]
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, *more],
            env={"PYTHONPATH": f"{FOLDER}:{HARNESS}", "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "2")
    ]
    said = {run.communicate()[0] for run in runs}
    assert len(said) == 1
    assert {"api_calls", "bytes_sent", "cache_hits", "parsed"} <= set(
        dict(json.loads(said.pop().splitlines()[-1]))
    )


def test_the_script_says_its_path_qualities_and_parameters() -> None:
    more = ["--total-steps", "20", "--games", "2", "--score-steps", "2", "--device", "cpu"]
    command = [sys.executable, str(FOLDER / "train.py"), *more]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": HARNESS}
    ).stdout
    assert re.fullmatch(
        r"path: cpu, 1 thread, variant optimized; .+\nscore: \S+ of the balls that come near are met\n"
        r"agreement: \S+ of the actions\nparameters: [0-9a-f]{64}\n",
        said,
    )


# --- arguments, claims, tables, words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--keep-alif"], "there is no argument --keep-alif, did you mean --keep-alive?"),
        (["--variant", "fast"], "--variant is 'fast', must be one of baseline, optimized, beyond"),
        (["--transfer", "jpeg"], "--transfer is 'jpeg', must be one of png, rgb, palette"),
        (["--cache", "lfu"], "--cache is 'lfu', must be one of none, lru, adaptive"),
        (["--pictures", "0"], "--pictures is 0, must be from 1 to 64"),
        (["--threshold", "nan"], "--threshold is nan, must be at least 0"),
        (["--games", "many"], "argument --games: invalid int value: 'many'"),
        (
            ["--games", "1", "--variant", "beyond"],
            "--games is 1, must be at least 2 with --overlap",
        ),
        (["--device", "gpu"], "--device is 'gpu', must be one of cpu, cuda, auto"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    vision: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(vision, arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err == f"train.py: {sentence}\n"


@pytest.mark.parametrize(
    ("package", "sentence"),
    [
        ("ale_py", "since its emulator, the package ale-py, is missing: not here"),
        ("uvicorn", "since its vision service needs the package uvicorn, which is missing"),
    ],
)
def test_a_machine_without_a_part_says_what_it_can_not_run(
    tmp_path: Path, package: str, sentence: str
) -> None:
    (tmp_path / f"{package}.py").write_text("raise ImportError('not here')")
    command = [sys.executable, str(FOLDER / "train.py")]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": f"{tmp_path}:{HARNESS}"}
    )
    assert (ended.returncode, ended.stderr) == (1, f"train.py: cs2_vision can't run here, {sentence}\n")


@pytest.mark.usefixtures("gpu")
def test_every_case_of_a_claim_is_one_that_the_script_takes(
    vision: ModuleType,
) -> None:
    found = claims.load_claims(FOLDER / claims.FILE_NAME).claims
    assert len(found) == 55
    for side in [side for claim in found for side in (claim.before, claim.after) if side is not None]:
        args = parse_arguments(vision, protocol.format_arguments(side))
        assert all(getattr(args, key) == value for key, value in side.items())


def test_every_toggle_is_claimed_and_in_the_readme(vision: ModuleType) -> None:
    fields, readme = dataclasses.fields(vision.Args), (FOLDER / "README.md").read_text()
    toggles = {spec.name for spec in fields if spec.metadata["help"].startswith("toggle: ")}
    assert toggles == {
        claim.toggle for claim in claims.load_claims(FOLDER / claims.FILE_NAME).claims if claim.toggle
    }
    assert [name for name in toggles if f"`--{name.replace('_', '-')}`" not in readme] == []
    assert len(toggles) == 19


def test_every_phase_of_a_claim_is_marked_in_the_script() -> None:
    text = "".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    found = claims.load_claims(FOLDER / claims.FILE_NAME).claims
    parts = {part for claim in found for part in (claim.phase or "api").split("/")}
    assert [part for part in parts if f'phase("{part}")' not in text] == []


def test_the_variants_set_the_same_toggles(vision: ModuleType) -> None:
    variants = import_script(FOLDER, "arguments").VARIANTS
    assert {frozenset(toggles) for toggles in variants.values()} == {frozenset(variants["baseline"])}
    assert parse_arguments(vision, ["--variant", "baseline", "--overlap"]).overlap is True


def test_the_standard_size_is_the_one_the_guard_is_for(vision: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text()
    assert MANIFEST["warmup_steps"] + MANIFEST["steps"] == parse_arguments(vision, []).total_steps
    assert f"at least {MANIFEST['guard']['score']['minimum']}" in readme
    assert f"at least {MANIFEST['guard']['agreement']['minimum']}" in readme


def test_the_tables_put_the_document_beside_what_was_measured() -> None:
    table = import_script(FOLDER, "table")
    phases = [{"path": "serialize", "total": 1e-3}, {"path": "api", "total": 6e-3}]
    values = {"step_time": 0.01, "gauge.service_memory": 6e8, "gauge.trainer_memory": 4e8}
    metrics = [{"name": name, "value": value, "phase": None} for name, value in values.items()]
    document = {"phases": phases, "metrics": metrics}
    assert "API: serialize and call               7.00   70.0%   about 75%" in table.shares(document)
    assert "Vision service                      600.00   60.0%      60-70%" in table.memory(document)
    assert "api_calls                                -" in table.counts(document)
