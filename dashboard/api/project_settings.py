"""What is set of a project, for those who administer it; secrets aren't among it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import BaseModel, Field

from dashboard.host_protocol import files_version
from dashboard.models import Project
from dashboard.policy.project_policy import project_policy

router = Router(tags=["projects"])


class PolicyInForce(BaseModel):
    """What is measured when, as the manifest's table `policy` names it."""

    site: str = Field(description="What the site keeps above the manifest, as TOML; empty: nothing.")
    values: dict[str, Any] = Field(description="By its key what holds.")
    origins: dict[str, str] = Field(description="By its key where it comes from: site, manifest or default.")


class KeptFileText(BaseModel):
    path: str
    text: str


class ProjectSettings(BaseModel):
    visibility: str
    poll_minutes: int
    check_minutes: float = Field(description="That one check of a pull request may measure at most.")
    check_floor: float = Field(description="A pull request that loses a smaller share isn't refused.")
    experiment_minutes: float
    experiment_pairs: int
    experiment_share: float = Field(description="Of a machine, while runs wait.")
    false_alerts_per_100_commits: float
    training_hours_per_week: float | None
    sentinels: bool
    policy: PolicyInForce
    manifest: str = Field(description="That the site keeps, as TOML; empty: the repository's own holds.")
    kept_files: list[KeptFileText] = Field(description="That the site keeps beside its manifest.")
    kept_files_version: str = Field(
        description="A hash of these, as documents tell it; empty: there are none."
    )


NUMBERS = (
    *("visibility", "poll_minutes", "check_minutes", "check_floor", "experiment_minutes", "experiment_pairs"),
    *("experiment_share", "false_alerts_per_100_commits", "training_hours_per_week", "sentinels", "manifest"),
)


@router.get(
    "projects/{slug:slug}/settings",
    url_name="api-project-settings",
    operation_id="read_project_settings",
    response=ProjectSettings,
)
def read_project_settings(request: HttpRequest, slug: str) -> ProjectSettings:
    """What is set of the project, secrets aside."""
    project = get_object_or_404(Project, slug=slug)
    values = asdict(project_policy(project))
    origins = values.pop("origins")
    files = dict(project.kept_files.values_list("path", "text"))
    return ProjectSettings(
        kept_files=[KeptFileText(path=path, text=text) for path, text in files.items()],
        kept_files_version=files_version(files),
        **{name: getattr(project, name) for name in NUMBERS},
        policy=PolicyInForce(site=project.policy, values=values, origins=origins),
    )
