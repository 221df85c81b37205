"""Checkpoints of what was learned: whole or as differences, at once or by a thread, now and then."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import paceline
import torch
from agent import Agent
from arguments import Args
from numpy.typing import NDArray

WHOLE, DELTA = b"whole---", b"delta---"

CHAIN = 10
"""Checkpoints from one whole one to the next, where differences are written."""

STABLE = 0.1
"""Change of the mean reward up to which the performance counts as stable."""

MOST = 8
"""Factor by which the interval may grow."""


def tensors(agent: Agent) -> list[torch.Tensor]:
    """The network's parameters and what the optimizer keeps of each, zeros before its first step."""
    found = []
    for parameter in agent.network.parameters():
        kept = agent.optimizer.state[parameter]
        if not kept:
            kept["step"] = torch.zeros((), dtype=torch.float32)
            kept["exp_avg"] = torch.zeros_like(parameter)
            kept["exp_avg_sq"] = torch.zeros_like(parameter)
        found += [parameter.detach(), kept["exp_avg"], kept["exp_avg_sq"], kept["step"]]
    return found


def state(agent: Agent) -> NDArray[np.uint32]:
    """All of it as one array of bits."""
    return torch.cat([tensor.flatten() for tensor in tensors(agent)]).numpy().view(np.uint32)


def restore(agent: Agent, bits: NDArray[np.uint32]) -> None:
    """Bring an agent back to a state."""
    values, at = torch.from_numpy(bits.view(np.float32)), 0
    for tensor in tensors(agent):
        tensor.copy_(values[at : at + tensor.numel()].view_as(tensor))
        at += tensor.numel()


def pack(bits: NDArray[np.uint32]) -> bytes:
    """Compress a difference, each number's bytes apart: the upper ones are mostly 0."""
    return zlib.compress(bits.view(np.uint8).reshape(-1, 4).T.tobytes(), 1)


def unpack(content: bytes) -> NDArray[np.uint32]:
    planes = np.frombuffer(zlib.decompress(content), dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view(np.uint32).ravel()


def load(folder: Path) -> tuple[int, NDArray[np.uint32]]:
    """The last checkpoint's step and state."""
    step, bits = -1, np.zeros(0, dtype=np.uint32)
    for path in sorted(folder.glob("*.checkpoint")):
        content = path.read_bytes()
        kind, (step,) = content[:8], struct.unpack("<q", content[8:16])
        bits = np.frombuffer(content[16:], dtype=np.uint32) if kind == WHOLE else bits ^ unpack(content[16:])
    return step, bits.copy()


class Checkpoints:
    """Writes checkpoints into a folder."""

    def __init__(self, args: Args, agent: Agent, folder: Path) -> None:
        self.args = args
        self.agent = agent
        self.folder = folder
        self.interval = args.checkpoint_every
        self.next = args.checkpoint_every
        self.last: NDArray[np.uint32] | None = None
        self.number = 0
        self.bytes = 0
        self.rewards: tuple[float, int] = (0.0, 0)
        self.mean: float | None = None
        self.writer = Writer(self) if args.asynchronous else None

    def consider(self, step: int) -> None:
        """Write a checkpoint, if it is time."""
        if step < self.next:
            return
        if self.args.adaptive:
            self._adapt()
        self.next = step + self.interval
        bits = state(self.agent)
        whole = not self.args.delta or self.number % CHAIN == 0
        last, self.last = self.last, bits
        path = self.folder / f"{self.number:06d}.checkpoint"
        self.number += 1
        paceline.count("checkpoints")
        work = (path, step, bits, None if whole else last)
        if self.writer:
            self.writer.put(work)
        else:
            self.count(self.write(*work))

    def _adapt(self) -> None:
        """Wait longer where the mean reward hardly changed since the last time, else begin anew."""
        total, number = self.agent.rewards, self.agent.memory.number
        mean = (total - self.rewards[0]) / max(1, number - self.rewards[1])
        stable = self.mean is not None and abs(mean - self.mean) <= STABLE
        longest = self.args.checkpoint_every * MOST
        self.interval = min(self.interval * 2, longest) if stable else self.args.checkpoint_every
        self.rewards, self.mean = (total, number), mean

    def write(self, path: Path, step: int, bits: NDArray[np.uint32], last: NDArray[np.uint32] | None) -> int:
        """Write a file, down to the disk; return its size."""
        content = WHOLE + struct.pack("<q", step) + bits.tobytes()
        if last is not None:
            content = DELTA + struct.pack("<q", step) + pack(bits ^ last)
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return len(content)

    def count(self, size: int) -> None:
        """Count the bytes of a file that was written."""
        self.bytes += size
        paceline.count("checkpoint_bytes", size)

    def close(self) -> None:
        """Wait for the thread."""
        if self.writer:
            self.writer.close()


class Writer:
    """A thread that writes. A file's size is counted when the next one is due, so that it repeats exactly."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints = checkpoints
        self.work: SimpleQueue = SimpleQueue()
        self.done: SimpleQueue = SimpleQueue()
        self.is_waited_for = False
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self) -> None:
        while (work := self.work.get()) is not None:
            try:
                self.done.put(self.checkpoints.write(*work))
            except Exception as error:  # noqa: BLE001 (raised where the next checkpoint waits for this one)
                self.done.put(error)

    def put(self, work: tuple) -> None:
        """Hand over a file, once the one before is written."""
        self.wait()
        self.work.put(work)
        self.is_waited_for = True

    def wait(self) -> None:
        """Wait for the file under way; raises what writing it raised."""
        if not self.is_waited_for:
            return
        self.is_waited_for = False
        size = self.done.get()
        if isinstance(size, Exception):
            raise size
        self.checkpoints.count(size)

    def close(self) -> None:
        self.wait()
        self.work.put(None)
        self.thread.join()
