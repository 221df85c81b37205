"""One experiment: two sides on this machine, repetition by repetition, until its verdict."""

from __future__ import annotations

import json
import logging
import random
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from paceline import document
from paceline.document import Document
from paceline.manifest import case_key
from paceline.phase_names import UNATTRIBUTED, spell_metric

from dashboard.host_protocol import CountedAnswer, ExperimentAssignment, PairMeasured, SideAssignment
from dashboard.host_protocol.message_fields import LONGEST_PATH, LONGEST_WORD
from workers.host.checkout.commit_code import CodeSource
from workers.host.configuration import HostConfiguration
from workers.host.errors import BadDocumentError, MeasuringError, Stopped
from workers.host.execution import launching, pair_values
from workers.host.execution.executor import Executor, PreparedCode, machine_trouble
from workers.host.execution.typical_times import typical_times_by_phase
from workers.host.logs import Log
from workers.host.site_api.client import SiteClient
from workers.host.site_api.outages import ask_site

logger = logging.getLogger(__name__)

SIDES = ("base", "head")
COUNTERS_INEXACT = "counters_inexact"
REPORTED_COUNT = "count."
SWEPT_TOO_SHORT = "scaling_too_short"
QUALITY = "quality."
LEAST_SEED = 1_000


class SideError(MeasuringError):
    """A side that doesn't run: nothing can be weighed with it."""

    kind = "crash"


def is_base_first(experiment: int, index: int) -> bool:
    """Whether a pair measures its base first: at random, and once in every two pairs.

    A fixed order favours one side wherever the second process of a pair finds the machine warmer. Drawn from
    the experiment's key, so that a worker which goes on with its pairs draws the same.
    """
    begins = random.Random(f"{experiment}:{index // 2}").random() < 0.5  # noqa: S311 - nobody has to guess it
    return begins == (index % 2 == 0)


def seed_of_pair(experiment: int, index: int) -> int:
    """The seed of both sides of a pair: none that a manifest is likely to have, and another for each pair.

    The manifest's own ones raised the suspicion. Drawn as `is_base_first` draws, for the same reason.
    """
    return random.Random(f"{experiment}:{index}:seed").randrange(LEAST_SEED, 2**31)  # noqa: S311 - nobody has to guess it


