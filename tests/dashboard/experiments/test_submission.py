"""Asking for an estimate in words: what is understood, what is refused with which sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard import experiments
from dashboard.access import command_account
from dashboard.experiments import EstimateRequest, ExperimentError
from dashboard.models import Case, Commit, Experiment, Metric, Project, Series
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

MANIFEST = """
[benchmarks.snake]
version = 2
script = "snake/train.py"
steps = 100
cases = [{ variant = "baseline", fast = true }, { variant = "optimized", fast = true }]

[benchmarks.snake.quick]
params = { episodes = 3 }

[benchmarks.walker]
version = 1
script = "walker.py"
steps = 10
"""
ONE_CASE = '[benchmarks.walker]\nversion = 1\nscript = "walker.py"\nsteps = 10\n'
OPTIMIZED = "snake[variant=optimized]"
CLAIMS = """
document = "a report"
[[claims]]
id = "toggle-tensors"
toggle = "tensors"
claim = "Batches through arrays"
before = { variant = "optimized", fast = true, tensors = false }
after = { variant = "optimized", fast = true }
"""


def build_repository(folder: Path) -> Repository:
    """Three commits: without a manifest, with a simple one, and with MANIFEST and claims."""
    made = Repository(folder)
    made.commit("Begin", train_py="print(1)\n")
    made.commit("Describe one benchmark", paceline_toml=ONE_CASE.replace("walker", "tiny"))
    (made.folder / "snake").mkdir()
    (made.folder / "snake" / "claims.toml").write_text(CLAIMS)
    made.commit("Describe two benchmarks", paceline_toml=MANIFEST)
    return made


@pytest.fixture(scope="module")
def shared_repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """For all that only read it."""
    return build_repository(tmp_path_factory.mktemp("shared") / "repository")


@pytest.fixture
def described(project: Project, shared_repository: Repository) -> Project:
    Project.objects.filter(pk=project.pk).update(repository=shared_repository.folder)
    project.refresh_from_db()
    return project


@pytest.fixture
def own_repository(tmp_path: Path, project: Project) -> Repository:
    """The project's own, to commit to."""
    made = build_repository(tmp_path / "own")
    Project.objects.filter(pk=project.pk).update(repository=made.folder)
    project.refresh_from_db()
    return made


def ask_in_words(
    project: Project, base: str = "main", head: str = "main", **words: Any
) -> tuple[Experiment, bool]:
    request = EstimateRequest(base=base, head=head, **words)
    return experiments.submit_estimate(project, request, "script", command_account())


def commit_manifests(repository: Repository, *manifests: str) -> list[str]:
    return [
        repository.commit(f"Manifest {index}", paceline_toml=text) for index, text in enumerate(manifests)
    ]


def test_two_commits_that_were_never_measured_become_rows(
    project: Project, own_repository: Repository
) -> None:
    base, head = commit_manifests(own_repository, MANIFEST, f"{MANIFEST}\n# faster\n")
    experiment, new = ask_in_words(project, base, head, case=OPTIMIZED, precision="2 %", minutes="7")
    assert new
    assert (experiment.base_commit.hash, experiment.head_commit.hash) == (base, head)
    assert (experiment.head_commit.branch, experiment.head_commit.subject) == ("main", "Manifest 1")
    configuration = experiment.head_configuration
    assert (str(configuration.case), configuration.version) == ("snake[fast=true,variant=optimized]", 2)
    assert (configuration.quick, configuration.pool.name) == (False, "default")
    assert (experiment.metric.name, experiment.question, experiment.purpose) == (
        "step_time",
        "estimate",
        "script",
    )
    assert (experiment.precision, experiment.most_seconds, experiment.state) == (0.02, 420, "requested")
    assert not experiment.has_two_cases


def test_the_older_commit_must_have_the_very_same_case(project: Project, own_repository: Repository) -> None:
    manifests = [
        f"{ONE_CASE}cases = [{case}]\n" for case in ("{ batch = 64, fast = true }", "{ batch = 64 }")
    ]
    base, head = commit_manifests(own_repository, *manifests)
    refused = (
        r"^case: the manifest of \w+ has no walker\[batch=64\], it has walker\[batch=64,fast=true\]: choose"
    )
    with pytest.raises(ExperimentError, match=refused):
        ask_in_words(project, base, head, case="walker[batch=64]")


