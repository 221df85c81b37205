from __future__ import annotations

import collections
import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import paceline
import pytest
import torch
from paceline import claims
from paceline.manifest.script_arguments import format_arguments

from tests import prepared_python
from tests.trainers.conftest import ROOT, import_script, parse_arguments, run_script
from tests.trainers.cs2_vision_fixtures import FOLDER, HARNESS
from tests.trainers.cs2_vision_fixtures import screen as screen
from tests.trainers.cs2_vision_fixtures import vision as vision
from tests.trainers.cs2_vision_fixtures import weights as weights

MANIFEST = tomllib.loads((ROOT / "paceline.toml").read_text())["benchmarks"]["cs2_vision"]

NEUTRAL = [
    ["--keep-alive"],
    ["--pictures", "8", "--parallel", "2"],
    ["--transfer", "rgb"],
    ["--transfer", "packed", "--groups", "2"],
    ["--cache", "none"],
    ["--cache", "adaptive", "--cache-size", "0", "--evict", "frequent"],
    ["--similar", "--compact"],
    ["--history-limit", "64", "--history-storage", "palette"],
    ["--history-storage", "shared"],
    ["--collect", "idle"],
    ["--delta", "--asynchronous", "--adaptive"],
]


class Trained(NamedTuple):
    parameters: str
    counts: dict[str, float]
    observer: Any
    checkpoints: Any


@pytest.fixture(scope="module")
def service(vision: ModuleType, weights: Path) -> Iterator[Any]:
    with prepared_python.prepared_starts():
        service = vision.Service(vision.Setup("cpu", str(weights), threads=2))
    yield service
    service.close()


def train_agent(vision: ModuleType, service: Any, folder: Path, *arguments: str) -> Trained:
    counts: collections.Counter[str] = collections.Counter()
    few = ["--total-steps", "30", "--games", "2", "--batch-size", "8", "--checkpoint-every", "6"]
    args = parse_arguments(vision, ["--variant", "baseline", *few, *arguments])
    torch.manual_seed(0)
    client = vision.Client(service, keep_alive=args.keep_alive, transfer=args.transfer, compact=args.compact)
    agent = vision.Agent(args)
    observer = vision.Observer(
        args, client, vision.History(args.games, args.history_limit, args.history_storage)
    )
    checkpoints = vision.Checkpoints(args, agent, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paceline, "count", lambda name, n=1: counts.update({name: n}))
        vision.train(args, observer, agent, checkpoints)
        checkpoints.close()
    client.close()
    return Trained(agent.fingerprint(), dict(counts), observer, checkpoints)


@pytest.fixture
def trained(vision: ModuleType, service: Any, tmp_path: Path) -> Any:
    return partial(train_agent, vision, service, tmp_path)


@pytest.fixture(scope="module")
def baseline(vision: ModuleType, service: Any, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_agent(vision, service, tmp_path_factory.mktemp("baseline"))


def vision_request(body: bytes, *, later: bool) -> Any:
    return import_script(FOLDER, "client").Request(body, later)


# --- the service, its network, its answers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latency", "rate", "sizes", "arrivals"),
    [
        (0.0, 0.0, [10**6, 10**6], [5.0, 5.0]),
        (0.02, 0.0, [10**6, 10**6], [5.02, 5.02]),
        (0.02, 1e6, [99_800, 199_800], [5.12, 5.32]),
    ],
)
def test_messages_share_the_bandwidth_and_wait_for_latency_side_by_side(
    latency: float, rate: float, sizes: list[int], arrivals: list[float]
) -> None:
    line = import_script(FOLDER, "network").Line(latency, rate)
    assert [line.arrival(size, 5.0) for size in sizes] == pytest.approx(arrivals)


