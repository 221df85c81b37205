"""One confirmation: two commits side by side on this machine, repetition by repetition."""

from __future__ import annotations

import json
import logging
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from paceline import document
from paceline.document import Document

from dashboard import regressions, runs
from dashboard.regressions import ConfirmationAssignment, PairMeasured
from workers import bells, launching
from workers.codes import Code, Source
from workers.errors import BadDocumentError, BuildError, CheckoutError, MeasuringError, Stopped
from workers.logs import Log
from workers.measuring import machine_trouble, patiently
from workers.processes import Limits
from workers.pulse import Pulse

logger = logging.getLogger(__name__)

SIDES = ("good", "bad")
# Warnings about what happened around the code: such a pair is measured, shown and not weighed.
DISTURBANCES = ("processor_contention", "throttling", "co_tenant", "clock_change", "calibration_drift")
SWEPT = "scaling_contention"
# A machine that changes its speed meanwhile does so for both that take turns.
MEETS_BOTH = ("clock_change", "calibration_drift")


@dataclass(frozen=True)
class Side:
    """One of the two commits, checked out and with its environment."""

    code: Code
    python: Path


def is_disturbed(found: Document, in_turns: bool) -> bool:
    disturbances = set(DISTURBANCES) - set(MEETS_BOTH if in_turns else ())
    if found.scaling:
        # The sweep is what is weighed: of a run it keeps nothing else out of judgement.
        disturbances.add(SWEPT)
    return any(
        doubt.code in disturbances and (doubt.taints or doubt.code == SWEPT) for doubt in found.warnings
    )


def own_times(good: Document, bad: Document) -> dict[str, tuple[float, float]]:
    """Seconds per step in each phase itself, of both; 0 where one hasn't that phase."""
    sides = [
        {row.phase: row.value for row in found.metrics if row.name == "phase_self_time" and row.phase}
        for found in (good, bad)
    ]
    return {phase: (sides[0].get(phase, 0.0), sides[1].get(phase, 0.0)) for phase in sides[0] | sides[1]}


def sweeps_of(good: Document, bad: Document) -> dict[str, Any]:
    """The points of both sweeps and what else reads a metric off them; empty where they aren't alike."""
    if not good.scaling or not bad.scaling:
        return {}
    if (good.scaling.parameter, good.scaling.params) != (bad.scaling.parameter, bad.scaling.params):
        return {}
    job = bad.job
    return {
        "parameter": bad.scaling.parameter,
        "amount": job.amount if job and job.source == "scaling" else None,
        "good": [asdict(point) for point in good.scaling.points],
        "bad": [asdict(point) for point in bad.scaling.points],
    }


class SideError(MeasuringError):
    """A commit that doesn't run: nothing can be weighed with it."""

    kind = "crash"


def confirm_next(pool: str) -> bool:
    """Carry the pool's next confirmation, if there is one and this machine is free. False: nothing done."""
    claim = regressions.claim_confirmation
    return bells.answer(pool, claim, lambda assignment, lock: Confirmer(assignment, lock).carry())


