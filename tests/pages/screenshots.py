"""Screenshots of docs/: `python -m pytest -n0 tests/pages/screenshots.py` takes them anew.

Pairs and documents are simulated; what the pages say of them the product has weighed.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from bench.drawings import simulate_pairs
from dashboard import experiments
from dashboard.host_protocol import PairMeasured
from dashboard.models import Commit
from tests.pages import builders
from tests.pages.comparison_builders import plant_difference
from tests.pages.experiment_builders import build_profile, create_experiment
from tests.pages.test_browser import _queries_beside_the_browser, browser

__all__ = ["_queries_beside_the_browser", "browser"]

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"

pytestmark = pytest.mark.django_db(transaction=True)


def measure_experiment() -> int:
    """The key of an experiment that took its pairs on one machine until it was precise enough."""
    line = builders.create_commits(builders.create_project("my-training"), 4)
    subjects = ("Collect on four threads", "Keep replay in one tensor", "Log less", "Cache the distances")
    for commit, subject in zip(line, subjects, strict=True):
        Commit.objects.filter(pk=commit.pk).update(subject=subject)
    machine = builders.create_machine("gpu-1")
    asked = create_experiment(line, precision=0.01, most_pairs=400, most_seconds=1200, machine=None)
    asked.requested_by = User.objects.create_user("ada")
    asked.profiles = {"base": build_profile(1, 0.0011), "head": build_profile(1, 0.0019)}
    asked.save()
    claimed = experiments.claim_experiment("default", machine.name)
    assert claimed is not None
    base, head = simulate_pairs(400, 0.062, 0.009, 12)
    for index, (first, second) in enumerate(zip(base, head, strict=True)):
        phases = {"rollout": (0.004, 0.004), "replay/sample": (0.002, 0.0026), "learn": (0.003, 0.003)}
        scale = math.exp(first), math.exp(second)
        values = PairMeasured(
            index, index % 2 == 0, 0.010 * scale[0], 0.010 * scale[1], index == 4, 9.5, phases
        )
        commands = [
            f"git checkout {commit} && python -m paceline run train" for commit in ("4f1c2a9", "b07d11e")
        ]
        if experiments.add_pair(claimed.lease, values, commands):
            break
    asked.refresh_from_db()
    asked.finished_at = timezone.now()
    asked.save()
    return asked.pk


def test_experiment(browser: Browser, live_server: LiveServer) -> None:
    key = measure_experiment()
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(f"{live_server.url}/experiments/{key}/", wait_until="load")
    for canvas in page.locator(".canvas").all():
        canvas.and_(page.locator("[data-drawn]")).wait_for()
    assert page.locator("#answer").inner_text().endswith("worse.")
    page.screenshot(path=IMAGES / "experiment.png")


def test_comparison(browser: Browser, live_server: LiveServer) -> None:
    plant_difference("my-training")
    page = browser.new_page(viewport={"width": 1280, "height": 1500})
    page.goto(f"{live_server.url}/projects/my-training/compare/?base=v1.0&head=main", wait_until="load")
    assert "worse" in page.locator(".lead").inner_text()
    page.screenshot(path=IMAGES / "compare.png")
