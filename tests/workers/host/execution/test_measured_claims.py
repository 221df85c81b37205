"""A planted toggle pays: measured for real, and judged."""

from __future__ import annotations

import pytest

from dashboard import claims
from dashboard.access import command_account
from dashboard.models import Channel, Claim, ClaimMeasurement, Delivery, Experiment, Run
from tests.workers.conftest import MANIFEST, Host, Requested
from tests.workers.scripts import UNDISTURBED

SHORT = MANIFEST.replace("steps = 20", "steps = 10").replace("size = 10", "cache = false")
# The toggle saves three quarters of the work. To wait takes as long on a busy machine.
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
        time.sleep(0.005 if cached else 0.02)
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


@pytest.mark.django_db(transaction=True)
def test_a_toggle_that_pays_holds(host: Host, requested: Requested) -> None:
    """What follows where it stops paying, tests/dashboard/claims/test_claims.py says."""
    run = requested({"train.py": LOOP, "paceline.toml": SHORT, "claims.toml": CLAIMS}, experiment_minutes=3)
    project = run.commit.project
    Run.objects.update(repetitions=3)
    Channel.objects.create(project=project, kind="webhook", address="https://example.org/", secret="s")
    asked = claims.request_claims(project, "tiny", actor=command_account())
    while host.execute_next():
        pass
    experiment = Experiment.objects.get(purpose="claim", state="done")
    for _ in range(2):
        # As the message does that ends an experiment; said twice, it does no more.
        claims.experiment_ended(experiment.pk)
    stands = {claim.key: claim for claim in Claim.objects.select_related("newest")}
    assert [claim.verdict for claim in stands.values()] == ["holds", "", ""]
    newest = stands["cache"].newest
    assert newest
    assert (newest.commit, newest.evidence["kind"]) == (asked.commit, "pairs")
    assert (newest.low or 0) > 1.5
    assert ClaimMeasurement.objects.filter(claim=stands["cache"]).count() == 1
    assert stands["cluster"].reason == {"code": "untestable", "text": "there is no cluster"}
    # The host also measured the run that answers what is claimed of one case, whoever else worked beside it.
    Run.objects.update(tainted=False)
    assert claims.request_claims(project, "tiny", keys=["share"], actor=command_account()).by_runs == 1
    share = Claim.objects.select_related("newest").get(key="share")
    assert (share.verdict, share.newest and share.newest.unit) == ("holds", "%")
    assert not Delivery.objects.exists()
