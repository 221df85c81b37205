"""A recipe as timm has them: mixed precision with a scaler, clipping, a schedule, an averaged model.

Every fifth loss overflows, so that the scaler skips that update.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=4)
loader = DataLoader(TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(4, (64,))), batch_size=8)
update = 0
for _epoch in range(100_000):
    for images, labels in loader:
        update += 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss * float("inf") if update % 5 == 0 else loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        averaged.update_parameters(model)
    schedule.step()
