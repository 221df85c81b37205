"""A planted toggle pays and then stops paying: measured for real, judged, told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard import claims
from dashboard.access import command_account
from dashboard.models import Channel, Claim, ClaimMeasurement, Commit, Delivery, Experiment, Project, Run
from tests.workers import repositories
from tests.workers.conftest import MANIFEST, Host, Requested
from tests.workers.scripts import UNDISTURBED

SHORT = MANIFEST.replace("steps = 20", "steps = 10").replace("size = 10", "cache = false")
# The toggle saves three quarters of the work, or nothing. To wait takes as long on a busy machine.
LOOP = (
    UNDISTURBED
    + """
import sys
import time
import paceline

cached = "--cache" in sys.argv
for _ in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        time.sleep(0.002)
    with paceline.phase("learn"):
        time.sleep({saved} if cached else 0.02)
"""
)
CLAIMS = """
document = "A plan"

[[claims]]
id = "cache"
toggle = "cache"
claim = "The cache makes a step twice as fast"
at_least = 1.6
before = { cache = false }
after = { cache = true }
phase = "learn"

[[claims]]
id = "share"
claim = "Learning takes most of a step"
metric = "phase_share:learn"
at_least = 50
factor = 100
unit = "%"
case = { cache = false }

[[claims]]
id = "cluster"
claim = "A cluster is 100 times faster"
untestable = "there is no cluster"
"""


def measure_claims(host: Host, project: Project, saved: float | None = None) -> Commit:
    """Commit a cache that leaves so much of the work, ask for its claims, and let the host measure them."""
    if saved is not None:
        repositories.commit_files(Path(project.repository), {"train.py": LOOP.format(saved=saved)})
    asked = claims.ask_claims(project, "tiny", actor=command_account())
    while host.execute_next():
        pass
    for key in Experiment.objects.filter(purpose="claim", state="done").values_list("pk", flat=True):
        # As the message does that ends an experiment; said twice, it does no more.
        claims.experiment_ended(key)
        claims.experiment_ended(key)
    return asked.commit


@pytest.mark.django_db(transaction=True)
def test_a_toggle_that_stops_paying_is_told_once(host: Host, requested: Requested) -> None:
    run = requested(
        {"train.py": LOOP.format(saved=0.005), "paceline.toml": SHORT, "claims.toml": CLAIMS},
        experiment_minutes=3,
    )
    project = run.commit.project
    Run.objects.update(repetitions=3)
    Channel.objects.create(project=project, kind="webhook", address="https://example.org/", secret="s")
    first = measure_claims(host, project)
    stands = {claim.key: claim for claim in Claim.objects.select_related("newest", "since")}
    assert [claim.verdict for claim in stands.values()] == ["holds", "", ""]
    newest = stands["cache"].newest
    assert newest
    assert newest.evidence["kind"] == "pairs"
    assert (newest.low or 0) > 1.5
    assert stands["cluster"].reason == {"code": "untestable", "text": "there is no cluster"}
    # The host also measured the run that answers what is claimed of one case, whoever else worked beside it.
    Run.objects.update(tainted=False)
    assert claims.ask_claims(project, "tiny", keys=["share"], actor=command_account()).by_runs == 1
    share = Claim.objects.select_related("newest").get(key="share")
    assert (share.verdict, share.newest and share.newest.unit) == ("holds", "%")
    assert not Delivery.objects.exists()

    second = measure_claims(host, project, saved=0.02)
    cache = Claim.objects.select_related("newest", "since").get(key="cache")
    assert cache.verdict in ("none", "smaller")
    assert (cache.standing, cache.since) == ("refuted", second)
    told = Delivery.objects.order_by("pk")
    assert list(told.values_list("event", "claim_measurement__claim__key")) == [("claim_refuted", "cache")]
    measured = ClaimMeasurement.objects.filter(claim=cache).order_by("pk").values_list("commit", flat=True)
    assert list(measured) == [first.pk, second.pk]
