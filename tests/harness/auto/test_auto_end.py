"""How an unmodified script is ended when its window is complete, also one that doesn't want to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from multiprocessing import process
from pathlib import Path

import pytest
from paceline.measured.child_hooks import LONGEST_FOLDER, keep_sockets_in

from tests.harness.strangers import PLAY, TRAIN, UNCOMPILED, phase_counts, run_script, write_gymnasium


def test_finally_blocks_run(tmp_path: Path) -> None:
    run_script(tmp_path, TRAIN + "\ntry:\n    main(10**6)\nfinally:\n    open('tidied', 'w')\n")
    assert (tmp_path / "tidied").exists()


def test_a_script_that_fails_while_it_tidies_up_was_measured(tmp_path: Path) -> None:
    left = run_script(tmp_path, TRAIN + "\ntry:\n    main(10**6)\nfinally:\n    best + 1\n")
    assert left["ended"]


@pytest.mark.parametrize("kind", ["BaseException", "SystemExit"])
def test_a_script_that_swallows_the_end_is_ended(tmp_path: Path, kind: str) -> None:
    loop = f"""
while True:
    try:
        main(10**6)
    except {kind}:
        print("and again")
"""
    left = run_script(tmp_path, TRAIN + loop)
    assert left["ended"]


def test_threads_and_workers_do_not_hang_the_end(tmp_path: Path) -> None:
    threads = """
import threading
if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait).start()
    main(10**6)
"""
    script = TRAIN.replace("batch_size=16", "batch_size=16, num_workers=1")
    left = run_script(tmp_path, script + threads)
    assert "data_loading" in set(phase_counts(left))


ITERATED = (
    TRAIN.partition("def main")[0]
    + """
rows = torch.utils.data.TensorDataset(torch.randn(10**5, 32))
loader = torch.utils.data.DataLoader(rows, batch_size=16, num_workers=2, multiprocessing_context="fork")
iterator = iter(loader)
model = nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(*next(iterator)).square().mean().backward()
    optimizer.step()
"""
)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Where addresses of sockets fit, which pytest's own folders may be too long for."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_loaders_that_are_ended_while_iterated_leave_no_folders(
    short_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert run_script(short_folder, ITERATED)["ended"]
    assert list(tmp_path.glob("pymp-*")) == []
    # Their workers were ended by a signal: what they leave is in the folder that the harness removes.
    left = (short_folder / "measured").iterdir()
    assert sum(path.name.startswith(("listener-", "sock-")) for path in left) == 2


@pytest.mark.parametrize(("length", "kept"), [(LONGEST_FOLDER, True), (LONGEST_FOLDER + 1, False)])
def test_sockets_stay_where_they_are_where_their_addresses_would_be_too_long(
    monkeypatch: pytest.MonkeyPatch, length: int, kept: bool
) -> None:
    settings: dict[str, str] = {}
    monkeypatch.setattr(process.current_process(), "_config", settings)
    folder = Path("/" + (length - 1) * "a")
    keep_sockets_in(folder)
    assert settings == ({"tempdir": str(folder)} if kept else {})


def test_steps_in_another_thread_end_the_main_one(tmp_path: Path) -> None:
    threads = """
import threading
worker = threading.Thread(target=main, args=(10**6,), daemon=True)
worker.start()
worker.join()
"""
    left = run_script(tmp_path, TRAIN + threads)
    assert "forward" in set(phase_counts(left))


# One optimizer, whose steps are taken in many threads, one at a time.
STEPS = (
    UNCOMPILED
    + """
import asyncio, concurrent.futures, threading
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lock = threading.Lock()
def step(number=0):
    with lock:
        model(torch.randn(256, 32)).square().mean().backward()
        optimizer.step()
"""
)
THREADS = {
    "an epoch's own": """
def epoch():
    for number in range(7):
        step()
while True:
    thread = threading.Thread(target=epoch)
    thread.start()
    thread.join()
""",
    "a step's own": """
while True:
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
""",
    "pools": """
pools = [concurrent.futures.ThreadPoolExecutor(1) for _ in range(4)]
for number in range(10**6):
    pools[number // 7 % 4].submit(step).result()
""",
    "an event loop's": """
async def work():
    while True:
        await asyncio.to_thread(step)
async def main():
    await asyncio.gather(*[work() for _ in range(4)])
asyncio.run(main())
""",
}


@pytest.mark.parametrize("threads", THREADS)
def test_several_threads_may_take_the_steps(tmp_path: Path, threads: str) -> None:
    left = run_script(tmp_path, STEPS + THREADS[threads], steps=40)
    result = left["result"]
    assert result["several_threads"]
    assert result["waited"] == 0
    assert {"forward", "backward", "optimizer"} <= set(phase_counts(left))
    assert 0.9 < phase_counts(left)["forward"] <= 1.1
    main = [row for row in result["phases"] if row["thread"] == "main"]
    assert sum(row["self"] for row in main) == pytest.approx(result["step_time"]["mean"], rel=0.1)


@pytest.mark.parametrize("threads", THREADS)
def test_what_several_threads_do_is_counted(tmp_path: Path, threads: str) -> None:
    left = run_script(tmp_path, STEPS + THREADS[threads], steps=20, kind="counting")
    steps = sum(tally["optimizer_steps"] for tally in left["result"]["operations"].values())
    assert steps == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("threads", ["a step's own", "an event loop's"])
def test_what_several_threads_do_is_not_profiled(tmp_path: Path, threads: str) -> None:
    left = run_script(tmp_path, STEPS + THREADS[threads], kind="profiling")
    assert left["result"]["trace"] is None
    assert "several threads took the steps" in left["result"]["error"]


def test_forked_environments_take_no_steps(tmp_path: Path) -> None:
    write_gymnasium(tmp_path)
    loop = """
import multiprocessing, torch
def play():
    env = Walk()
    for _ in range(500):
        env.step(1)
weight = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for number in range(10**6):
    if number % 10 == 0:
        child = multiprocessing.get_context("fork").Process(target=play)
        child.start()
        child.join()
        assert child.exitcode == 0
    weight.sum().backward()
    optimizer.step()
"""
    left = run_script(tmp_path, PLAY + loop)
    assert set(phase_counts(left)) == {"backward", "optimizer"}


def test_a_loop_of_the_scripts_own_wins(tmp_path: Path) -> None:
    loop = """
import paceline
model = nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
for _ in paceline.steps(range(10**6)):
    with paceline.phase("learn"):
        for _ in range(3):
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
paceline.quality("score", 1.0)
"""
    left = run_script(tmp_path, TRAIN + loop)
    found = phase_counts(left)
    assert (found["learn"], found["learn/optimizer"]) == (1, 3)
    assert left["result"]["quality"] == {"score": 1.0}
    assert not left["ended"]
