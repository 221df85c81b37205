"""One run from its claim to its document: claimed, preparing, measuring, storing, done; or failed."""

from __future__ import annotations

import logging

from dashboard import ingest, runs
from dashboard.runs import RunAssignment
from workers.host import launching
from workers.host.commit_code import CodeSource
from workers.host.errors import BadDocumentError, CrashError, MeasuringError
from workers.host.executor import (
    Executor,
    PreparedCode,
    execute_next,
    machine_trouble,
    memory_limits,
    retry_database,
)

logger = logging.getLogger(__name__)


def execute_next_run(pool: str) -> bool:
    """Execute the pool's next run, if there is one and this machine is free. False: nothing was done."""
    return execute_next(pool, runs.claim_run, RunExecutor)


class RunExecutor(Executor):
    """Executes one run; its document is stored at the end."""

    def __init__(self, assignment: RunAssignment, lock: int) -> None:
        super().__init__(assignment, lock)
        self.assignment = assignment
        self.document = b""

    def renew(self, progress: float | None, text: str, log: str) -> bool:
        return runs.heartbeat_run(self.assignment, progress, text, log)

    def work(self) -> None:
        """Check out, prepare, measure."""
        run = self.assignment
        self.enter_state("preparing")
        source = CodeSource(run.project, run.repository, run.manifest, run.benchmark)
        prepared = self.prepare(source, run.commit)
        with (
            machine_trouble(CrashError),
            launching.scratch_folder(self.home, run.machine) as scratch,
        ):
            self.enter_state("measuring")
            self.heartbeat.activity = "starting"
            self.heartbeat.progress = lambda: launching.read_progress(scratch)
            try:
                self.document = launching.run_harness(
                    self.measurement(prepared), scratch, self.log, self.stop
                )
            finally:
                self.heartbeat.progress = lambda: None
        self.enter_state("storing")
        self.heartbeat.activity = "storing the document"

    def measurement(self, prepared: PreparedCode) -> launching.Measurement:
        run = self.assignment
        return launching.Measurement(
            benchmark=prepared.code.benchmark.name,
            params=run.params,
            repetitions=run.repetitions,
            quick=run.quick,
            time_limit=run.time_limit,
            checkout=prepared.code.folder,
            python=prepared.python,
            lock=self.lock,
            limits=memory_limits(),
        )

    def enter_state(self, state: str) -> None:
        retry_database(lambda: runs.advance_run(self.assignment, state))

    def finish(self) -> None:
        """The log's end first: a run that is done changes no more."""
        rest = self.heartbeat.rest_of_log()
        retry_database(lambda: runs.heartbeat_run(self.assignment, log=rest))
        try:
            retry_database(lambda: ingest.store_document(self.assignment, self.document))
        except ingest.BadDocument as error:
            raise BadDocumentError(str(error)) from error
        logger.info("%s is done", self.assignment.name)

    def give_up(self, error: MeasuringError) -> None:
        rest = self.heartbeat.rest_of_log()
        retry_database(lambda: runs.fail_run(self.assignment, error.kind, str(error), rest))
