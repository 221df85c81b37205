from __future__ import annotations

import importlib
from typing import Any

import pytest
from django.apps import apps

from dashboard.environments import (
    EnvironmentValues,
    RunEnvironments,
    compare_environments,
    compared_values,
    machine_differences,
    software_differences,
    store_environments,
    system_differences,
)
from dashboard.models import Case, Environment, Project, Run
from dashboard.regressions.explanation.touched_files import says_installed
from dashboard.sentences.measurements.environment_changes import describe_differences, format_difference
from tests.dashboard import factories

OLD: dict[str, Any] = {
    "python": "3.11.2",
    "torch": "2.12.0",
    "driver": None,
    "gpus": [],
    "packages": {"numpy": "2.3.0", "torch": "2.12.0"},
    "harness": "0.1.0",
    "machine": "bench-1",
}


def test_alike_environments_have_no_differences() -> None:
    assert compare_environments(OLD, dict(OLD)) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"torch": "2.13.0"}, "torch 2.12.0 → 2.13.0"),
        ({"packages": {"numpy": "2.4.0"}}, "numpy 2.3.0 → 2.4.0"),
        ({"packages": {"numpy": "2.3.0", "gymnasium": "1.0"}}, "gymnasium none → 1.0"),
    ],
)
def test_software_is_what_a_commit_may_ask_for(changed: dict[str, Any], sentence: str) -> None:
    (difference,) = software_differences(OLD, OLD | changed)
    assert format_difference(difference) == sentence
    assert system_differences(OLD, OLD | changed) == []


def test_what_the_code_chose_is_told_and_excuses_no_commit() -> None:
    before, after = OLD | {"settings": {"bf16": "on"}}, OLD | {"settings": {"bf16": "off"}}
    (difference,) = compare_environments(before, after)
    assert format_difference(difference) == "bf16 on → off"
    assert software_differences(before, after) == system_differences(before, after) == []
    assert compare_environments(OLD, after) == []  # an older harness didn't tell


def test_harness_and_gpus_are_the_systems() -> None:
    new = OLD | {"harness": "0.2.0", "gpus": [{"name": "H200", "memory_bytes": 1}]}
    differences = system_differences(OLD, new)
    assert describe_differences(differences) == "GPUs none → H200, harness 0.1.0 → 0.2.0"
    assert software_differences(OLD, new) == []


def test_kept_files_are_no_commits() -> None:
    before, after = (compared_values({**OLD, "kept_files": version}, "0.1.0") for version in ("1f2e", "9a8b"))
    (difference,) = compare_environments(before, after)
    assert format_difference(difference) == "kept files 1f2e → 9a8b"
    assert system_differences(before, after) == [difference]
    # Most projects keep none: their rows stay those of hosts that know of no such files.
    assert "kept_files" not in compared_values(OLD, "0.1.0")


def test_gpus_of_one_name_differ_by_their_memory() -> None:
    small, large = ([{"name": "H200", "memory_bytes": gigabytes * 10**9}] for gigabytes in (80, 141))
    differences = system_differences(OLD | {"gpus": small}, OLD | {"gpus": large})
    assert describe_differences(differences) == "GPUs H200 (80.00 GB) → H200 (141.00 GB)"


def test_another_machine_of_the_pool_is_no_change_of_the_system() -> None:
    new = OLD | {"machine": "bench-2"}
    assert system_differences(OLD, new) == []
    assert describe_differences(machine_differences(OLD, new)) == "machine bench-1 → bench-2"


@pytest.mark.parametrize(("before", "after"), [(OLD, OLD | {"driver": "550.2"}), ({}, OLD), (OLD, {})])
def test_what_is_not_known_is_no_difference(before: EnvironmentValues, after: EnvironmentValues) -> None:
    assert compare_environments(before, after) == []


def test_runs_that_had_the_same_environment_share_a_row(db: None) -> None:
    old, new = (compared_values(OLD | {"torch": version}, "0.1.0") for version in ("2.12.0", "2.13.0"))
    first, second, third = store_environments([old, new, dict(old)])
    assert first == third != second
    assert store_environments([new]) == [second]
    assert Environment.objects.count() == 2


def test_the_environments_of_many_runs_are_two_queries(
    project: Project, case: Case, django_assert_num_queries: Any
) -> None:
    commits = factories.create_commits(project, 6)
    torch = ("2.12.0", "2.13.0")
    runs = [
        factories.store_measured_run(commit, case, {}, environment={"torch": torch[commit.position % 2]})
        for commit in commits[:5]
    ]
    runs.append(factories.create_run(commits[5], case))
    environments = RunEnvironments()
    with django_assert_num_queries(2):
        environments.read_runs(run.pk for run in runs)
        values = [environments.of_run(run.pk) for run in runs]
    assert values[0] is values[2]
    assert [value.get("torch") for value in values] == [*torch, *torch, "2.12.0", None]
    assert (values[0]["machine"], values[0]["harness"]) == ("bench-1", "0.1.0")


def test_the_environments_of_earlier_runs_are_stored_by_a_migration(project: Project, case: Case) -> None:
    commits = factories.create_commits(project, 4)
    torch = ("2.12.0", "2.12.0", "2.13.0")
    runs = [
        factories.store_measured_run(commit, case, {}, environment={"torch": version})
        for commit, version in zip(commits, torch, strict=False)
    ]
    fingerprint = {"os": "Debian 12", "kernel": "6.1"}
    runs.append(
        factories.create_run(commits[3], case, origin="imported", machine=None, fingerprint=fingerprint)
    )
    before = list(Run.objects.order_by("pk").values_list("environment__values", flat=True))
    Run.objects.update(environment=None)
    Environment.objects.all().delete()
    importlib.import_module("dashboard.migrations.0015_environments_of_runs").store_environments(apps, None)
    after = list(Run.objects.order_by("pk").values_list("environment__values", flat=True))
    assert after[:3] == before[:3]
    assert after[3] == compared_values(fingerprint, None)
    assert Environment.objects.count() == 3


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("requirements/base.txt", True),
        ("requirements-dev.txt", True),
        ("sub/uv.lock", True),
        ("replay.py", False),
    ],
)
def test_files_that_say_what_is_installed(path: str, may: bool) -> None:
    assert any(says_installed(name) for name in (path, "README.md")) == may
