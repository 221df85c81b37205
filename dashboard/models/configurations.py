from __future__ import annotations

from django.db import models

from dashboard.models.machines import Pool
from dashboard.models.projects import Case


class Configuration(models.Model):
    """A case of a benchmark's version on a pool, quick or standard: what is measured one way.

    Runs and series of one configuration may be compared with each other, and with nothing else.
    """

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="configurations")
    version = models.PositiveIntegerField(help_text="The benchmark's version.")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="configurations")
    quick = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["case", "version", "pool", "quick"], name="configuration_once")
        ]

    def __str__(self) -> str:
        return f"{self.case} v{self.version} on {self.pool}{' (quick)' if self.quick else ''}"


class Configured(models.Model):
    """What belongs to a configuration; read with it, `configuration__case` and so on, to save queries."""

    configuration: models.ForeignKey[Configuration, Configuration]

    class Meta:
        abstract = True

    @property
    def case(self) -> Case:
        return self.configuration.case

    @property
    def pool(self) -> Pool:
        return self.configuration.pool

    @property
    def version(self) -> int:
        return self.configuration.version

    @property
    def quick(self) -> bool:
        return self.configuration.quick
