"""The sampler beside a measured process, as a run has it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from paceline.watching import nvml
from paceline.watching.process import MeasuredProcess
from paceline.watching.process_tree import ProcessTree
from paceline.watching.sampler import Sampler


@contextmanager
def sample_alongside(process: MeasuredProcess) -> Iterator[None]:
    """Sample the process and its children, in a thread, until the block ends."""
    ended = threading.Event()
    sampling = threading.Thread(target=_sample_process, args=(process, ended))
    sampling.start()
    try:
        yield
    finally:
        ended.set()
        sampling.join()


def _sample_process(process: MeasuredProcess, ended: threading.Event) -> None:
    sampler = Sampler(ProcessTree(process.pid), nvml.probe_devices(os.environ), process.started)
    while not ended.wait(sampler.until_next()):
        sampler.sample()
