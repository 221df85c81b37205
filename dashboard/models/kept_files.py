from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from dashboard.host_protocol import path_problem
from dashboard.models.projects import Project


class KeptFile(models.Model):
    """A text file that the site keeps beside a project's manifest, for the checkout of each commit."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="kept_files")
    path = models.CharField(max_length=200, help_text="Within the checkout.")
    text = models.TextField(blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "kept file"
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["project", "path"], name="kept_file_once_per_project")]

    def __str__(self) -> str:
        return self.path

    def clean(self) -> None:
        if problem := path_problem(self.path):
            raise ValidationError({"path": f"It {problem}."})
