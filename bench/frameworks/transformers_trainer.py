"""The Trainer of Transformers: a GPT-2 of one layer made here, gradients accumulated over four batches."""

from __future__ import annotations

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Counting(Dataset):
    """Sequences that count."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        tokens = torch.arange(number, number + 16) % 32
        return {"input_ids": tokens, "labels": tokens}


config = GPT2Config(
    vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
)
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        max_steps=1_000_000,
        use_cpu=True,
        seed=0,
        report_to=[],
        save_strategy="no",
        logging_steps=1000,
        disable_tqdm=True,
    )
    Trainer(model=GPT2LMHeadModel(config), args=settings, train_dataset=Counting()).train()