class Confirmer:
    """Carries one confirmation; `lock` is the file descriptor of the machine's lock."""

    def __init__(self, assignment: ConfirmationAssignment, lock: int) -> None:
        self.assignment = assignment
        self.lock = lock
        self.home: Path = settings.PACELINE_HOME
        self.log = Log()
        self.stop = threading.Event()
        self.pulse = Pulse(assignment.name, self.heartbeat, self.log, self.stop)

    def heartbeat(self, _progress: float | None, text: str, _log: str) -> bool:
        return regressions.confirmation_lives(self.assignment, text)

    def carry(self) -> None:
        """To a verdict. An exception of ours lets the lease run out: another worker goes on from here."""
        try:
            with self.pulse:
                sides = {name: self.side(name) for name in SIDES}
                verdict, index = "", self.assignment.pairs
                while not verdict:
                    verdict = self.keep(self.pair(sides, index), sides)
                    index += 1
            logger.info("%s: %s", self.assignment.name, verdict)
        except (Stopped, runs.LeaseLost):
            logger.info("%s is no longer ours: it was ended here", self.assignment.name)
        except MeasuringError as error:
            self.give_up(str(error))

    def keep(self, pair: PairMeasured, sides: dict[str, Side]) -> str:
        """Store the pair; the verdict, once there is one."""
        commands = [self.command(name, sides[name]) for name in SIDES]
        return patiently(lambda: regressions.add_pair(self.assignment, pair, commands))

    def give_up(self, reason: str) -> None:
        """What can't be measured can't be weighed; which commit it was, the reason says."""
        logger.info("%s can't be measured: %s", self.assignment.name, reason)
        try:
            patiently(lambda: regressions.conclude(self.assignment, "untestable", reason))
        except runs.LeaseLost:
            logger.info("%s had been given up before", self.assignment.name)

    def side(self, name: str) -> Side:
        """Check one commit out beside the other and have its environment built."""
        job = self.assignment
        commit = job.good if name == "good" else job.bad
        source = Source(job.project, job.repository, job.manifest, job.benchmark)
        self.pulse.activity = f"preparing {commit[:10]}"
        with machine_trouble(CheckoutError):
            code = source.code(commit, self.home, job.machine, self.stop, beside=f"-{name}")
        with machine_trouble(BuildError):
            return Side(code, code.python(self.home, self.log, self.stop))

    def pair(self, sides: Mapping[str, Side], index: int) -> PairMeasured:
        """One repetition of each: good first in even pairs, bad first in odd ones: A B B A and again."""
        started = time.monotonic()
        order = SIDES if index % 2 == 0 else SIDES[::-1]
        measure = self.in_turns if self.assignment.in_turns else self.in_sequence
        documents = measure({name: sides[name] for name in order}, f"pair {index + 1}")
        found = {name: self.value(documents[name]) for name in SIDES}
        return PairMeasured(
            index=index,
            good_first=order[0] == "good",
            good=found["good"][0],
            bad=found["bad"][0],
            disturbed=found["good"][1] or found["bad"][1],
            seconds=time.monotonic() - started,
            phases=own_times(documents["good"], documents["bad"]),
            sweeps=sweeps_of(documents["good"], documents["bad"]),
        )

    def in_sequence(self, sides: Mapping[str, Side], pair: str) -> dict[str, Document]:
        """One process after the other, in the order that is given."""
        found = {}
        for name, side in sides.items():
            self.pulse.activity = f"{pair}, {name} commit {side.code.commit[:10]}"
            with self.scratch_folder() as scratch:
                found[name] = self.measured(side, scratch, None, self.stop)
        return found

    def in_turns(self, sides: Mapping[str, Side], pair: str) -> dict[str, Document]:
        """Two processes side by side whose steps alternate; the first that is given begins."""
        self.pulse.activity = f"{pair}, both commits in turn"
        ended = threading.Event()
        with self.scratch_folder() as scratch, ThreadPoolExecutor(len(sides)) as pool:
            running = {}
            for (name, side), pipe in zip(sides.items(), launching.TURNS, strict=True):
                (folder := scratch / name).mkdir()
                running[name] = pool.submit(self.measured, side, folder, scratch / pipe, ended)
            try:
                self.await_all(list(running.values()), ended.set)
            finally:
                ended.set()
        return {name: one.result() for name, one in running.items()}

    def await_all(self, running: Sequence[Future[Document]], end: Callable[[], None]) -> None:
        """Until all have ended; where one fails or the confirmation is to stop, `end` is called for them."""
        left = set(running)
        while left:
            ended, left = wait(left, timeout=0.2, return_when=FIRST_EXCEPTION)
            if self.stop.is_set() or any(one.exception() for one in ended):
                end()
        failures = [failure for one in running if (failure := one.exception())]
        # What was ended because the other failed has nothing to say.
        for failure in sorted(failures, key=lambda failure: isinstance(failure, Stopped)):
            raise failure

    def scratch_folder(self) -> AbstractContextManager[Path]:
        return launching.scratch_folder(self.home, self.assignment.machine)

    def measured(self, side: Side, scratch: Path, turns: Path | None, stop: threading.Event) -> Document:
        """One repetition of one commit; with `turns` in turn with the other's, by the pipe of that name."""
        # Where both print at once, the last lines of each are to be told apart.
        log = Log() if turns else self.log
        try:
            with machine_trouble(SideError):
                raw = launching.measure(self.measurement(side, turns), scratch, log, stop)
                return document.read_document(raw)
        except document.DocumentError as error:
            raise BadDocumentError(f"{side.code.commit[:10]}: {error}") from error
        except MeasuringError as error:
            raise SideError(f"{side.code.commit[:10]}: {error}") from error

    def measurement(self, side: Side, turns: Path | None) -> launching.Measurement:
        job = self.assignment
        return launching.Measurement(
            benchmark=job.benchmark,
            params=job.params,
            repetitions=1,
            quick=job.quick,
            # In turn each takes as long as both.
            time_limit=side.code.benchmark.time_limit * (2 if turns else 1),
            checkout=side.code.folder,
            python=side.python,
            without=self.without(side),
            turns=turns,
            lock=self.lock,
            limits=Limits(data=settings.PACELINE_MEMORY_LIMIT or None),
        )

    def without(self, side: Side) -> str:
        """What is left out: the sweep as well, unless only that tells the weighed metric."""
        swept = side.code.benchmark.is_swept(self.assignment.metric)
        return launching.NO_COUNTING if swept else launching.TIMED_ONLY

    def value(self, found: Document) -> tuple[float, bool]:
        """The weighed metric's value, and whether other work disturbed it."""
        job = self.assignment
        row = found.metric(job.metric, job.phase)
        if row is None:
            raise SideError(f"The document has no {job.metric}{f' of {job.phase}' if job.phase else ''}.")
        return row.value, row.kind in document.TIMED_KINDS and is_disturbed(found, job.in_turns)

    def command(self, name: str, side: Side) -> str:
        """What reproduces one repetition by hand, in a clone of the repository.

        Of two that take turns the first runs in the background, and each in a worktree of its own.
        """
        job = self.assignment
        # As JSON: `True` would be read as a word, "7" as a number.
        settings_ = [f"--set={name}={json.dumps(value)}" for name, value in job.params.items()]
        quick = ["--quick"] if job.quick else []
        manifest = "../../paceline.toml" if job.in_turns else "../paceline.toml"
        kept = [f"--manifest={manifest}", "--folder=."] if job.manifest else []
        words = ["python", "-m", "paceline", "run", job.benchmark, *settings_, *quick, *kept]
        words += ["--repetitions=1", self.without(side)]
        note = f"  # {manifest}: the manifest that the project keeps on the site" if job.manifest else ""
        commit = side.code.commit[:10]
        if not job.in_turns:
            return f"git checkout {commit} && {shlex.join(words)}{note}"
        words.append(f"--turns=../{launching.TURNS[SIDES.index(name)]}")
        worktree = f"../turns/{name}"
        line = f"git worktree add --detach {worktree} {commit} && (cd {worktree} && {shlex.join(words)})"
        return f"{line}{' &' if name == SIDES[0] else ''}{note}"