def kept_members(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Of a document: its functions and counters, and what tells whether another may take turns with it."""
    if not measured:
        return {}
    functions = (measured.get("profile") or {}).get("functions")
    kept = {name: measured[name] for name in ("processes", "phases") if name in measured}
    if measured.get("ranks"):
        kept["ranks"] = {"world_size": measured["ranks"]["world_size"]}
    environment = measured.get("environment") or {}
    return {
        **kept,
        "environment": {name: environment.get(name) for name in ("path", "memory_bytes")},
        "profile": {"functions": functions},
        "counters": exact_counters(measured),
    }


def exact_counters(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of the whole step; of what was counted once it isn't known yet whether it is exact.

    Of those of phases, as of those that the code reports itself, the headline ones, which alone are judged;
    not what it counts down, nor by a name that no site keeps. A phase's are named as a manifest does:
    `function_calls:learn`.
    """
    unsure = any(warning.get("code") == COUNTERS_INEXACT for warning in measured.get("warnings", ()))
    return [
        {"name": spell_metric(row["name"], row["phase"])}
        | {name: row[name] for name in ("unit", "better", "headline", "samples")}
        for row in measured.get("metrics", ())
        if row["kind"] == "counter" and (row["headline"] or row["phase"] is None)
        if row["exact"] or (len(row["samples"]) == 1 and not unsure)
        if row["headline"] or not row["name"].startswith(REPORTED_COUNT)
        if min(row["samples"]) >= 0 and len(row["name"]) <= LONGEST_WORD
        if len(row["phase"] or "") <= LONGEST_PATH
    ]


class ExperimentExecutor(Executor):
    """Executes one experiment, pair by pair."""

    def __init__(
        self,
        assignment: ExperimentAssignment,
        lock: int,
        configuration: HostConfiguration,
        client: SiteClient,
    ) -> None:
        super().__init__(assignment, lock, configuration, client)
        self.assignment = assignment
        # From when on the machine measured what isn't stored yet; None before it measures.
        self.unstored_since: float | None = None
        # Of the pair that is measured; None leaves the manifest's.
        self.seed: int | None = None
        self.hash_seed: int | None = None

    def renew(self, _progress: float | None, text: str, _log: str) -> bool:
        return self.client.heartbeat_experiment(self.assignment.lease, text)

    def work(self) -> None:
        self.require_box()
        sides = {name: self.prepare_side(name) for name in SIDES}
        self.unstored_since = time.monotonic()
        if self.assignment.profiled:
            self.measure_profiles(sides)
        commands = [self.repeat_command(name, sides[name]) for name in SIDES]
        verdict, index = "", self.assignment.pairs
        while not verdict:
            pair = self.measure_pair(sides, index)
            verdict = self.keep_pair(pair, commands)
            index += 1
        logger.info("%s: %s", self.assignment.name, verdict)

    def finish(self) -> None:
        """Its last pair has ended it."""

    def give_up(self, error: MeasuringError) -> None:
        """What can't be measured can't be weighed; which side it was, the reason says."""
        spent = 0.0 if self.unstored_since is None else time.monotonic() - self.unstored_since
        ask_site(lambda: self.client.conclude_experiment(self.assignment.lease, str(error), spent))

    def keep_pair(self, pair: PairMeasured, commands: Sequence[str]) -> str:
        """Store the pair; the verdict, once there is one."""
        verdict = ask_site(lambda: self.client.add_pair(self.assignment.lease, pair, commands), self.stop)
        self.unstored_since = time.monotonic()
        return verdict

    def side(self, name: str) -> SideAssignment:
        return self.assignment.base if name == "base" else self.assignment.head

    def side_label(self, name: str) -> str:
        """By its commit, which tells two versions of one case apart; where cases differ by its case too."""
        side, commit = self.side(name), self.side(name).commit[:10]
        cases = {(each.benchmark, case_key(each.params)) for each in map(self.side, SIDES)}
        if len(cases) == 1:
            return commit
        key = case_key(side.params)
        return f"{name} {side.benchmark}{f'[{key}]' if key else ''} at {commit}"

    def prepare_side(self, name: str) -> PreparedCode:
        """Check one side's commit out beside the other's."""
        job, side = self.assignment, self.side(name)
        source = CodeSource(self.client, job.project, job.manifest, side.benchmark, job.files, side.on_branch)
        return self.prepare(source, side.commit, folder_suffix=f"-{name}")

    def measure_pair(self, sides: Mapping[str, PreparedCode], index: int) -> PairMeasured:
        """One repetition of each."""
        started = time.monotonic()
        order = SIDES if is_base_first(self.assignment.lease.key, index) else SIDES[::-1]
        in_turns = self.assignment.in_turns
        measure = self.measure_in_turns if in_turns else self.measure_in_sequence
        drawn = seed_of_pair(self.assignment.lease.key, index)
        self.seed = drawn if self.assignment.seeded else None
        # Where texts lie in a set or a dictionary may make a commit look faster: another place in each pair.
        # What is counted has the one hash seed that runs have.
        self.hash_seed = None if self.assignment.counted else drawn
        documents = measure({name: sides[name] for name in order}, f"pair {index + 1}")
        values = {name: self.weighed_value(name, documents[name]) for name in SIDES}
        # What other work slowed says nothing of the step's time, though it learns as ever.
        is_undisturbed = not any(
            pair_values.is_disturbed(measured, in_turns) for measured in documents.values()
        )
        with_pace = is_undisturbed and self.assignment.metric.startswith(QUALITY)
        phases = pair_values.own_times_by_phase(documents["base"], documents["head"], in_turns)
        return PairMeasured(
            index=index,
            base_first=order[0] == "base",
            base=values["base"][0],
            head=values["head"][0],
            disturbed=values["base"][1] or values["head"][1],
            seconds=time.monotonic() - started,
            phases=phases,
            typical_phases=typical_times_by_phase(documents["base"], documents["head"], phases),
            steps=pair_values.steps_of_both(documents["base"], documents["head"]) if in_turns else {},
            sweeps=pair_values.sweeps_of_both(documents["base"], documents["head"]),
            others=pair_values.others_of_both(documents["base"], documents["head"], with_pace=with_pace),
            seed=self.seed,
        )

    def measure_in_sequence(self, sides: Mapping[str, PreparedCode], pair: str) -> dict[str, Document]:
        """One process after the other, in the order that is given."""
        documents = {}
        for name, prepared in sides.items():
            self.heartbeat.activity = f"{pair}, {name} {prepared.code.commit[:10]}"
            with launching.scratch_folder(self.home, self.assignment.machine) as scratch:
                documents[name] = self.measure_side(name, prepared, scratch, None, self.stop)
        return documents

    def measure_in_turns(self, sides: Mapping[str, PreparedCode], pair: str) -> dict[str, Document]:
        """Two processes side by side whose steps alternate; the first that is given begins."""
        self.heartbeat.activity = f"{pair}, both sides in turn"
        ended = threading.Event()
        scratches = launching.scratch_folder(self.home, self.assignment.machine)
        with scratches as scratch, ThreadPoolExecutor(len(sides)) as pool:
            running = {}
            for (name, prepared), pipe in zip(sides.items(), launching.TURNS, strict=True):
                (folder := scratch / name).mkdir()
                turns = scratch / pipe
                running[name] = pool.submit(self.measure_side, name, prepared, folder, turns, ended)
            try:
                self.await_all(list(running.values()), ended.set)
            finally:
                ended.set()
        return {name: measured.result() for name, measured in running.items()}

    def await_all(self, running: Sequence[Future[Document]], end: Callable[[], None]) -> None:
        """Until all have ended; where one fails or the experiment is to stop, `end` is called for them."""
        left = set(running)
        while left:
            ended, left = wait(left, timeout=0.2, return_when=FIRST_EXCEPTION)
            if self.stop.is_set() or any(measured.exception() for measured in ended):
                end()
        failures = [failure for measured in running if (failure := measured.exception())]
        # What was ended because the other failed has nothing to say.
        for failure in sorted(failures, key=lambda failure: isinstance(failure, Stopped)):
            raise failure

    def measure_side(
        self, name: str, prepared: PreparedCode, scratch: Path, turns: Path | None, stop: threading.Event
    ) -> Document:
        """One repetition of one side; with `turns` in turn with the other's, by the pipe of that name."""
        # Where both print at once, the last lines of each are to be told apart.
        log = Log() if turns else self.log
        what = self.measurement(name, prepared, turns, self.left_out(prepared))
        label = self.side_label(name)
        try:
            with machine_trouble(SideError):
                return document.read_document(launching.run_harness(what, scratch, log, stop, self.box))
        except document.DocumentError as error:
            raise BadDocumentError(f"{label}: {error}") from error
        except MeasuringError as error:
            raise SideError(f"{label}: {error}") from error

    def measure_profiles(self, sides: Mapping[str, PreparedCode]) -> None:
        """Keep what both sides count, as often as the site asks; it also says whether steps alternate."""
        answer = CountedAnswer(self.assignment.in_turns, again=True)
        while answer.again:
            started = time.monotonic()
            documents = {name: self.count_side(sides[name], name) for name in SIDES}
            answer = self.keep_counted(documents, time.monotonic() - started)
            self.unstored_since = time.monotonic()
        self.assignment = replace(self.assignment, in_turns=answer.in_turns, profiled=False)

    def keep_counted(self, documents: Mapping[str, Mapping[str, Any]], seconds: float) -> CountedAnswer:
        kept = {name: kept_members(document) for name, document in documents.items()}
        lease, repetition = self.assignment.lease, uuid4().hex
        return ask_site(lambda: self.client.keep_profiles(lease, kept, seconds, repetition), self.stop)

    def count_side(self, prepared: PreparedCode, name: str) -> Mapping[str, Any]:
        """The document of a repetition of one side with its functions counted; empty where that fails."""
        self.heartbeat.activity = f"functions of {name} {prepared.code.commit[:10]}"
        try:
            with launching.scratch_folder(self.home, self.assignment.machine) as scratch:
                what = self.measurement(name, prepared, None, launching.NO_SWEEP)
                return document.read_document(
                    launching.run_harness(what, scratch, self.log, self.stop, self.box)
                ).raw
        except (MeasuringError, document.DocumentError, OSError) as error:
            logger.info("%s: the functions of %s aren't known: %s", self.assignment.name, name, error)
            return {}

    def measurement(
        self, name: str, prepared: PreparedCode, turns: Path | None, without: str
    ) -> launching.Measurement:
        side = self.side(name)
        # Said aloud it leaves out what is learned with other seeds, which takes as long for each of them.
        own = prepared.code.benchmark.seed
        return launching.Measurement(
            benchmark=side.benchmark,
            params=side.params,
            repetitions=1,
            quick=side.quick,
            # In turn each takes as long as both.
            time_limit=prepared.code.benchmark.time_limit * (2 if turns else 1),
            checkout=prepared.code.folder,
            python=prepared.python,
            folders=prepared.folders,
            kept_files=prepared.code.kept_files,
            without=without,
            seed=own if self.seed is None and without == launching.NO_SWEEP else self.seed,
            hash_seed=self.hash_seed,
            turns=turns,
            lock=self.lock,
            limits=self.limits,
        )

    def left_out(self, prepared: PreparedCode) -> str:
        """What is left out of a pair: whatever doesn't tell the weighed metric."""
        if self.assignment.counted:
            return launching.NO_SWEEP
        swept = prepared.code.benchmark.needs_sweep(self.assignment.metric)
        return launching.NO_COUNTING if swept else launching.TIMED_ONLY

    def weighed_value(self, name: str, measured: Document) -> tuple[float | None, bool]:
        """The weighed metric's value of a side, and whether other work disturbed it.

        None of a quality that the code doesn't report: that is what a loss of learning may look like.
        """
        job = self.assignment
        row = measured.metric(job.metric, job.phase)
        if row is None and job.metric.startswith(QUALITY):
            return None, False
        if row is None:
            named = f"{job.metric} of {job.phase}" if job.phase else job.metric
            others = {row.phase for row in measured.metrics if row.name == job.metric and row.phase}
            known = ", ".join(sorted(others - {UNATTRIBUTED}))
            has = f"; its phases are {known}" if job.phase and known else ""
            short = next((doubt for doubt in measured.warnings if doubt.code == SWEPT_TOO_SHORT), None)
            why = f": {short.message}; {short.advice}" if short else ""
            raise SideError(f"{self.side_label(name)}: its document has no {named}{has}{why}.")
        disturbed = pair_values.is_disturbed(measured, job.in_turns, row.name)
        value = pair_values.value_of_metric(row, measured, job.in_turns)
        return value, disturbed and row.kind in document.TIMED_KINDS

    def repeat_command(self, name: str, prepared: PreparedCode) -> str:
        """What repeats one repetition of the first pair by hand, in a clone of the repository.

        Of two that take turns the first runs in the background, and each in a worktree of its own.
        """
        job, side = self.assignment, self.side(name)
        # As JSON: `True` would be read as a word, "7" as a number.
        settings_ = [f"--set={key}={json.dumps(value)}" for key, value in side.params.items()]
        quick = ["--quick"] if side.quick else []
        manifest = "../../paceline.toml" if job.in_turns else "../paceline.toml"
        kept = [f"--manifest={manifest}", "--folder=."] if job.manifest else []
        words = ["python", "-m", "paceline", "run", side.benchmark, *settings_, "--exact", *quick, *kept]
        seeds = (["--seed"] if job.seeded else []) + ([] if job.counted else ["--hash-seed"])
        words += [f"{option}={seed_of_pair(job.lease.key, 0)}" for option in seeds]
        words += ["--repetitions=1", self.left_out(prepared)]
        kept_there = "the manifest that the project keeps on the site"
        beside = f", with the files {', '.join(job.files)} kept beside it put here" if job.files else ""
        note = f"  # {manifest}: {kept_there}{beside}" if job.manifest else ""
        commit = prepared.code.commit[:10]
        if not job.in_turns:
            return f"git checkout {commit} && {shlex.join(words)}{note}"
        words.append(f"--turns=../{launching.TURNS[SIDES.index(name)]}")
        worktree = f"../turns/{name}"
        measured = f"(cd {worktree} && {shlex.join(words)})"
        if name == SIDES[0]:
            # Not the worktree in the background as well: git makes one at a time.
            measured = f"{{ {measured} & }}"
        return f"git worktree add --detach {worktree} {commit} && {measured}{note}"
