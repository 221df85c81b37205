"""Pictures as they lie on a disk: compressed, larger than what is learned from."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

KINDS = 4
FILES = 64
SIDE = 96


class Pictures(IterableDataset):
    """Compressed pictures, read again and again; each worker reads its own files."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.kinds = random.integers(KINDS, size=FILES)
        self.files = [draw_file(random, int(kind)) for kind in self.kinds]

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        while True:
            for number in range(worker, FILES, workers):
                yield self.read(number), int(self.kinds[number])

    def read(self, number: int) -> torch.Tensor:
        """Return one picture at half its size."""
        cells = unpack_file(self.files[number])
        halved = cells.reshape(3, SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4))
        return torch.from_numpy(halved.astype(np.float32) / 255)


def draw_file(random: np.random.Generator, kind: int) -> bytes:
    """A picture that is brighter the larger its kind is."""
    cells = random.integers(60 + 40 * kind, size=(3, SIDE, SIDE), dtype=np.uint8)
    return zlib.compress(cells.tobytes())


def unpack_file(file: bytes) -> np.ndarray:
    """The cells of a picture: three colours of a square."""
    return np.frombuffer(zlib.decompress(file), dtype=np.uint8).reshape(3, SIDE, SIDE)
