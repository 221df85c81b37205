"""Which rank of a distributed training this process is, as its launcher or its process group says."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

# Rank, rank on this host, and number of ranks: of torchrun and what imitates it, Open MPI, MPICH, Slurm.
VARIABLES = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


@dataclass(frozen=True, slots=True)
class RankIdentity:
    """A rank, and how many there are."""

    rank: int
    world_size: int


def find_rank() -> RankIdentity | None:
    """Return this process's rank; None where nothing says that it is one of several."""
    return rank_in_group() or _rank_in_environment()


def rank_in_group() -> RankIdentity | None:
    """Return this process's rank in its process group, None where it has none or is alone in it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    size = distributed.get_world_size()
    return RankIdentity(distributed.get_rank(), size) if size > 1 else None


def _rank_in_environment() -> RankIdentity | None:
    for rank, _, size in VARIABLES:
        texts = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(text.isdecimal() for text in texts):
            return RankIdentity(int(texts[0]), int(texts[1]))
    return None
