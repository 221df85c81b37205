from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from paceline.counting.read_files import recorded_files
from paceline.manifest.environment_table import Environment
from paceline.manifest.preparation import content_digest

from tests.workers.host.wheels import build_wheel
from workers.host.environments import requirements
from workers.host.environments.build_runner import BuildRunner
from workers.host.environments.requirements import read_requirements
from workers.host.environments.shared_environments import (
    COMPLETION_MARK,
    Environments,
    copy_harness_dependencies,
    list_environments,
    write_mark,
)
from workers.host.errors import BuildError, Stopped
from workers.host.logs import Log

SURROUNDINGS = {"PIP_NO_INDEX": "1", "DATABASE_URL": "postgresql:///secret"}


@pytest.fixture
def commit(tmp_path: Path) -> Path:
    """A checkout whose requirements install a module `tiny`."""
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "requirements.txt").write_text(
        build_wheel(tmp_path / "wheels", "tiny", "SIZE = 3")
    )
    return tmp_path / "checkout"


REQUIREMENTS = Environment(("requirements.txt",))


def runner_at(home: Path, log: Log | None = None) -> BuildRunner:
    return BuildRunner(home, log or Log(), host_variables=SURROUNDINGS)


def environments_at(home: Path, log: Log | None = None) -> Environments:
    return Environments(runner_at(home, log))


def test_without_requirements_the_workers_own_is_used(tmp_path: Path) -> None:
    for environment in (None, Environment(python_path=("src",))):
        assert environments_at(tmp_path).base(tmp_path, environment).python == Path(sys.executable)


def test_one_is_built_once_and_used_again(tmp_path: Path, commit: Path) -> None:
    build_wheel(commit / "wheels", "tiny", "SIZE = 3")
    (commit / "requirements.txt").write_text("-f wheels\ntiny\n")
    # The rest of a build that was interrupted does not count.
    key = read_requirements(commit, ["requirements.txt"]).key()
    half = tmp_path / "environments" / key[:32]
    (half / "bin").mkdir(parents=True)
    assert [environment.complete for environment in list_environments(tmp_path)] == [False]
    log = Log()
    python = environments_at(tmp_path, log).base(commit, REQUIREMENTS).python
    code = "import tiny, psutil; print(tiny.SIZE, psutil.Process().memory_info().rss > 0)"
    assert subprocess.check_output([python, "-c", code], text=True) == "3 True\n"
    assert "Successfully installed tiny-1.0" in log.finish()
    # The second time nothing is said, since nothing is done.
    assert environments_at(tmp_path, again := Log()).base(commit, REQUIREMENTS).python == python
    assert again.finish() == ""
    # Scripts of the environment start with the path that it was built at.
    assert (
        subprocess.run([python.parent / "pip", "--version"], check=False, capture_output=True).returncode == 0
    )
    assert [cached.folder for cached in list_environments(tmp_path) if cached.complete] == [half]
    marked = json.loads((python.parent.parent / COMPLETION_MARK).read_text())
    assert list(marked["requirements"]) == ["requirements.txt"]
    # Another commit has its own wheel, which makes another key.
    build_wheel(commit / "wheels", "tiny", "SIZE = 4")
    assert read_requirements(commit, ["requirements.txt"]).key() != key