def test_a_request_takes_as_long_as_its_network(vision: ModuleType, weights: Path, screen: Any) -> None:
    setup = vision.Setup("cpu", str(weights), threads=2, latency_ms=500, bandwidth_mbit=10)
    with prepared_python.prepared_starts():
        service = vision.Service(setup)
    client = vision.Client(service, keep_alive=True, transfer="palette", compact=True)
    request = vision_request(screen.tobytes(), later=False)

    def time_requests(count: int) -> float:
        began = time.perf_counter()
        for sent in [client.send(request) for _ in range(count)]:
            client.receive(sent)
        return time.perf_counter() - began

    try:
        # Both connections are made before: a new one costs a round trip more.
        time_requests(2)
        alone = time_requests(1)
        # A busy machine may delay a try; where one waited for the other, none could be that short.
        both = min(time_until(partial(time_requests, 2), 2 * 0.5155))
    finally:
        service.close()
    # 500 ms, and 15.5 ms for 19,400 bytes. Two wait side by side.
    assert alone >= 0.5155
    assert 0.5 + 2 * 0.0155 <= both < 2 * 0.5155


def time_until(measure: Callable[[], float], below: float) -> Iterator[float]:
    """What each try took, until one is short enough, or five were too long."""
    for _ in range(5):
        took = measure()
        yield took
        if took < below:
            return


def test_the_service_says_how_busy_it_is(vision: ModuleType, service: Any, screen: Any) -> None:
    client = vision.Client(service, keep_alive=True, transfer="palette", compact=True)
    client.usage()
    idle: list[float] = []
    while len(idle) <= 5:
        time.sleep(0.2)
        idle += client.usage()["service"]
    client.ask([vision_request(screen.tobytes() * 8, later=False)] * 20)
    busy = client.usage()["service"]
    # How much of a processor a busy service gets is the machine's choice.
    assert np.mean(idle) < 20
    assert np.mean(busy) > 5 * np.mean(idle)


def test_both_formats_of_an_answer_say_the_same() -> None:
    wording, answers = import_script(FOLDER, "wording"), import_script(FOLDER, "answers")
    detector = import_script(FOLDER, "detector")
    for target in (None, (70, 55, 20)):
        view = detector.View("play", target, 0.9, 75, 20, True)
        seen = answers.from_words(wording.in_words(view))
        assert seen == answers.from_list(wording.in_short(view))
        assert seen == answers.ScreenState("play", target, 75, 20, killed=True)


def test_a_request_that_is_none_is_refused_and_the_service_goes_on(vision: ModuleType, service: Any) -> None:
    client = vision.Client(service, keep_alive=True, transfer="palette", compact=True)
    with pytest.raises(vision.ServiceError, match="the vision service refused a request: ValueError"):
        client.ask([vision_request(b"no picture", later=False)])
    client.head = client.head.replace("/look", "/see")
    with pytest.raises(vision.ServiceError, match="there is no POST /see, only POST /look and GET /usage"):
        client.ask([vision_request(b"", later=False)])
    assert service.process.poll() is None


def test_the_service_ends_when_its_starter_is_killed(weights: Path) -> None:
    setup = f"client.Setup('cpu', {str(weights)!r})"
    code = f"import client, time; print(client.Service({setup}).process.pid, flush=True); time.sleep(99)"
    path = {**os.environ, "PYTHONPATH": f"{FOLDER}:{HARNESS}"}
    with prepared_python.prepared_starts():
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
    known = cache.LruCache(cache.ExactLookup(), size=2, timeout=5)
    for step, key in enumerate((b"a", b"b")):
        known.put(key, key.decode(), step)
    assert (known.get(b"a", 4), known.get(b"a", 5), known.get(b"b", 5)) == ("a", None, "b")
    known.put(b"c", "c", 5)
    assert (known.get(b"a", 4), known.get(b"c", 6)) == (None, "c")


def test_a_lifetime_doubles_where_the_answer_was_right() -> None:
    cache = import_script(FOLDER, "cache")
    known = cache.TTLAdaptiveCache(cache.ExactLookup(), 4, 8, lambda answer, other: answer == other)
    lifetimes = []
    for step, text in enumerate(("here", "here", "here", "there", "here")):
        known.put(b"key", text, step)
        lifetimes.append(known.entries[0].lifetime)
    assert lifetimes == [8, 16, 32, 16, 8]


