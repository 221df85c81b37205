"""The network, and the learner with its optimizer."""

from __future__ import annotations

import copy
import ctypes
import hashlib
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import paceline
import torch
from arguments import Args
from memory import Batch
from numpy.typing import NDArray
from pictures import ACTIONS, STACK, size_of_picture
from torch import nn


class Network(nn.Module):
    """Three convolutions and a hidden layer of 512: a value for every action."""

    def __init__(self, args: Args) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *self._block(args, STACK, 32, 8, 4),
            *self._block(args, 32, 64, 4, 2),
            *self._block(args, 64, 64, 3, 1),
        )
        with torch.no_grad():
            features = self.convolutions(torch.zeros(2, STACK, *size_of_picture(args))).numel() // 2
        self.hidden = nn.Sequential(nn.Linear(features, 512), nn.ReLU(inplace=bool(args.inplace)))
        self.values = nn.Linear(512, ACTIONS)
        if args.he_init:
            # For layers that a ReLU follows: values are none, and as large at first would drown the rewards.
            self.convolutions.apply(self._initialize)
            self.hidden.apply(self._initialize)

    def _block(self, args: Args, inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
        """A convolution with what follows it."""
        layers: list[nn.Module] = [nn.Conv2d(inputs, outputs, size, stride, bias=bool(args.conv_biases))]
        if args.batch_norm:
            layers.append(nn.BatchNorm2d(outputs))
        return [*layers, nn.ReLU(inplace=bool(args.inplace))]

    @staticmethod
    def _initialize(layer: nn.Module) -> None:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, views: torch.Tensor) -> torch.Tensor:
        """Values of the actions, n x ACTIONS, of what is seen in n x STACK pictures from 0 to 1."""
        values: torch.Tensor = self.values(self.hidden(self.convolutions(views).flatten(1)))
        return values


class ViewLoader:
    """Brings views to where the network is, in the precision of its passes."""

    def __init__(self, args: Args, device: torch.device, kind: torch.dtype = torch.float32) -> None:
        self.device = device
        self.kind = kind
        self.layout = torch.channels_last if args.channels_last else torch.contiguous_format

    def hold(self, array: NDArray[Any]) -> torch.Tensor:
        """An array as a tensor on the device; copies to CUDA are pinned, so that nothing waits for them."""
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            tensor = (tensor if tensor.is_pinned() else tensor.pin_memory()).to(
                self.device, non_blocking=True
            )
        return tensor

    def views(self, array: NDArray[Any]) -> torch.Tensor:
        """Pictures as the network sees them."""
        views = self.hold(array)
        if views.dtype == torch.uint8:
            views = views.to(self.kind).mul_(1 / 255)
        return views.contiguous(memory_format=self.layout)


class Learner:
    """The network that learns, its targets and its optimizer."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.device = device
        # Bytes are exact in every precision: what autocast would round later are the same bits.
        kind = self.precision_type() if args.direct_cast else None
        self.view_loader = ViewLoader(args, device, kind or torch.float32)
        self.network = Network(args).to(device=device, memory_format=self.view_loader.layout)
        self.target = copy.deepcopy(self.network).eval()
        self.run, self.run_target = (self._prepared(network) for network in (self.network, self.target))
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=float(args.learning_rate or 0), eps=1e-5, fused=bool(args.fused)
        )
        self.scaler = torch.amp.GradScaler(device.type) if self.precision_type() is torch.float16 else None
        self.passes = 0
        self.loss: torch.Tensor | None = None
        # Compiled for CUDA, a pass leaves its gradients where the next pass overwrites them: what several
        # passes add up to lies in tensors of its own.
        self.keeps_gradients = bool(args.compile) and int(args.accumulate or 1) > 1
        if self.keeps_gradients:
            for parameter in self.network.parameters():
                parameter.grad = torch.zeros_like(parameter)

    def _prepared(self, network: nn.Module) -> Any:
        """The network as it is called: compiled, or split over devices, which share its parameters."""
        if self.args.data_parallel:
            network = nn.DataParallel(network)
        return torch.compile(network, mode="reduce-overhead") if self.args.compile else network

    def precision_type(self) -> torch.dtype | None:
        """What mixed precision computes in; None where everything is float32."""
        if self.args.bf16:
            return torch.bfloat16
        return torch.float16 if self.args.fp16 else None

    def precision(self) -> AbstractContextManager[Any]:
        kind = self.precision_type()
        return torch.autocast(self.device.type, kind) if kind else nullcontext()

    def learn(self, batch: Batch) -> None:
        """Learn a batch; each `accumulate` of them are one step of the optimizer."""
        self._pass(batch)
        self.passes += 1
        if self.passes % int(self.args.accumulate or 1) == 0:
            self._step()

    def end_epoch(self, epochs: int) -> None:
        """Copy the network for the targets, and clear the cache, where it is time for it."""
        if epochs % self.args.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())
        if self.args.clear_every and epochs % self.args.clear_every == 0:
            with paceline.phase("clear"):
                clear(self.device)

    def _pass(self, batch: Batch) -> None:
        """One way forth and back; gradients add up."""
        if self.args.compile:
            # Compiled for CUDA, a pass is graphs whose results the next pass may overwrite.
            torch.compiler.cudagraph_mark_step_begin()
        with paceline.phase("forward"):
            loss = self._loss(batch)
            self.loss = loss.detach()
            loss = loss / int(self.args.accumulate or 1)
        with paceline.phase("backward"):
            # Gradients of float16 are scaled up, or small ones would be none.
            (self.scaler.scale(loss) if self.scaler else loss).backward()

    def _loss(self, batch: Batch) -> torch.Tensor:
        actions, returns, onward = map(self.view_loader.hold, (batch.actions, batch.returns, batch.onward))
        views, following = self.view_loader.views(batch.views), self.view_loader.views(batch.following)
        with self.precision():
            with torch.no_grad():
                ahead = self.run_target(following)
            values = self.run(views)
        targets = returns + onward * ahead.float().amax(1)
        return nn.functional.mse_loss(values.float().gather(1, actions[:, None]).squeeze(1), targets)

    def _step(self) -> None:
        with paceline.phase("optimizer"):
            if self.scaler and self.args.clip:
                self.scaler.unscale_(self.optimizer)
            if self.args.clip:
                nn.utils.clip_grad_norm_(self.network.parameters(), self.args.clip)
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=not self.keeps_gradients)

    def copied(self) -> dict[str, torch.Tensor]:
        """What the collectors act with: a copy that no learning changes."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def fingerprint(self) -> str:
        """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
        digest = hashlib.sha256()
        for value in self.network.state_dict().values():
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def clear(device: torch.device) -> None:
    """Give unused memory back: CUDA's cache, or on a CPU what the C library's heap has free."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the C library is not always GNU's
        if trim is not None:
            trim(0)
