"""A Lightning module with validation, clipping, and gradients accumulated over four batches."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch: Any, _number: int) -> torch.Tensor:
        loss = nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, _number: int) -> None:
        self.log("validation", nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters())


lightning.seed_everything(0, verbose=False)
rows = TensorDataset(torch.randn(64, 16), torch.randn(64, 1))
trainer = lightning.Trainer(
    max_epochs=100_000,
    accumulate_grad_batches=4,
    gradient_clip_val=1.0,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Regression(), DataLoader(rows, batch_size=4), DataLoader(rows, batch_size=32))
