"""Data that a benchmark's commands make: once for each content of what they read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from paceline.manifest import Preparation, parse_manifest

from tests.workers.host.boxes import MIB, small_box
from workers.host.box.box import NO_BOX, Box, Sandbox
from workers.host.checkout.commit_code import CommitCode
from workers.host.environments.build_runner import BuildRunner
from workers.host.environments.prepared_data import PREPARED, prepare_data
from workers.host.environments.shared_environments import BuiltEnvironment, Environments, list_environments
from workers.host.errors import BuildError
from workers.host.logs import Log

MANIFEST = '[benchmarks.a]\nversion = 1\nscript = "a.py"\nsteps = 5'
MAKE = """
import pathlib, sys
folder = pathlib.Path("data")
(folder / "corpus.txt").write_text(pathlib.Path("data/source.txt").read_text() * 2)
(folder / "deep").mkdir()
(folder / "deep" / "tokens.bin").write_bytes(b"tokens")
print("made", file=sys.stderr)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "source.txt").write_text("text ")
    (folder / "make.py").write_text(MAKE)
    (folder / "model.py").write_text("")
    return folder


@pytest.fixture(scope="module", params=["boxed", "unboxed"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Box:
    if request.param == "unboxed":
        return NO_BOX
    return small_box(
        "bubblewrap", tmp_path_factory.mktemp("box"), Sandbox(network="none", build_disk=90 * MIB)
    )


def code_at(checkout: Path, tree: str, *preparations: Preparation) -> CommitCode:
    manifest = parse_manifest(MANIFEST, "m")
    benchmark = replace(manifest.benchmarks["a"], prepare=preparations)
    return CommitCode("c" * 40, checkout, manifest, benchmark, tree)


def runner_at(home: Path, box: Box = NO_BOX) -> BuildRunner:
    return BuildRunner(home, Log(), host_variables={}, box=box)


def own_environment(checkout: Path, runner: BuildRunner) -> BuiltEnvironment:
    return Environments(runner).base(checkout, None)


def prepare_at_home(code: CommitCode, runner: BuildRunner) -> str:
    """What the log says of it."""
    folders = prepare_data(code, own_environment(code.folder, runner), runner)
    assert all(folder.is_relative_to(runner.home / PREPARED) for folder in folders)
    return runner.log.finish()


def begin_anew(checkout: Path) -> None:
    """As the next checkout of a commit begins."""
    for left in ("data/corpus.txt", "data/copy.txt", "data/deep/tokens.bin", "data/deep"):
        path = checkout / left
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)


def test_it_is_made_once_for_what_is_read(tmp_path: Path, checkout: Path, box: Box) -> None:
    made = Preparation("python make.py", reads=("make.py", "data/*.txt"), writes=("data",))
    assert "made" in prepare_at_home(code_at(checkout, "tree 1", made), runner_at(tmp_path, box))
    # Where the command wrote it, and not to be changed.
    assert (checkout / "data/corpus.txt").read_text() == "text text "
    assert (checkout / "data/corpus.txt").stat().st_mode & 0o222 == 0
    begin_anew(checkout)
    (checkout / "model.py").write_text("changed = True")
    assert prepare_at_home(code_at(checkout, "tree 2", made), runner_at(tmp_path, box)) == ""
    assert (checkout / "data/deep/tokens.bin").read_bytes() == b"tokens"
    begin_anew(checkout)
    (checkout / "data" / "source.txt").write_text("other ")
    assert "made" in prepare_at_home(code_at(checkout, "tree 3", made), runner_at(tmp_path, box))
    assert (checkout / "data/corpus.txt").read_text() == "other other "
    assert len(list_environments(tmp_path, PREPARED)) == 2


def test_no_project_finds_what_another_has_made(tmp_path: Path, checkout: Path) -> None:
    """Its command may have done anything with what it doesn't say that it reads."""
    made = Preparation("python make.py", reads=("data/*.txt",), writes=("data",))
    theirs = replace(code_at(checkout, "tree", made), project="theirs")
    (checkout / "make.py").write_text(MAKE.replace("* 2", "* 3"))
    prepare_at_home(theirs, runner_at(tmp_path))
    begin_anew(checkout)
    (checkout / "make.py").write_text(MAKE)
    prepare_at_home(replace(theirs, project="ours"), runner_at(tmp_path))
    assert (checkout / "data/corpus.txt").read_text() == "text text "


def test_no_branch_finds_what_a_fork_has_made(tmp_path: Path, checkout: Path) -> None:
    """A fork finds what the branches have made of the same, and else makes its own."""
    made = Preparation("python make.py", reads=("data/*.txt",), writes=("data",))
    after = Preparation(
        "cp data/corpus.txt data/copy.txt", reads=("data/source.txt",), writes=("data/copy.txt",)
    )
    branch = code_at(checkout, "tree", made, after)
    forks = replace(branch, on_branch=False)
    (checkout / "make.py").write_text(MAKE.replace("* 2", "* 3"))
    told = prepare_at_home(forks, runner_at(tmp_path))
    assert "for this commit alone, since it is on no branch of the project" in told
    assert (checkout / "data/copy.txt").read_text() == "text text text "
    begin_anew(checkout)
    assert prepare_at_home(forks, runner_at(tmp_path)) == ""
    begin_anew(checkout)
    assert "made" in prepare_at_home(replace(forks, commit="d" * 40), runner_at(tmp_path))
    begin_anew(checkout)
    (checkout / "make.py").write_text(MAKE)
    assert "made" in prepare_at_home(branch, runner_at(tmp_path))
    assert (checkout / "data/copy.txt").read_text() == "text text "
    begin_anew(checkout)
    assert prepare_at_home(replace(forks, commit="e" * 40), runner_at(tmp_path)) == ""
    assert (checkout / "data/copy.txt").read_text() == "text text "


def test_without_reads_each_commit_has_its_own(tmp_path: Path, checkout: Path) -> None:
    made = Preparation("python make.py")
    told = prepare_at_home(code_at(checkout, "tree 1", made), runner_at(tmp_path))
    assert "for this commit alone, since the manifest doesn't say what it reads" in told
    begin_anew(checkout)
    assert prepare_at_home(code_at(checkout, "tree 1", made), runner_at(tmp_path)) == ""
    begin_anew(checkout)
    assert "made" in prepare_at_home(code_at(checkout, "tree 2", made), runner_at(tmp_path))


def test_the_next_command_sees_what_the_last_one_made(tmp_path: Path, checkout: Path, box: Box) -> None:
    first = Preparation("python make.py", reads=("make.py", "data/source.txt"))
    second = Preparation("wc -c < data/corpus.txt > data/size.txt", reads=())
    with pytest.raises(BuildError, match="the commit has none of the files that it reads"):
        prepare_at_home(code_at(checkout, "tree", first, second), runner_at(tmp_path, box))
    begin_anew(checkout)
    second = replace(second, reads=("make.py",))
    prepare_at_home(code_at(checkout, "tree", first, second), runner_at(tmp_path, box))
    assert (checkout / "data/size.txt").read_text().strip() == "10"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo half > data/half.txt; echo no disk; exit 4", "ended with exit status 4: no disk"),
        ("echo x >> model.py", "has changed model.py, a file of the commit"),
        ("true", "has written no file into the checkout"),
    ],
)
def test_a_failure_keeps_nothing(tmp_path: Path, checkout: Path, box: Box, command: str, reason: str) -> None:
    with pytest.raises(BuildError, match=reason):
        prepare_at_home(code_at(checkout, "tree", Preparation(command)), runner_at(tmp_path, box))
    assert list_environments(tmp_path, PREPARED) == []


def test_a_host_without_a_network_says_so(tmp_path: Path, checkout: Path) -> None:
    boxed = small_box("bubblewrap", tmp_path / "box", Sandbox(network="none"))
    needy = Preparation("python make.py", network=True)
    with pytest.raises(BuildError, match="The data needs the network, which this host gives to no build"):
        prepare_at_home(code_at(checkout, "tree", needy), runner_at(tmp_path, boxed))
