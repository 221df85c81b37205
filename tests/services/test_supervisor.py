from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.services import ServiceError
from dashboard.services.processes import CHECKOUT
from dashboard.services.supervisor import Supervisor
from tests.services.programs import (
    OBEDIENT,
    STUBBORN,
    WITH_GRANDCHILD,
    becomes_true,
    is_alive,
    python_program,
    read_pid,
)


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, printed: list[str]) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "logs", lambda name, line: printed.append(f"{name}: {line}"))
    yield supervisor
    supervisor.stop()


def test_programs_stop_in_reverse_order(tmp_path, supervisor):
    for name in ("first", "second", "third"):
        supervisor.start(python_program(tmp_path, name))
    supervisor.stop()
    assert (tmp_path / "order").read_text().split() == ["third", "second", "first"]


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("act", ["start", "run"])
def test_a_stop_ends_what_is_waited_for(tmp_path, act):
    looks = iter(range(3))

    def check_stop() -> None:
        if next(looks) == 2:
            raise Interrupted

    supervisor = Supervisor(tmp_path / "logs", check_stop=check_stop)
    with pytest.raises(Interrupted):
        getattr(supervisor, act)(python_program(tmp_path, "slow", ready=lambda: False))
    supervisor.stop()


def test_neighbours_that_belong_together_end_at_once(tmp_path, supervisor):
    supervisor.start(python_program(tmp_path, "database"))
    # Each ends by itself once all were asked to; a group that is asked one by one has to be killed.
    together = """
    while open("order").read().count(" ") < 3: time.sleep(0.01)
    open("ended", "a").write("x")
    sys.exit(0)"""
    code = OBEDIENT.replace("\n    sys.exit(0)", together)
    for name in ("web", "worker", "beat"):
        supervisor.start(python_program(tmp_path, name, code, stop_group="site"))
    supervisor.stop()
    assert (tmp_path / "ended").read_text() == "xxx"
    assert (tmp_path / "order").read_text().split()[-1] == "database"


def test_a_crashed_program_is_started_again(tmp_path, supervisor, printed):
    supervisor.start(python_program(tmp_path, "web"))
    first = supervisor.pid("web")
    os.kill(first, signal.SIGKILL)
    supervisor.watch(until=lambda: supervisor.pid("web") != first)
    assert is_alive(supervisor.pid("web"))
    assert "paceline: web ended (SIGKILL); starting it again." in printed


def test_a_program_that_may_end_stays_ended(tmp_path, supervisor):
    code = """
import os, time
open("starts", "a").write("x")
while not os.path.exists("end"): time.sleep(0.01)
"""
    supervisor.start(python_program(tmp_path, "a", code, may_end=True, ready=(tmp_path / "starts").exists))
    pid = supervisor.pid("a")
    (tmp_path / "end").touch()
    assert becomes_true(lambda: not is_alive(pid))
    for _ in range(3):
        supervisor.restart_crashed()
    assert (tmp_path / "starts").read_text() == "x"


def test_a_program_that_keeps_crashing_is_given_pauses(tmp_path, supervisor, printed):
    code = "open('starts', 'a').write('x'); raise SystemExit('no luck')"
    supervisor.start(python_program(tmp_path, "bad", code, ready=lambda: True))
    supervisor.watch(until=lambda: len(printed) >= 6)
    # At once, after 0.2 s, after 1 s: three starts bring three sentences.
    assert (tmp_path / "starts").read_text() == "xxx"
    assert printed.count("paceline: bad ended (no luck); starting it again.") == 3


def test_a_failing_start_is_told_by_its_last_line(tmp_path, supervisor):
    bad = python_program(tmp_path, "bad", "raise SystemExit('port is taken')")
    with pytest.raises(ServiceError, match=r"^bad didn't start: port is taken \(log: .*bad\.log\)$"):
        supervisor.start(bad)


def test_a_start_is_tried_again_where_that_may_help(tmp_path, supervisor):
    code = """
import os, time
if not os.path.exists("second"):
    open("second", "w"), exit(1)
open("picky.pid", "w"), time.sleep(60)
"""
    supervisor.start(python_program(tmp_path, "picky", code, retry_for=5))
    assert is_alive(supervisor.pid("picky"))


def test_a_stubborn_program_is_killed_after_its_grace(tmp_path, supervisor):
    supervisor.start(python_program(tmp_path, "stubborn", STUBBORN, grace=0.2))
    pid = supervisor.pid("stubborn")
    supervisor.stop()
    assert not is_alive(pid)


def test_grandchildren_end_with_their_group(tmp_path, supervisor):
    supervisor.start(python_program(tmp_path, "parent", WITH_GRANDCHILD))
    grandchild = read_pid(tmp_path, "parent")
    supervisor.stop()
    assert becomes_true(lambda: not is_alive(grandchild))


def test_children_end_when_the_supervisor_is_killed(tmp_path):
    code = f"""
import sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from pathlib import Path
from dashboard.services.supervisor import Supervisor
from tests.services.programs import python_program
folder = Path({str(tmp_path)!r})
Supervisor(folder / "logs").start(python_program(folder, "orphan"))
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    orphan = read_pid(tmp_path, "orphan")
    process.kill()
    process.wait()
    assert becomes_true(lambda: not is_alive(orphan))


def test_output_goes_to_the_log_and_to_the_terminal(tmp_path, supervisor, printed):
    supervisor.run(python_program(tmp_path, "loud", "print('hello')"))
    supervisor.run(python_program(tmp_path, "quiet", "print('hush')", quiet=True))
    assert printed == ["loud: hello"]
    assert (tmp_path / "logs" / "quiet.log").read_text() == "hush\n"


def test_a_failing_step_is_told_by_its_last_line(tmp_path, supervisor):
    with pytest.raises(ServiceError, match=r"^migrate failed: no such table"):
        supervisor.run(python_program(tmp_path, "migrate", "raise SystemExit('no such table')"))


def test_a_terminal_that_is_gone_stops_nobody(tmp_path):
    def print_line(name: str, line: str) -> None:
        raise BrokenPipeError

    supervisor = Supervisor(tmp_path / "logs", print_line)
    supervisor.run(python_program(tmp_path, "loud", "print('one'); print('two')"))
    supervisor.stop()
    assert (tmp_path / "logs" / "loud.log").read_text().count("\n") == 2


def test_a_program_may_let_others_go_first(tmp_path, supervisor):
    supervisor.start(python_program(tmp_path, "judging", niceness=7))
    supervisor.start(python_program(tmp_path, "web"))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    found = [os.getpriority(os.PRIO_PROCESS, supervisor.pid(name)) for name in ("judging", "web")]
    assert found == [min(19, own + 7), own]