def test_the_only_case_needs_no_name(project: Project, own_repository: Repository) -> None:
    base, head = commit_manifests(own_repository, ONE_CASE, f"{ONE_CASE}\n")
    experiment, _ = ask_in_words(project, base, head)
    assert str(experiment.head_configuration.case) == "walker"


def test_the_same_question_is_asked_once_at_a_time(described: Project) -> None:
    words = {"case": OPTIMIZED, "toggle": "fast=false"}
    first, new = ask_in_words(described, **words)
    again, new_again = ask_in_words(described, **words, precision="5%")
    assert (new, new_again, again) == (True, False, first)
    other, _ = ask_in_words(described, **words, metric="throughput")
    assert other != first
    Experiment.objects.update(state="done")
    assert ask_in_words(described, **words)[1]


def test_a_question_that_somebody_asks_at_the_same_moment_is_theirs(
    described: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's row is there between the look and the insertion."""
    first, _ = ask_in_words(described, case=OPTIMIZED, toggle="fast=false")
    base = experiments.Side(first.base_commit, first.base_configuration)
    head = experiments.Side(first.head_commit, first.head_configuration)
    answers = iter((None, first))
    asked = SimpleNamespace(first=lambda: next(answers))
    monkeypatch.setattr(Experiment.objects, "filter", lambda **_: asked)
    design = experiments.ExperimentDesign(purpose="person", base=base, head=head, metric=first.metric)
    assert experiments.request_estimate(described, design) == (first, False)
    assert Experiment.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "field", "sentence"),
    [
        ({"base": ""}, "base", "is missing: give a commit's hash, a branch or a tag"),
        ({"base": "nothing"}, "base", "has no commit 'nothing'; its branches are: main"),
        ({"head": "", "case": ""}, "head", "it is missing: give another commit"),
        ({"head": "--all"}, "head", "isn't a revision"),
        ({"base": "main~2"}, "base", "has no paceline.toml"),
        ({"case": ""}, "case", "has several, choose one: snake[fast=true,variant=baseline]"),
        ({"case": "snake"}, "case", "has several, choose one: snake[fast=true,variant=baseline]"),
        ({"case": "snail"}, "case", "has no snail, it has snake[fast=true,variant=baseline]"),
        ({"case": "snake[variant=new]"}, "case", "has no snake[variant=new], it has snake[fast"),
        ({"case": "snake[variant"}, "case", "isn't a case: write NAME or NAME[PARAMETER=VALUE]"),
        (
            {"base": "main~1", "head": "main", "case": "walker"},
            "case",
            "has no walker, it has tiny: choose a case",
        ),
        ({"head_case": "walker"}, "head_case", "snake[fast=true,variant=optimized] are two benchmarks"),
        ({}, "head", "it is the same commit and the same case as the base"),
        ({"toggle": "fast=true"}, "toggle", "snake[fast=true,variant=optimized] is that already"),
        ({"toggle": "2fast"}, "toggle", "'2fast' isn't NAME or NAME=VALUE"),
        ({"toggle": "compile"}, "toggle", "doesn't say what else compile of snake"),
        ({"case": "walker", "toggle": "compile"}, "toggle", "else compile of walker may be: write"),
        ({"toggle": "compile=a=b"}, "toggle", "must be a number, true, false or a word"),
        ({"toggle": "compile=" + 990 * "["}, "toggle", "must be a number, true, false or a word"),
        ({"toggle": f"compile={'x' * 190},y={'x' * 190}"}, "toggle", "more than 300 characters"),
        ({"base": "main~1", "case": "walker", "toggle": "fast"}, "case", "has no walker"),
        ({"metric": "speed", "toggle": "fast"}, "metric", "'speed' isn't measured of snake["),
        ({"metric": "count.drops", "toggle": "fast"}, "metric", "'count.drops' isn't measured of snake["),
        ({"metric": "phase_time", "toggle": "fast"}, "metric", "write phase_time:PHASE"),
        ({"metric": "throughput:learn", "toggle": "fast"}, "metric", "throughput has no phases"),
        ({"metric": f"phase_time:{'x' * 201}", "toggle": "fast"}, "metric", "a phase has 200 characters"),
        ({"precision": "1", "toggle": "fast"}, "precision", "write 1%"),
        ({"precision": "0.001%", "toggle": "fast"}, "precision", "isn't between 0.05 % and 100 %"),
        ({"precision": "nan", "toggle": "fast"}, "precision", "isn't between 0.05 % and 100 %"),
        ({"precision": "fine", "toggle": "fast"}, "precision", "'fine' isn't a number"),
        ({"minutes": "0", "toggle": "fast"}, "minutes", "0 isn't above 0 and at most 10,080"),
        ({"minutes": "inf", "toggle": "fast"}, "minutes", "inf isn't above 0"),
        ({"minutes": "an hour", "toggle": "fast"}, "minutes", "'an hour' isn't a number, such as 20"),
        ({"pool": "nowhere", "toggle": "fast"}, "pool", "there is no pool 'nowhere'"),
        (
            {"toggle": "episodes=9", "quick": True},
            "toggle",
            "quick windows set episodes themselves: ask",
        ),
    ],
)
def test_what_can_not_be_asked_gets_a_sentence_that_names_the_field(
    described: Project, words: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(ExperimentError) as refused:
        ask_in_words(described, **{"case": OPTIMIZED, **words})
    assert (refused.value.field, str(refused.value).startswith(f"{field.replace('_', ' ')}: ")) == (
        field,
        True,
    )
    assert sentence in str(refused.value)
    assert not Experiment.objects.exists()
    assert not Commit.objects.exists()
    assert not Case.objects.exists()


def test_a_toggle_is_of_one_commit(project: Project, own_repository: Repository) -> None:
    commit_manifests(own_repository, f"{MANIFEST}\n")
    with pytest.raises(ExperimentError, match="toggle: it compares two cases at one commit"):
        ask_in_words(project, "main~1", "main", case=OPTIMIZED, toggle="fast")


def test_different_versions_are_not_compared(project: Project, own_repository: Repository) -> None:
    commit_manifests(own_repository, MANIFEST.replace("version = 2", "version = 3"))
    with pytest.raises(ExperimentError, match=r"case: snake is version 2 at .* and 3 at .*different things"):
        ask_in_words(project, "main~1", "main", case=OPTIMIZED)


def test_a_project_without_a_repository_says_so(project: Project) -> None:
    project.repository = ""
    with pytest.raises(ExperimentError, match=r"project: .* only an imported history"):
        ask_in_words(project)


def test_a_broken_manifest_is_quoted(project: Project, own_repository: Repository) -> None:
    commit_manifests(own_repository, "[benchmarks.snake]\nversion = 0\n")
    with pytest.raises(ExperimentError, match=r"head: paceline.toml of .*: benchmarks.snake"):
        ask_in_words(project, "main~1", "main", case=OPTIMIZED)


@pytest.mark.parametrize(
    ("toggle", "key"),
    [
        ("fast", "fast=false,variant=optimized"),
        ("fast=false", "fast=false,variant=optimized"),
        ("variant", "fast=true,variant=baseline"),
        ("tensors", "fast=true,tensors=false,variant=optimized"),
        ("batch=64", "batch=64,fast=true,variant=optimized"),
        ("fast, variant=baseline", "fast=false,variant=baseline"),
    ],
)
def test_a_toggle_changes_parameters_of_the_case(described: Project, toggle: str, key: str) -> None:
    """By its other boolean value, by the only other case, by what a claim says of it, or as it is written."""
    experiment, _ = ask_in_words(described, case=OPTIMIZED, toggle=toggle)
    assert experiment.has_two_cases
    assert experiment.base_commit == experiment.head_commit
    assert experiment.base_configuration.case.key == "fast=true,variant=optimized"
    assert experiment.head_configuration.case.key == key
    assert experiment.head_configuration.case.params.keys() >= {"fast", "variant"}


def test_a_toggle_keeps_the_type_of_its_value(described: Project) -> None:
    experiment, _ = ask_in_words(described, case=OPTIMIZED, toggle="batch=64,fast=false,mode=deep")
    params = experiment.head_configuration.case.params
    assert (params["batch"], params["fast"], params["mode"]) == (64, False, "deep")


def test_two_cases_of_the_manifest_are_compared_at_one_commit(described: Project) -> None:
    experiment, _ = ask_in_words(described, case="snake[variant=baseline]", head_case=OPTIMIZED)
    assert experiment.has_two_cases
    assert experiment.head_configuration.case.params["variant"] == "optimized"


@pytest.mark.parametrize(("measured", "quick"), [((True,), True), ((True, False), False), ((), False)])
def test_it_is_measured_as_the_case_was(described: Project, measured: tuple[bool, ...], quick: bool) -> None:
    case = factories.create_case(described, "walker")
    for how in measured:
        factories.get_configuration(case, quick=how)
    experiment, _ = ask_in_words(described, case="walker", toggle="n=2")
    assert experiment.base_configuration.quick is quick
    assert experiment.head_configuration.quick is quick


def test_quick_windows_may_be_asked_for(described: Project) -> None:
    experiment, _ = ask_in_words(described, case="walker", toggle="n=2", quick=True)
    assert experiment.head_configuration.quick


def test_a_metric_is_the_one_that_is_measured(described: Project) -> None:
    """A number that the code reports is known by its series, with the direction that the manifest gave it."""
    first, _ = ask_in_words(described, case="walker", toggle="n=2")
    reported = Metric.objects.create(name="gauge.queue", unit="1", better="higher", kind="utilization")
    Series.objects.create(configuration=first.head_configuration, metric=reported)
    experiment, _ = ask_in_words(described, case="walker", toggle="n=2", metric="gauge.queue")
    assert experiment.metric == reported


def test_a_phase_belongs_to_the_question(described: Project) -> None:
    words = {"case": "walker", "toggle": "n=2"}
    experiment, _ = ask_in_words(described, **words, metric="phase_time:learn/backward")
    assert (experiment.metric.name, experiment.phase) == ("phase_time", "learn/backward")
    assert ask_in_words(described, **words, metric="phase_time:act")[0] != experiment


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("phase_time:dataloading", "'dataloading'; did you mean data_loading? Of a new phase"),
        ("phase_time:rollout", "'rollout'; it has backward, data_loading. Of a new phase measure a commit"),
        ("gauge.que", "; did you mean gauge.queue?\n"),
        ("speed", "it has gauge.queue, steal_time.\n"),
    ],
)
def test_what_no_run_of_the_case_has_is_refused(described: Project, metric: str, sentence: str) -> None:
    first, _ = ask_in_words(described, case="walker", toggle="n=2", metric="phase_time:rollout")
    phase_time = first.metric
    for phase in ("backward", "data_loading"):
        Series.objects.create(configuration=first.base_configuration, metric=phase_time, phase=phase)
    for name in ("gauge.queue", "steal_time"):
        row = Metric.objects.create(name=name, unit="1", better="lower", kind="utilization")
        Series.objects.create(configuration=first.head_configuration, metric=row)
    with pytest.raises(ExperimentError) as refused:
        ask_in_words(described, case="walker", toggle="n=2", metric=metric)
    assert sentence in f"{refused.value}\n"


@pytest.mark.parametrize(
    ("written", "precision"), [("", 0.01), ("1%", 0.01), ("1 %", 0.01), ("0.5%", 0.005), ("0.02", 0.02)]
)
def test_a_precision_is_read(described: Project, written: str, precision: float) -> None:
    experiment, _ = ask_in_words(described, case="walker", toggle="n=2", precision=written)
    assert experiment.precision == pytest.approx(precision)
    assert experiment.most_seconds == 60 * described.experiment_minutes
