"""One confirmation: two commits side by side on this machine, repetition by repetition."""

from __future__ import annotations

import json
import logging
import shlex
import threading
import time
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Side:
    """One of the two commits, checked out and with its environment."""

    code: Code
    python: Path


def is_disturbed(found: Document) -> bool:
    return any(doubt.taints and doubt.code in DISTURBANCES for doubt in found.warnings)


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
        commands = [self.command(sides[name]) for name in SIDES]
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

    def pair(self, sides: dict[str, Side], index: int) -> PairMeasured:
        """One repetition of each: good first in even pairs, bad first in odd ones: A B B A and again."""
        started = time.monotonic()
        order = SIDES if index % 2 == 0 else SIDES[::-1]
        found: dict[str, tuple[float, bool]] = {}
        for name in order:
            self.pulse.activity = f"pair {index + 1}, {name} commit {sides[name].code.commit[:10]}"
            found[name] = self.value(self.measured(sides[name]))
        return PairMeasured(
            index=index,
            good_first=order[0] == "good",
            good=found["good"][0],
            bad=found["bad"][0],
            disturbed=found["good"][1] or found["bad"][1],
            seconds=time.monotonic() - started,
        )

    def measured(self, side: Side) -> Document:
        """One repetition of one commit."""
        scratches = launching.scratch_folder(self.home, self.assignment.machine)
        try:
            with machine_trouble(SideError), scratches as scratch:
                return document.read(launching.measure(self.measurement(side), scratch, self.log, self.stop))
        except document.DocumentError as error:
            raise BadDocumentError(f"{side.code.commit[:10]}: {error}") from error
        except MeasuringError as error:
            raise SideError(f"{side.code.commit[:10]}: {error}") from error

    def measurement(self, side: Side) -> launching.Measurement:
        job = self.assignment
        return launching.Measurement(
            benchmark=job.benchmark,
            params=job.params,
            repetitions=1,
            quick=job.quick,
            time_limit=side.code.benchmark.time_limit,
            checkout=side.code.folder,
            python=side.python,
            timed_only=True,
            lock=self.lock,
            limits=Limits(data=settings.PACELINE_MEMORY_LIMIT or None),
        )

    def value(self, found: Document) -> tuple[float, bool]:
        """The weighed metric's value, and whether other work disturbed it."""
        job = self.assignment
        row = found.metric(job.metric, job.phase)
        if row is None:
            raise SideError(f"The document has no {job.metric}{f' of {job.phase}' if job.phase else ''}.")
        return row.value, row.kind in document.TIMED and is_disturbed(found)

    def command(self, side: Side) -> str:
        """What reproduces one repetition by hand, in a checkout of the commit."""
        job = self.assignment
        # As JSON: `True` would be read as a word, "7" as a number.
        settings_ = [f"--set={name}={json.dumps(value)}" for name, value in job.params.items()]
        quick = ["--quick"] if job.quick else []
        kept = ["--manifest=../paceline.toml", "--folder=."] if job.manifest else []
        words = ["python", "-m", "paceline", "run", job.benchmark, *settings_, *quick, *kept]
        command = shlex.join([*words, "--repetitions=1", "--timed-only"])
        note = "  # ../paceline.toml: the manifest that the project keeps on the site" if job.manifest else ""
        return f"git checkout {side.code.commit[:10]} && {command}{note}"
