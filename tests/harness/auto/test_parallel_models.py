"""Models whose parameters or gradients are spread over ranks: what is seen, and which rank is slow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from paceline.ranks.rank_rows import build_ranks_member

from tests.harness.strangers import UNCOMPILED, run_processes

# Rank 1 takes 400 ms longer in the backward pass.
SCRIPT = """
import sys, time, weakref, paceline, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, inputs):
        return inputs.clone()
    @staticmethod
    def backward(context, gradient):
        if rank == 1:
            time.sleep(0.4)
        return gradient

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.scale = nn.Linear(64, 64), nn.Linear(64, 1), nn.BatchNorm1d(64)
    def forward(self, inputs):
        return self.last(Slow.apply(torch.relu(self.scale(self.first(inputs)))))

model = Net()
if sys.argv[1] == "DistributedDataParallel":
    model = nn.parallel.DistributedDataParallel(model)
elif sys.argv[1] == "FullyShardedDataParallel":
    from torch.distributed.fsdp import FullyShardedDataParallel
    model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (model.first, model.last, model):
        fully_shard(part, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
outputs = []
for step in range(23):
    output = model(torch.randn(16, 64))
    outputs.append(weakref.ref(output))
    loss = output.square().mean()
    paceline.gauge("outputs_held", sum(held() is not None for held in outputs))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    work = dist.all_reduce(total, async_op=True)
    torch.randn(64, 64) @ torch.randn(64, 64)
    work.wait()
"""
WEIGHTS = 64 * 64 + 64 + 64 + 1 + 2 * 64
STATISTICS = 4 * 2 * 64 + 8


@pytest.mark.parametrize(
    ("model", "collectives"),
    [
        # The gradients and the loss; the statistics of the normalization before each forward pass.
        (
            "DistributedDataParallel",
            {"all_reduce": (2, 4 * WEIGHTS + 4), "broadcast": (1, STATISTICS)},
        ),
        # Each rank gives its half of the weights, and all gradients.
        (
            "FullyShardedDataParallel",
            {"all_reduce": (1, 4), "all_gather": (1, 2 * WEIGHTS), "reduce_scatter": (1, 4 * WEIGHTS)},
        ),
        # Three groups of weights, gathered for the forward and for the backward pass, but for the outermost.
        ("fully_shard", {"all_reduce": (1, 4), "all_gather": (5, None), "reduce_scatter": (3, None)}),
    ],
)
def test_a_slow_backward_pass_is_named(
    tmp_path: Path, model: str, collectives: Mapping[str, tuple[int, int | None]]
) -> None:
    # Its weights are distributed tensors, which ask the compiler.
    script = SCRIPT if model == "fully_shard" else UNCOMPILED + SCRIPT
    left = run_processes(tmp_path, script, [model], processes=2)
    # A graph that measuring held would grow with each step, by all that it was computed from.
    assert left["result"]["gauges"] == {"outputs_held": 1.0}
    ranks = build_ranks_member([left["ranks"]])
    assert ranks is not None
    assert (ranks["slowest"], ranks["phase"]) == (1, "backward"), ranks["reason"]
    assert 0.3 < ranks["excess"] < 0.6
    for row in ranks["rows"]:
        seen = {kind["kind"]: kind for kind in row["collectives"]}
        assert {kind: seen[kind]["count"] for kind in seen} == {
            kind: n for kind, (n, _) in collectives.items()
        }
        sizes = {kind: size for kind, (_, size) in collectives.items() if size is not None}
        assert {kind: seen[kind]["bytes"] for kind in sizes} == pytest.approx(sizes, rel=0.02)
        assert 0 <= row["overlap"] <= 1
    fast, slow = ranks["rows"]
    assert fast["waits"] > 0.3
    assert slow["waits"] < 0.15
    assert slow["own_time"] > fast["own_time"] + 0.3


# Stands in for Lightning, which is slow to import.
LIGHTNING = """
def prepare_for_backward(model, output):
    model.reducer._rebuild_buckets()
    model.reducer.prepare_for_backward([output] if model.find_unused_parameters else [])
"""
# The first model takes two small batches for each step; of the second every other pass leaves a part out; the
# others have two backward passes within the forward call, as in Lightning's manual optimization.
PARTLY_REDUCED = """
import torch, torch.distributed as dist
from pytorch_lightning.overrides.distributed import prepare_for_backward
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 1), nn.Linear(8, 1)
    def forward(self, inputs, is_left):
        return self.left(inputs) if is_left else self.right(inputs)

class Manual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)
    def forward(self, inputs, around):
        for _ in range(2):
            loss = self.layer(inputs).sum()
            prepare_for_backward(around[0], loss)
            loss.backward()
        around[0].require_backward_grad_sync = False

parallel = nn.parallel.DistributedDataParallel
manual = [parallel(Manual()), parallel(Manual(), find_unused_parameters=True)]
whole = parallel(nn.Linear(8, 3))
branches = parallel(Branches(), find_unused_parameters=True)
optimizer = torch.optim.SGD([*whole.parameters(), *branches.parameters()], lr=0.01)
for step in range(23):
    optimizer.zero_grad()
    with whole.no_sync():
        whole(torch.ones(4, 8)).sum().backward()
    whole(torch.ones(4, 8)).sum().backward()
    branches(torch.ones(4, 8), step % 2 == 0).sum().backward()
    for model in manual:
        model(torch.ones(4, 8), [model])
        model.require_backward_grad_sync = True
    optimizer.step()
"""


def test_each_reduction_of_gradients_is_seen_once(tmp_path: Path) -> None:
    overrides = tmp_path / "pytorch_lightning" / "overrides" / "distributed.py"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(LIGHTNING)
    left = run_processes(tmp_path, UNCOMPILED + PARTLY_REDUCED, [], processes=2)
    for rank in left["ranks"]:
        (reductions,) = rank["collectives"]["kinds"]
        assert (reductions["kind"], reductions["count"]) == ("all_reduce", 6)
        assert reductions["bytes"] == 4 * (8 * 3 + 3) + 4 * 2 * (8 + 1) + 4 * 4 * (8 * 2 + 2)
