"""A person's run is measured between two pairs of a proof."""

from __future__ import annotations

from paceline import manifest

from dashboard import runs
from dashboard.models import Experiment, Run, Trigger
from tests.workers.conftest import MANIFEST, Host
from tests.workers.host.execution.test_experiment_executor import suspected

__all__ = ["suspected"]


def test_a_proof_goes_on_behind_a_persons_run(host: Host, suspected: Experiment) -> None:
    Experiment.objects.update(most_pairs=2)
    commit, case = suspected.base_commit, suspected.base_configuration.case
    trigger = Trigger.objects.create(project=commit.project, source=Trigger.Source.WEB)
    benchmark = manifest.parse_manifest(MANIFEST, "test").benchmarks["tiny"]
    run = runs.request_run(commit, case, benchmark, trigger=trigger)
    assert host.execute_next()
    suspected.refresh_from_db()
    assert (suspected.state, suspected.pairs.count(), suspected.attempt) == ("requested", 1, 0)
    assert host.execute_next()
    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert host.execute_next()
    suspected.refresh_from_db()
    assert (suspected.state, suspected.reason["code"]) == ("done", "too few pairs")
    assert list(suspected.pairs.values_list("index", flat=True)) == [0, 1]