def test_a_folder_that_is_named_often_is_read_once(
    tmp_path: Path, commit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of requirements may name it two hundred thousand times."""
    build_wheel(commit / "wheels", "tiny", "SIZE = 3")
    spelled = "".join(f"-f {'./' * number}wheels\n" for number in range(20))
    (commit / "requirements.txt").write_text("-f wheels\n" * 500 + f"{spelled}tiny\n")
    read: list[Path] = []

    def noted(folder: Path, paths: Iterable[str]) -> str:
        read.append(folder)
        return content_digest(folder, paths)

    monkeypatch.setattr(requirements, "content_digest", noted)
    assert list(read_requirements(commit, ["requirements.txt"]).sources) == ["packages in wheels"]
    assert len(read) == 1


def test_a_folder_may_be_an_index_and_hold_wheels(commit: Path) -> None:
    """Of an index pip sees what lies below it too, whatever else names the folder."""
    (commit / "requirements.txt").write_text("-i wheels\n-f wheels\ntiny\n")
    build_wheel(commit / "wheels" / "tiny", "tiny", "SIZE = 1")
    before = read_requirements(commit, ["requirements.txt"]).key()
    build_wheel(commit / "wheels" / "tiny", "tiny", "SIZE = 2")
    assert read_requirements(commit, ["requirements.txt"]).key() != before


def test_a_requirement_may_be_longer_than_the_name_of_a_file(commit: Path) -> None:
    line = "tiny" + ",".join(f"!=1.{number}" for number in range(2, 80))
    (commit / "requirements.txt").write_text(f"-f wheels\n{line}\n")
    assert not read_requirements(commit, ["requirements.txt"]).local
    (commit / "requirements.txt").write_text(f"-e ./{'a' * 300}\n")
    with pytest.raises(BuildError, match="installs a folder or file"):
        read_requirements(commit, ["requirements.txt"])


def test_a_line_goes_on_behind_a_backslash(commit: Path) -> None:
    build_wheel(commit / "wheels", "tiny", "SIZE = 3")
    (commit / "setup.py").touch()
    (commit / "more.txt").write_text("other==1 \\\n    --hash=sha256:00\n")
    text = "--find-links \\\n  wheels\n-r \\\nmore.txt\n# no \\\n-e \\\n.\ntiny\n"
    (commit / "requirements.txt").write_text(text)
    read = read_requirements(commit, ["requirements.txt"])
    assert list(read.sources) == ["packages in wheels"]
    assert list(read.texts) == ["requirements.txt", "more.txt"]
    assert read.local == ("-e .",)
    assert read.texts["requirements.txt"] == text.replace("-e \\\n.\n", "")


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    os.truncate(tmp_path / "requirements.txt", 2**40)
    with pytest.raises(BuildError, match="is larger than 1048576 bytes"):
        read_requirements(tmp_path, ["requirements.txt"])


def test_what_is_lent_has_its_record(tmp_path: Path) -> None:
    (packages := tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    copy_harness_dependencies(packages)
    for name in (b"psutil/__init__.py", b"pynvml.py"):
        assert name in recorded_files(str(packages), name.partition(b"/")[0])


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_record_is_lent_through_no_link(tmp_path: Path, is_whole: bool) -> None:
    """That of pynvml has its package's name, which is another one."""
    (packages := tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "METADATA").write_text("of the host")
    record = packages / f"nvidia_ml_py-{importlib.metadata.version('nvidia-ml-py')}.dist-info"
    if is_whole:
        record.symlink_to(elsewhere)
    else:
        record.mkdir()
        (record / "METADATA").symlink_to(elsewhere / "METADATA")
    copy_harness_dependencies(packages)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"METADATA": "of the host"}
    assert b"pynvml.py" in recorded_files(str(packages), b"pynvml.py")


def test_a_link_in_place_of_its_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("elsewhere")
    with pytest.raises(BuildError, match="a package has put a link in place of its folders"):
        copy_harness_dependencies(tmp_path / "lib" / "python3.11" / "site-packages")


def test_the_mark_is_written_through_no_link(tmp_path: Path) -> None:
    for name in (COMPLETION_MARK, f"{COMPLETION_MARK}.draft"):
        (tmp_path / name).symlink_to(tmp_path / "token")
    (tmp_path / "token").write_text("secret")
    write_mark(tmp_path / COMPLETION_MARK, "{}")
    assert (tmp_path / "token").read_text() == "secret"
    assert not (tmp_path / COMPLETION_MARK).is_symlink()


def test_a_run_that_is_no_longer_ours_stops_the_build(tmp_path: Path, commit: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        Environments(BuildRunner(tmp_path, Log(), stop)).base(commit, REQUIREMENTS)


def test_the_build_sees_how_packages_are_reached_and_no_more(tmp_path: Path) -> None:
    seen = runner_at(tmp_path).pip_environment()
    assert seen["PIP_NO_INDEX"] == "1"
    assert "DATABASE_URL" not in seen


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"The requirements file 'requirements.txt' is not a file of this"):
        environments_at(tmp_path).base(tmp_path, REQUIREMENTS)


def test_a_conflict_of_versions_says_who_requires_what(tmp_path: Path) -> None:
    build_wheel(tmp_path / "wheels", "engine", "")
    listed = build_wheel(tmp_path / "wheels", "game", "", requires="engine==2.0") + "engine==1.0\n"
    (tmp_path / "requirements.txt").write_text(listed)
    with pytest.raises(BuildError, match=r"game 1.0 depends on engine==2.0: no version fits all of them"):
        environments_at(tmp_path).base(tmp_path, REQUIREMENTS)


def test_a_file_out_of_the_checkout_is_refused(commit: Path) -> None:
    (commit / "requirements.txt").write_text("-r ../../etc/passwd\n")
    with pytest.raises(BuildError, match="leads out of the checkout"):
        read_requirements(commit, ["requirements.txt"])


@pytest.mark.parametrize("line", ["-r more.txt", "-rmore.txt", "--requirement=more.txt", "-c more.txt # why"])
def test_an_included_file_makes_another_key(commit: Path, line: str) -> None:
    (commit / "requirements.txt").write_text(line + "\n")
    (commit / "more.txt").write_text("a==1")
    before = read_requirements(commit, ["requirements.txt"]).key()
    (commit / "more.txt").write_text("a==2")
    assert read_requirements(commit, ["requirements.txt"]).key() != before