def test_what_was_used_least_makes_room() -> None:
    cache = import_script(FOLDER, "cache")
    known = cache.LruCache(cache.ExactLookup(), size=2, timeout=50, frequent=True)
    for step, key in enumerate((b"a", b"b")):
        known.put(key, key.decode(), step)
    assert (known.get(b"a", 3), known.get(b"a", 4), known.get(b"b", 5)) == ("a", "a", "b")
    known.put(b"c", "c", 5)
    assert (known.get(b"a", 6), known.get(b"b", 6), known.get(b"c", 6)) == ("a", None, "c")


@pytest.mark.parametrize(
    ("size", "memory", "entries"), [(77, 2**40, 77), (0, 2**30, 256), (0, 2**34, 1024), (0, 2**40, 16_384)]
)
def test_the_size_of_a_cache_goes_by_the_memory(size: int, memory: int, entries: int) -> None:
    assert import_script(FOLDER, "cache").cache_entries(size, memory) == entries


def test_a_perceptual_hash_minds_neither_light_nor_noise(screen: Any) -> None:
    hashing = import_script(FOLDER, "hashing")
    noisy = screen.copy()
    noisy[::3, ::2] ^= 1
    hashes = hashing.perceptual_hashes(np.stack([screen, noisy, np.flip(screen, 1)]))
    first, second, third = (np.bitwise_count(hashes[0] ^ other).sum() for other in hashes)
    assert first == 0
    assert second < 20 < 40 < third
    known = hashing.PerceptualLookup(4, 20)
    known.put(hashes[0], 2)
    assert [known.find(key) for key in hashes] == [2, 2, None]


@pytest.mark.parametrize("storage", ["rgb", "palette", "shared"])
def test_the_history_keeps_its_last_pictures(vision: ModuleType, screen: Any, storage: str) -> None:
    history = vision.History(1, 3, storage)
    other = np.flip(screen, 0).copy()
    for picture in (screen, screen, other, other, other):
        history.add(0, picture, history.last[0])
    held = [history.storage.screen(kept.picture) for kept in history.observations]
    assert all((picture == other).all() for picture in held)
    assert history.bytes() == {"rgb": 3 * 57_600, "palette": 3 * 19_200, "shared": 19_200 + 48}[storage]


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
        next(at for at, kept in enumerate(run.observer.history.observations) if kept.seen.kind == "play")
        for run in (prompt, later)
    ]
    assert first[1] > first[0]


def test_groups_of_games_take_turns(trained: Any) -> None:
    run = trained("--variant", "beyond", "--groups", "2")
    games = [kept.game for kept in run.observer.history.observations]
    assert games[2:8] == [0, 1] * 3
    assert run.counts["cache_lookups"] + run.counts["ui_skipped"] == 62


def test_without_a_learning_rate_nothing_is_learned(trained: Any, baseline: Trained) -> None:
    still, untrained = trained("--learning-rate", "0"), trained("--total-steps", "1")
    assert still.parameters == untrained.parameters != baseline.parameters


def test_the_script_says_its_path_shares_qualities_and_parameters(weights: Path) -> None:
    more = [
        "--weights",
        str(weights),
        "--total-steps",
        "20",
        "--games",
        "2",
        "--score-steps",
        "2",
        "--device",
        "cpu",
    ]
    said = run_script(FOLDER / "train.py", *more, check=True, env={"PYTHONPATH": HARNESS}).stdout
    assert re.fullmatch(
        r"path: cpu, 1 thread, variant optimized; .+\ntime +share +document\n(.+%.+\n){5}"
        r"score: \S+ of the enemies are hit\ndetection: \S+ of the pictures are seen right\n"
        r"agreement: \S+ of the actions\nparameters: [0-9a-f]{64}\n",
        said,
    )


