"""The table `environment`, the script's own words, and data that is prepared by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import pytest
from paceline import manifest
from paceline.manifest import Environment, ManifestError, Preparation, preparation
from paceline.manifest.environment_table import parse_install
from paceline.manifest.preparation import PreparationError
from paceline.manifest.script_arguments import format_arguments

from tests import prepared_python
from tests.harness.strangers import UNCOMPILED

TEXT = """
[environment]
lock = "uv.lock"
install = [".[train]", "-e --no-build-isolation packages/core"]
build = ["make"]
python_path = ["src"]

[benchmarks.a]
version = 1
module = "package.train"
steps = 5
params = { batch = 4, fused = true }
arguments = ["config/small.py", "--batch_size={batch}"]
prepare = ["python a.py", { run = "python b.py", reads = ["data/*.py"], writes = ["data"], network = true }]
"""


def test_what_a_real_repository_needs_is_read() -> None:
    parsed = manifest.parse_manifest(TEXT, "m")
    words = (".[train]", "-e --no-build-isolation packages/core")
    assert parsed.environment == Environment((), "uv.lock", words, ("make",), ("src",))
    bench = parsed.benchmarks["a"]
    assert bench.python_path == ("src",)
    assert bench.prepare == (
        Preparation("python a.py"),
        Preparation("python b.py", ("data/*.py",), ("data",), network=True),
    )
    assert str(bench.prepare[1]) == "python b.py, reads data/*.py, writes data, with the network"
    line = format_arguments(bench.cases[0].params, bench.arguments)
    assert line == ["config/small.py", "--batch_size=4", "--fused"]
    core = parse_install(words[1])
    assert core.pip_words() == ["--no-build-isolation", "-e", "./packages/core"]
    assert parse_install(words[0]).pip_words() == ["./.[train]"]


WRONG = {
    "environment.lock: stands beside requirements": (
        "[environment]",
        '[environment]\nrequirements = ["r.txt"]',
    ),
    "environment.lock: is 'poetry.yaml', must be a uv.lock": ('"uv.lock"', '"poetry.yaml"'),
    "environment.lock: is '../uv.lock', must be a path inside": ('"uv.lock"', '"../uv.lock"'),
    "environment.install: 'numpy/../..' must be a folder": ('".[train]"', '"numpy/../.."'),
    "environment.install: '--user .' has --user, of pip's": ('".[train]"', '"--user ."'),
    "environment.build: is empty": ('["make"]', "[]"),
    "environment.python_path: is '/src', must be a path inside": ('["src"]', '["/src"]'),
    "environment.instal: is unknown, did you mean 'install'?": ("install", "instal"),
    "benchmarks.a.arguments: has {batch}, which is no parameter of the case fused=true": ("batch = 4, ", ""),
    "benchmarks.a.prepare: must be a list of strings or tables": ('"python a.py"', "1"),
    "benchmarks.a.prepare[1].run: is missing": ('run = "python b.py", ', ""),
    "benchmarks.a.prepare[1].reads: is '/etc/*', must be a path inside": ("data/*.py", "/etc/*"),
    "benchmarks.a.prepare[1].write: is unknown, did you mean 'writes'?": ("writes", "write"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_key_is_named(sentence: str) -> None:
    old, new = WRONG[sentence]
    with pytest.raises(ManifestError) as caught:
        manifest.parse_manifest(TEXT.replace(old, new, 1), "m")
    assert f"m: {sentence}" in str(caught.value)


def test_patterns_choose_files_and_all_in_a_folder() -> None:
    assert preparation.is_chosen("data/deep/a.py", ("data/*.py",))
    assert preparation.is_chosen("data/deep/a.txt", ("data",))
    assert not preparation.is_chosen("datasets/a.py", ("data",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which a command may count how often it was run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "code" / "src").mkdir(parents=True)
    (tmp_path / "code" / "src" / "words.py").write_text("TEXT = 'words'")
    return tmp_path / "code"


def prepare_by_hand(folder: Path, *preparations: Preparation) -> list[str]:
    told: list[str] = []
    preparation.prepare_by_hand(preparations, folder, ("src",), told.append)
    return told


COMMAND = 'python -c \'import words; open("data.txt", "a").write(words.TEXT)\''


def test_by_hand_it_runs_until_it_is_there(folder: Path) -> None:
    made = Preparation(COMMAND, reads=("src/*.py",))
    assert prepare_by_hand(folder, made) == [f"preparing the data: {COMMAND}"]
    assert prepare_by_hand(folder, made) == []
    assert (folder / "data.txt").read_text() == "words"
    (folder / "src" / "words.py").write_text("TEXT = ' and others'")
    assert prepare_by_hand(folder, made) != []
    (folder / "data.txt").unlink()
    assert prepare_by_hand(folder, made) != []
    # What somebody has put there needs no command.
    assert prepare_by_hand(folder, Preparation("false", writes=("data.*",))) == []
    with pytest.raises(preparation.PreparationError, match="'exit 3' failed with exit status 3"):
        prepare_by_hand(folder, Preparation("exit 3"))


SCRIPT = (
    UNCOMPILED
    + """
from words import TEXT
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(30):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
)


@pytest.mark.parametrize("given", [[], ["--python-path", "src"]])
def test_a_module_below_src_is_found(folder: Path, given: list[str]) -> None:
    (folder / "src" / "package").mkdir()
    (folder / "src" / "package" / "train.py").write_text(SCRIPT)
    options = ["--steps", "10", "--keep-running", *given]
    command = [sys.executable, "-m", "paceline", "script", *options, "-m", "package.train"]
    ended = prepared_python.run_prepared(command, cwd=folder, capture_output=True)
    assert (ended.returncode, "throughput" in ended.stdout) == (0, True), ended.stderr
    told = "package.train lies below src: --python-path src is taken"
    assert (told in ended.stderr) == (not given)


def test_by_hand_it_ends_at_its_time_limit_with_what_it_started(folder: Path) -> None:
    begun = perf_counter()
    with pytest.raises(PreparationError, match=r"'sleep 60; true' took longer than 0 s"):
        preparation.prepare_by_hand([Preparation("sleep 60; true")], folder, (), print, 0.2)
    assert perf_counter() - begun < 30
