"""The harness's sampler in a process of its own, reading another one while a flag in a file is set."""

from __future__ import annotations

import os
import sys
from mmap import ACCESS_READ, mmap
from pathlib import Path
from time import perf_counter, sleep

from paceline.watching import nvml
from paceline.watching.process_tree import ProcessTree
from paceline.watching.sampler import Sampler


def main() -> None:
    """Sample at each point of the grid where the flag is set, else as soon as it is; end with the parent."""
    parent = os.getppid()
    pid, path = int(sys.argv[1]), Path(sys.argv[2])
    with path.open("rb") as file:
        flag = mmap(file.fileno(), 4096, access=ACCESS_READ)
    sampler = Sampler(ProcessTree(pid), nvml.probe_devices(os.environ), perf_counter())
    while os.getppid() == parent:
        sleep(sampler.until_next())
        while not flag[0] and os.getppid() == parent:
            sleep(0.002)
        sampler.sample()


if __name__ == "__main__":
    main()