# --- arguments, claims, tables, words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--keep-alif"], "there is no argument --keep-alif, did you mean --keep-alive?"),
        (["--variant", "fast"], "--variant is 'fast', must be one of baseline, optimized, beyond"),
        (["--transfer", "jpeg"], "--transfer is 'jpeg', must be one of png, rgb, palette, packed"),
        (["--cache", "lfu"], "--cache is 'lfu', must be one of none, lru, adaptive"),
        (["--pictures", "0"], "--pictures is 0, must be from 1 to 64"),
        (["--latency-ms", "nan"], "--latency-ms is nan, must be from 0 to 10000"),
        (["--games", "many"], "argument --games: invalid int value: 'many'"),
        (
            ["--games", "1", "--variant", "beyond"],
            "--games is 1, must be at least 4 with --groups 4",
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


def test_a_machine_without_uvicorn_says_what_it_can_not_run(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('not here')")
    path = {"PYTHONPATH": f"{tmp_path}:{HARNESS}"}
    ended = run_script(FOLDER / "train.py", "--weights", str(weights), env=path)
    sentence = (
        "cs2_vision can't run here, since its vision service needs the package uvicorn, which is missing"
    )
    assert (ended.returncode, ended.stderr) == (1, f"train.py: {sentence}\n")


@pytest.mark.usefixtures("gpu")
def test_every_case_of_a_claim_is_one_that_the_script_takes(
    vision: ModuleType,
) -> None:
    found = claims.load_claims(FOLDER / claims.FILE_NAME).claims
    assert len(found) == 63
    for side in [side for claim in found for side in (claim.before, claim.after) if side is not None]:
        args = parse_arguments(vision, format_arguments(side))
        assert all(getattr(args, key) == value for key, value in side.items())


def test_every_toggle_is_claimed_and_in_the_readme(vision: ModuleType) -> None:
    fields, readme = dataclasses.fields(vision.Args), (FOLDER / "README.md").read_text()
    toggles = {spec.name for spec in fields if spec.metadata["help"].startswith("toggle: ")}
    assert toggles == {
        claim.toggle for claim in claims.load_claims(FOLDER / claims.FILE_NAME).claims if claim.toggle
    }
    assert [name for name in toggles if f"`--{name.replace('_', '-')}`" not in readme] == []
    assert len(toggles) == 21


def test_every_phase_of_a_claim_is_marked_in_the_script() -> None:
    text = "".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    found = claims.load_claims(FOLDER / claims.FILE_NAME).claims
    parts = {part for claim in found for part in (claim.phase or "api").split("/")}
    assert [part for part in parts if f'phase("{part}")' not in text] == []


def test_the_variants_set_the_same_toggles(vision: ModuleType) -> None:
    variants = import_script(FOLDER, "arguments").VARIANTS
    assert {frozenset(toggles) for toggles in variants.values()} == {frozenset(variants["baseline"])}
    assert parse_arguments(vision, ["--variant", "baseline", "--groups", "2"]).groups == 2


def test_the_standard_size_is_the_one_the_guard_is_for(vision: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text()
    assert MANIFEST["warmup_steps"] + MANIFEST["steps"] == parse_arguments(vision, []).total_steps
    assert f"at least {MANIFEST['guard']['score']['minimum']}" in readme
    assert f"at least {MANIFEST['guard']['agreement']['minimum']}" in readme
    assert f"at least {MANIFEST['guard']['detection']['minimum']}" in readme


def test_the_tables_put_the_document_beside_what_was_measured() -> None:
    table = import_script(FOLDER, "table")
    phases = [{"path": "serialize", "total": 1e-3}, {"path": "api", "total": 6e-3}]
    values = {"step_time": 0.01, "gauge.service_memory": 6e8, "gauge.trainer_memory": 4e8}
    metrics = [{"name": name, "value": value, "phase": None} for name, value in values.items()]
    document = {"phases": phases, "metrics": metrics}
    assert "API: serialize and call               7.00   70.0%   about 75%" in table.shares(document)
    assert "Vision service                      600.00   60.0%      60-70%" in table.memory(document)
    assert "api_calls                                -" in table.counts(document)