@pytest.mark.parametrize(
    "line",
    [
        "--find-links wheels",
        "--find-links=./wheels",
        "-fwheels",
        "-i wheels",
        "--no-index --find-links wheels",
    ],
)
def test_a_wheel_of_the_commit_makes_another_key(commit: Path, line: str) -> None:
    (commit / "deploy" / "wheels").mkdir(parents=True)
    (commit / "deploy" / "requirements.txt").write_text(f"-r ../more.txt\n{line}\ntiny\n")
    (commit / "more.txt").write_text("--find-links vendor/tiny-1.0-py3-none-any.whl\n")
    keys = set()
    for folder in ("vendor", "deploy/wheels"):
        for size in (1, 2):
            build_wheel(commit / folder, "tiny", f"SIZE = {size}")
            keys.add(read_requirements(commit, ["deploy/requirements.txt"]).key())
    assert len(keys) == 4


def test_wheels_of_two_folders_of_one_name_are_told_apart(commit: Path) -> None:
    (commit / "requirements.txt").write_text("-r a/more.txt\n-r b/more.txt\n")
    for folder in ("a", "b"):
        build_wheel(commit / folder / "wheels", "tiny", "SIZE = 1")
        (commit / folder / "more.txt").write_text("-f wheels\n")
    before = read_requirements(commit, ["requirements.txt"]).key()
    build_wheel(commit / "a" / "wheels", "tiny", "SIZE = 2")
    assert read_requirements(commit, ["requirements.txt"]).key() != before


def test_an_index_with_a_long_token_is_no_folder(commit: Path) -> None:
    (commit / "requirements.txt").write_text(
        f"--extra-index-url https://aws:{1000 * 'a'}@host/simple\ntiny\n"
    )
    assert not read_requirements(commit, ["requirements.txt"]).sources


def test_code_beside_a_wheel_makes_no_other_key(commit: Path) -> None:
    """pip looks for packages in the folder itself alone."""
    (commit / "requirements.txt").write_text("--find-links .\ntiny\n")
    build_wheel(commit, "tiny", "SIZE = 1")
    before = read_requirements(commit, ["requirements.txt"]).key()
    (commit / "train.py").write_text("print('faster')")
    build_wheel(commit / "tests", "tiny", "SIZE = 2")
    assert read_requirements(commit, ["requirements.txt"]).key() == before


LOCAL = (
    *("-e .", "--editable ./lib", "--editable=lib", "./lib", ".", "src/pkg", "'src/pkg'", "/srv/pkg"),
    *("file:src/pkg", "pkg @ file:./src", "pkg@FILE:///srv/pkg", "vendor/x.whl[all]", "x.whl", "x.whl[all]"),
)


@pytest.mark.parametrize("line", LOCAL)
def test_code_of_the_commit_is_not_put_into_a_kept_environment(commit: Path, line: str) -> None:
    (commit / "x.whl").touch()
    (commit / "requirements.txt").write_text(f"numpy\n{line}\n")
    with pytest.raises(
        BuildError, match=r"requirements.txt line 2 installs a folder or file: an environment"
    ):
        read_requirements(commit, ["requirements.txt"])


@pytest.mark.parametrize(
    "line",
    [
        *("numpy>=2 # not file:x", "numpy[all]; python_version > '3'", "--index-url https://host/simple"),
        *("https://host/x.whl", "pkg @ https://host/x.whl", "pkg[all]@git+ssh://git@host/pkg@1f", "pkg"),
    ],
)
def test_what_comes_over_the_network_is_accepted(commit: Path, line: str) -> None:
    (commit / "pkg").mkdir()
    (commit / "requirements.txt").write_text(line + "\n")
    assert read_requirements(commit, ["requirements.txt"]).texts == {"requirements.txt": line + "\n"}


def test_the_commits_own_packages_are_taken_out_of_its_requirements(commit: Path) -> None:
    (commit / "setup.py").touch()
    (commit / "requirements.txt").write_text("numpy\n-e .[train]\n-r more.txt\n")
    (commit / "more.txt").write_text(".\n")
    found = read_requirements(commit, ["requirements.txt"])
    assert found.texts == {"requirements.txt": "numpy\n-r more.txt\n", "more.txt": ""}
    assert found.local == ("-e '.[train]'", ".")


def test_files_that_include_each_other_are_read_once(commit: Path) -> None:
    (commit / "requirements.txt").write_text("-r more.txt\n")
    (commit / "more.txt").write_text("-r requirements.txt\n")
    assert list(read_requirements(commit, ["requirements.txt"]).texts) == [
        "requirements.txt",
        "more.txt",
    ]
