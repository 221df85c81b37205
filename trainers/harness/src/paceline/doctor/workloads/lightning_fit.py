"""A small network that Lightning trains on the device that it finds, without a mark of ours."""

from __future__ import annotations

import lightning
import torch


class Regressor(lightning.LightningModule):
    """Two layers and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        rows, targets = batch
        return torch.nn.functional.mse_loss(self.network(rows), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


rows = torch.utils.data.TensorDataset(torch.randn(4096, 32), torch.randn(4096, 1))
loader = torch.utils.data.DataLoader(rows, batch_size=16)
trainer = lightning.Trainer(
    accelerator="auto",
    devices=1,
    max_epochs=10,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Regressor(), loader)
