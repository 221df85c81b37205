from __future__ import annotations

from django.db import models


class Environment(models.Model):
    """The software and the system that runs were measured under, as far as they are compared.

    Runs that had the same share one row.
    """

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the values.")
    values = models.JSONField(
        help_text="Python, torch, CUDA, packages, driver, system, kernel, processor, GPUs, harness."
    )

    def __str__(self) -> str:
        return f"environment {self.pk}"
