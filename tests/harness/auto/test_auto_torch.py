"""Automatic phases of PyTorch's less common ways: compilation, closures, optimizers of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.strangers import TRAIN, UNCOMPILED, phase_counts, run_script


def test_compilation_is_a_phase_and_breaks_no_graph(tmp_path: Path) -> None:
    loop = """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.compile(backend="eager", fullgraph=True)
def loss_of(inputs):
    return model(inputs).square().sum()

fast = torch.compile(model, backend="eager", fullgraph=True)
for number in range(10**6):
    if number == 10:
        torch.compiler.reset()
    (loss_of(torch.randn(4, 8)) + fast(torch.randn(4, 8)).sum()).backward()
    optimizer.step()
"""
    compiled = "import torch\n" + TRAIN.removeprefix(UNCOMPILED) + loop
    counts = phase_counts(run_script(tmp_path, compiled))
    assert counts["compile"] == counts["forward/compile"] == pytest.approx(1 / 20)
    assert counts["forward"] == 1


def test_a_closure_nests_in_the_optimizer(tmp_path: Path) -> None:
    loop = """
model = nn.Linear(8, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
inputs = torch.randn(16, 8)
def closure():
    optimizer.zero_grad()
    loss = model(inputs).square().sum()
    loss.backward()
    return loss
while True:
    optimizer.step(closure)
"""
    counts = phase_counts(run_script(tmp_path, TRAIN + loop))
    assert counts["optimizer"] == 1
    assert {"optimizer/forward", "optimizer/backward", "optimizer/zero_grad"} < set(counts)


def test_an_optimizer_of_ones_own_under_a_scheduler_and_a_scaler(tmp_path: Path) -> None:
    loop = """
class Mine(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.sub_(parameter.grad, alpha=group["lr"])

model = nn.Linear(8, 1)
optimizer = Mine(model.parameters())
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
scaler = torch.amp.GradScaler("cpu")
while True:
    scaler.scale(model(torch.randn(4, 8)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scheduler.step()
"""
    counts = phase_counts(run_script(tmp_path, TRAIN + loop))
    assert counts == {"forward": 1, "backward": 1, "optimizer": 1, "zero_grad": 1}


@pytest.mark.parametrize("kept", ["both", "dict(enumerate(both))", "[both]", "SimpleNamespace(both=both)"])
def test_a_wrapper_of_several_optimizers_steps_where_these_do(tmp_path: Path, kept: str) -> None:
    loop = f"""
from types import SimpleNamespace
class Both(torch.optim.Optimizer):
    def __init__(self, both):
        super().__init__([group for inner in both for group in inner.param_groups], {{}})
        self.kept, self.called = {kept}, 0
        self.all_steps = [inner.step for inner in both]
    def step(self, closure=None):
        self.called += 1
        if self.called % 4 == 0:
            for step in self.all_steps:
                step()

model, head = nn.Linear(8, 8), nn.Linear(8, 1)
both = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model, head)]
optimizer = Both(both)
while True:
    head(model(torch.randn(4, 8))).sum().backward()
    optimizer.step()
"""
    left = run_script(tmp_path, TRAIN + loop, steps=40)
    assert left["step"]["owner"] == "SGD"
    assert phase_counts(left)["backward"] == pytest.approx(4, abs=0.4)


def test_phases_by_hand_nest_with_the_automatic_ones(tmp_path: Path) -> None:
    loop = """
import paceline
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    with paceline.phase("learn"):
        loss = model(torch.distributions.Normal(0.0, 1.0).sample((4, 8))).sum()
        with paceline.phase("descend"):
            loss.backward()
            optimizer.step()
"""
    left = run_script(tmp_path, TRAIN + loop)
    assert {"learn/forward", "learn/distribution", "learn/descend/backward"} < set(phase_counts(left))
    assert phase_counts(left)["learn/descend/optimizer"] == 1


def test_the_whole_loop_of_a_script(tmp_path: Path) -> None:
    left = run_script(tmp_path, TRAIN + "\nmain(20)\n", kind="whole")
    assert left["result"]["steps"] == 19
    assert left["result"]["phases"]["backward"] > 0
    assert left["complete"]
    assert not left["ended"]


def test_hooks_of_an_optimizer_belong_to_it(tmp_path: Path) -> None:
    hook = """
import paceline
from torch.optim.optimizer import register_optimizer_step_post_hook
def after(*_):
    with paceline.phase("after"):
        pass
register_optimizer_step_post_hook(after)
main(10**6)
"""
    counts = phase_counts(run_script(tmp_path, TRAIN + hook))
    assert counts["optimizer"] == counts["optimizer/after"] == 1
    assert "after" not in counts


def test_an_optimizers_steps_are_counted_in_its_phase(tmp_path: Path) -> None:
    left = run_script(tmp_path, TRAIN + "\nmain(10**6)\n", kind="counting")
    steps = {path: row["optimizer_steps"] for path, row in left["result"]["operations"].items()}
    assert {path: number for path, number in steps.items() if number} == {"optimizer": 1.0}


def test_optimizers_in_the_hooks_of_gradients_are_counted(tmp_path: Path) -> None:
    loop = """
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
optimizers = {weights: torch.optim.SGD([weights], lr=0.01) for weights in model.parameters()}
def update(weights):
    optimizers[weights].step()
    optimizers[weights].zero_grad()
for weights in model.parameters():
    weights.register_post_accumulate_grad_hook(update)
while True:
    model(torch.randn(4, 8)).square().sum().backward()
"""
    left = run_script(tmp_path, TRAIN + loop, kind="counting")
    rows = left["result"]["operations"]
    assert rows["backward/optimizer"]["optimizer_steps"] == 4
    assert rows["forward"]["kinds"]["aten::addmm"] == 2
