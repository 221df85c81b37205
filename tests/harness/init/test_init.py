"""`python -m paceline init`: a repository is looked at, tried, and gets a manifest that runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from paceline import manifest
from paceline.init.arguments import learn_sooner, propose_arguments, shorten_arguments
from paceline.init.candidates import Candidate, find_candidates
from paceline.init.exploration import Exploration
from paceline.init.manifest_text import find_params, write_manifest
from paceline.init.packages import EnvironmentGuess, guess_environment
from paceline.init.preparation_guess import format_preparation, guess_preparation
from paceline.init.readme import CommandLine, find_command_lines
from paceline.init.repository import Repository, read_repository
from paceline.init.script_words import split_arguments
from paceline.init.sentences import describe_missing, describe_start, describe_window, find_error
from paceline.init.trial import Trial, TrialState
from paceline.init.window import Window, choose_window, shorten_window

from tests.harness.conftest import MEASURING_ONCE, Project
from tests.harness.strangers import TRAIN, UNCOMPILED

GUARD = "\nif __name__ == '__main__':\n    main(10**6)\n"
SMALL = "import torch\noptimizer = torch.optim.SGD([], lr=1)\nfor _ in range(9):\n    loss.backward()\n"

# `init` watches a script for a second, not for six, and chooses a window that much shorter.
WATCHING_SHORTLY = MEASURING_ONCE.replace(
    "sys.exit(",
    "from paceline.init import trial, window\n"
    "trial.WATCHED_SECONDS, window.WARMUP_SECONDS, window.WINDOW_SECONDS = 1.0, 0.3, 0.5\n"
    "sys.exit(",
)


def write_files(folder: Path, files: Mapping[str, str]) -> Repository:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read_repository(folder)


def look_at(folder: Path, files: Mapping[str, str]) -> tuple[Repository, list[CommandLine], list[Candidate]]:
    repository = write_files(folder, files)
    commands = find_command_lines(repository)
    return repository, commands, find_candidates(repository, commands)


# A package below src whose training reads a file that another command makes.
SRC_PROJECT = {
    "pyproject.toml": '[project]\nname = "learner"\nversion = "1"\ndependencies = ["torch"]\n',
    "README.md": "# Learner\n\n```sh\npython prepare.py\npython -m learner.train --device cuda\n```\n",
    "prepare.py": "open('numbers.txt', 'w').write('1000000')\n",
    "src/learner/__init__.py": "",
    "src/learner/model.py": "from torch import nn\n",
    "src/learner/train.py": "import argparse\n"
    "steps = int(open('numbers.txt').read())\nfrom .model import nn as _nn\n"
    + TRAIN
    + "\nif __name__ == '__main__':\n"
    "    parser = argparse.ArgumentParser()\n"
    "    parser.add_argument('--device', default='cuda')\n"
    "    assert parser.parse_args().device == 'cpu'\n"
    "    main(steps)\n",
    "src/learner/evaluate.py": "import torch\nif __name__ == '__main__':\n    torch.ones(1).sum()\n",
}


@pytest.fixture(scope="module")
def initialized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A real run, without a device also where there is one."""
    folder = tmp_path_factory.mktemp("learner")
    write_files(folder, SRC_PROJECT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        # Where it is kept which data was made.
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        return folder, Project(folder, prepared=True, code=WATCHING_SHORTLY).call("init")


def test_a_package_below_src_is_found_prepared_and_measured(
    initialized: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, ended = initialized
    assert ended.returncode == 0, ended.stderr
    assert "python -m learner.train: imports torch" in ended.stdout
    assert "--device cpu: this machine has no CUDA device" in ended.stdout
    assert "python prepare.py: tried, its data is here now" in ended.stdout
    for phase in ("forward", "backward", "optimizer", "data_loading"):
        assert f"\n{phase} " in ended.stdout
    assert "python -m paceline run learner-train" in ended.stdout
    assert (folder / "numbers.txt").exists()


def test_its_manifest_says_what_was_tried(
    initialized: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    text = (initialized[0] / "paceline.toml").read_text()
    for line in (
        'install = ["."]',
        'python_path = ["src"]',
        'module = "learner.train"',
        'params = { device = "cpu" }',
        'prepare = ["python prepare.py"]',
    ):
        assert line in text


def test_a_manifest_is_never_replaced_unasked(
    initialized: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder = initialized[0]
    before = (folder / "paceline.toml").read_text()
    again = Project(folder).call("init")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    assert "paceline.toml: is there already, --force replaces it" in again.stderr
    assert (folder / "paceline.toml").read_text() == before


def test_missing_packages_are_named_and_the_manifest_is_written(tmp_path: Path) -> None:
    files = {"requirements.txt": "torch\nno-such\n", "train.py": "import no_such\n" + TRAIN + GUARD}
    write_files(tmp_path, files)
    ended = Project(tmp_path).call("init")
    assert ended.returncode == 1
    assert "train.py imports no_such, which this Python lacks: pip install no-such" in ended.stderr
    written = manifest.load_manifest(tmp_path / "paceline.toml")
    assert written.environment is not None
    assert written.environment.requirements == ("requirements.txt",)
    assert written.benchmarks["train"].script == "train.py"


def test_a_package_that_has_to_be_built_is_installed_from_the_repository(tmp_path: Path) -> None:
    """Never from an index, where the name may be somebody else's."""
    files = {
        "setup.py": "setup(name='fast', ext_modules=[Extension('fast._core', ['fast/core.c'])])\n",
        "fast/__init__.py": "from fast._core import add\n",
        "examples/train.py": "import fast\n" + TRAIN + GUARD,
    }
    write_files(tmp_path, files)
    ended = Project(tmp_path, prepared=True).call("init")
    assert ended.returncode == 1
    assert ": install the repository's own package, pip install -e .; paceline.toml was" in ended.stderr
    written = manifest.load_manifest(tmp_path / "paceline.toml").environment
    assert written is not None
    assert (written.install, written.python_path) == (("-e .",), (".",))


def test_a_script_that_fails_without_arguments_gets_those_of_the_readme(tmp_path: Path) -> None:
    script = f"import argparse\n{TRAIN}\nparser = argparse.ArgumentParser()\n"
    script += "parser.add_argument('--data')\nopen(parser.parse_args().data)\nmain(10**6)\n"
    readme = "Train:\n\n    python train.py --data numbers.txt\n"
    write_files(tmp_path, {"train.py": script, "README.md": readme, "numbers.txt": "1"})
    ended = Project(tmp_path, prepared=True, code=WATCHING_SHORTLY).call("init")
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^arguments +a line of README.md", ended.stdout, re.MULTILINE)
    assert re.search(r"^failed +python train.py: TypeError", ended.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "of 1 Python file none imports PyTorch"),
        ((), "steps of jax aren't seen by themselves"),
        (("--script", "other.py"), "--script other.py: there is no such Python file"),
        (("-m", "a.b"), "--module a.b: there is no such module"),
        (("nowhere",), "nowhere: is no folder"),
        (("--script", "tool.py"), "tool.py took no step"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    write_files(tmp_path, {"tool.py": "import jax\n" if "jax" in sentence else "print('hello')\n"})
    ended = Project(tmp_path).call("init", *arguments)
    assert ended.returncode == 1
    assert sentence in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "paceline.toml").exists()


def test_a_script_without_a_step_is_told_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"tool.py": UNCOMPILED + "print('done')\n"})
    ended = Project(tmp_path, prepared=True, code=WATCHING_SHORTLY).call("init", "--script", "tool.py")
    assert re.search(r"^failed +python tool.py: tool.py took no step: ", ended.stdout, re.MULTILINE)


def test_a_script_that_always_fails_in_the_end_is_measured_before_that(tmp_path: Path) -> None:
    # Its data is named as seen from its own folder.
    script = f"import sys\n{TRAIN}\nmain(int(open('../data/steps').read()))\nsys.exit(3)\n"
    write_files(tmp_path, {"one/train.py": script, "data/steps": "200"})
    ended = Project(tmp_path, prepared=True, code=WATCHING_SHORTLY).call("init")
    assert ended.returncode == 0, ended.stderr
    behind = "train.py crashed with exit status 3, behind 199 steps: those before are measured"
    assert behind in ended.stderr
    assert re.search(r"^script +cd one && python train.py: ", ended.stdout, re.MULTILINE)
    benchmark = manifest.load_manifest(tmp_path / "paceline.toml").benchmarks["one-train"]
    assert (benchmark.script, benchmark.working_directory) == ("one/train.py", "one")
    assert benchmark.warmup_steps + benchmark.steps < 199


def test_a_script_that_fails_at_its_beginning_is_told_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"train.py": f"import sys\n{TRAIN}\nmain(9)\nsys.exit(3)\n"})
    ended = Project(tmp_path, prepared=True, code=WATCHING_SHORTLY).call("init")
    assert ended.returncode == 1
    assert "train.py crashed with exit status 3" in ended.stderr
    assert not (tmp_path / "paceline.toml").exists()


def test_a_script_that_asks_for_its_rank_is_tried_in_two_processes(tmp_path: Path) -> None:
    joined = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
    write_files(tmp_path, {"train.py": joined + TRAIN + GUARD})
    ended = Project(tmp_path, prepared=True, code=WATCHING_SHORTLY).call("init", "--script", "train.py")
    assert "paceline: trying python train.py in 2 processes" in ended.stderr
    assert re.search(r"^ranks +2 processes of this host", ended.stdout, re.MULTILINE)
    written = manifest.load_manifest(tmp_path / "paceline.toml").benchmarks["train"]
    assert (written.processes, written.auto) == (2, True)


def test_the_next_is_tried_where_only_one_asks_for_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a script starts in its own folder where what it misses lies there."""
    files = {"a/train.py": SMALL, "b/train.py": SMALL, "c/train.py": SMALL, "data/x.bin": ""}
    repository, commands, found = look_at(tmp_path, files)
    lacks = f"  File \"{tmp_path}/a/train.py\", line 2\nModuleNotFoundError: No module named 'far'"
    misses = "FileNotFoundError: {} not found."
    outputs = {
        "a/train.py": lacks,
        "b/train.py": misses.format("https://far.example/x.bin"),
        "c/train.py": misses.format("../data/x.bin"),
    }
    tried = []

    def watch(candidate: Candidate, _words: object, _folder: Path) -> Trial:
        tried.append((candidate.path, candidate.working_directory))
        if candidate.working_directory:
            return Trial(TrialState.STEPPED)
        return Trial(TrialState.FAILED, output=outputs[candidate.path])

    monkeypatch.setattr("paceline.init.trial.watch_script", watch)
    attempt = Exploration(repository, commands, True, None, print).find_running(found)
    assert tried == [("a/train.py", ""), ("b/train.py", ""), ("c/train.py", ""), ("c/train.py", "c")]
    assert attempt is not None
    assert attempt.candidate.working_directory == "c"
    outputs["a/train.py"] = lacks.replace("a/train.py", "shared.py")
    assert Exploration(repository, commands, True, None, print).find_running(found) is None


def test_candidates_are_ranked_and_libraries_left_out(tmp_path: Path) -> None:
    training = SMALL + "if __name__ == '__main__':\n    pass\n"
    _, _, found = look_at(
        tmp_path,
        {
            "README.md": "`python zoo/ppo.py --env-id CartPole-v1`\n",
            "zoo/ppo.py": training,
            "zoo/dqn.py": training,
            "tests/test_train.py": training,
            "engine.py": "import torch\ndef fit(loss):\n    loss.backward()\n",
            "plot.py": "import torch\nif __name__ == '__main__':\n    pass\n",
        },
    )
    assert [candidate.path for candidate in found] == ["zoo/ppo.py", "zoo/dqn.py"]
    assert found[0].reasons == ("imports torch", "backward", "optimizer", "started in README.md")


def test_training_is_seen_through_imports_of_the_repository(tmp_path: Path) -> None:
    engine = "import torch\nimport no_such\ndef train():\n    torch.optim.Adam([]).step()\n    x.backward()\n"
    _, _, found = look_at(
        tmp_path,
        {
            "engine/loop.py": engine,
            "apps/train.py": "from engine.loop import train\nif __name__ == '__main__':\n    train()\n",
        },
    )
    assert [(row.path, row.python_path, row.missing) for row in found] == [
        ("apps/train.py", (".",), ("no_such",))
    ]


def test_what_is_optional_is_not_missing(tmp_path: Path) -> None:
    optional = (
        "try:\n    import no_such\nexcept ImportError:\n    no_such = None\n"
        "def track():\n    import no_logger\n"
        "if False:\n    import no_more\n"
    )
    _, _, found = look_at(tmp_path, {"train.py": optional + SMALL})
    assert found[0].missing == ()


def test_a_readmes_commands_are_read(tmp_path: Path) -> None:
    text = (
        "Run `python train.py --a 1`:\n\n```bash\n$ CUDA_VISIBLE_DEVICES=0 uv run python -u train.py \\\n"
        "   --b 2  # comment\ncd sub && python main.py\ntorchrun --nproc_per_node=4 train.py --c\n"
        "python -m pkg.run x\npython -c 'import train'\npip install train.py\n```\n"
    )
    _, commands, _ = look_at(
        tmp_path, {"README.md": text, "train.py": "", "sub/main.py": "", "pkg/run.py": ""}
    )
    assert [(line.script, line.arguments, line.module, line.launcher, line.folder) for line in commands] == [
        ("train.py", ("--a", "1"), "", "", ""),
        ("train.py", ("--b", "2"), "", "", ""),
        ("sub/main.py", (), "", "", "sub"),
        ("train.py", ("--c",), "", "torchrun", ""),
        ("pkg/run.py", ("x",), "pkg.run", "", ""),
    ]


def test_a_script_starts_where_its_readme_types_it(tmp_path: Path) -> None:
    script = SMALL + (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', default='./in/x')\n"
    )
    files = {"words/README.md": "    python main.py\n", "words/main.py": script, "words/in/x/a.py": ""}
    _, _, found = look_at(tmp_path, files)
    assert (found[0].path, found[0].working_directory) == ("words/main.py", "words")
    assert propose_arguments(found[0], tmp_path, has_device=True)[0].words == ()
    assert describe_start(found[0], ("--a",)) == "cd words && python main.py --a"
    assert format_preparation(("words/make.py", "1"), "words") == "cd words && python make.py 1"
    assert format_preparation(("make.py",), "words") == "python make.py"


GLOBALS = SMALL + (
    "device = 'cuda'\ncompile = True\neval_iters = 5 * 40\nexec(open('configurator.py').read())\n"
)
README = (
    "```\npython data/words/prepare.py\npython train.py config/train_words.py\n"
    "python train.py config/train_words.py --device=cpu --compile=False\n```\n"
)


def test_a_machine_without_a_device_takes_the_readmes_line_for_it(tmp_path: Path) -> None:
    repository, commands, found = look_at(
        tmp_path, {"README.md": README, "train.py": GLOBALS, "data/words/prepare.py": "", "prepare.py": ""}
    )
    guesses = propose_arguments(found[0], tmp_path, has_device=False)
    assert guesses[0].words == ("config/train_words.py", "--device=cpu", "--compile=False")
    assert guesses[1].words == ("--device=cpu", "--compile=False")
    assert shorten_arguments(guesses[1], found[0]).words[-1] == "--eval_iters=1"
    assert guess_preparation(repository, commands, found[0], guesses[0].words) == ("data/words/prepare.py",)
    on_device = propose_arguments(found[0], tmp_path, has_device=True)
    assert on_device[0].words == ("config/train_words.py",)


def test_options_of_a_dataclass_are_spelt_as_tyro_does(tmp_path: Path) -> None:
    script = SMALL + (
        "from dataclasses import dataclass\nimport tyro\n@dataclass\nclass Args:\n    track: bool = True\n"
        "    learning_starts: int = 10000\n    cuda: bool = True\nargs = tyro.cli(Args)\n"
    )
    _, _, found = look_at(tmp_path, {"train.py": script})
    guess = propose_arguments(found[0], tmp_path, has_device=False)[0]
    assert guess.words == ("--no-track",)
    assert learn_sooner(guess, found[0]).words == ("--no-track", "--learning-starts", "500")


def test_options_of_transformers_keep_their_underscores(tmp_path: Path) -> None:
    script = SMALL + (
        "from dataclasses import dataclass\n@dataclass\nclass Args:\n    eval_steps: int = 100\n"
        "HfArgumentParser(Args)\n"
    )
    _, _, found = look_at(tmp_path, {"train.py": script})
    guess = propose_arguments(found[0], tmp_path, has_device=True)[0]
    assert shorten_arguments(guess, found[0]).words == ("--eval_steps", "1")


def test_a_command_that_the_package_installs_is_a_reason(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\n[project.scripts]\nlearn-x = "x.learn:start"\n'
    guarded = SMALL + "if __name__ == '__main__':\n    pass\n"
    files = {"pyproject.toml": project, "x/__init__.py": "", "x/learn.py": guarded, "x/again.py": guarded}
    _, _, found = look_at(tmp_path, files)
    assert [row.path for row in found] == ["x/learn.py", "x/again.py"]
    assert found[0].reasons[-1] == "installed as the command learn-x"


def test_a_path_that_is_seen_from_the_scripts_folder_is_passed(tmp_path: Path) -> None:
    script = (
        SMALL + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', default='./in/x')\n"
    )
    _, _, found = look_at(tmp_path, {"words/main.py": script, "words/in/x/a.py": ""})
    assert propose_arguments(found[0], tmp_path, has_device=True)[0].words == ("--data", "words/in/x")


def test_a_required_option_needs_a_line(tmp_path: Path) -> None:
    script = (
        SMALL + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--env', required=True)\n"
    )
    _, _, found = look_at(tmp_path, {"train.py": script, "README.md": "`python train.py --env Cart`\n"})
    assert [guess.words for guess in propose_arguments(found[0], tmp_path, has_device=True)] == [
        ("--env", "Cart")
    ]


def test_an_environment_that_this_python_cannot_have_is_told(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\nrequires-python = ">=3.5,<3.8"\ndependencies = ["pytest==1.0"]\n'
    (tmp_path / "pyproject.toml").write_text(project)
    guess = guess_environment(tmp_path, "", ())
    assert (guess.install, guess.requirements) == ((".",), ())
    assert [conflict.partition(" wants ")[2].split(",")[0] for conflict in guess.conflicts] == [
        "Python >=3.5",
        "pytest==1.0",
    ]
    (tmp_path / "uv.lock").touch()
    assert guess_environment(tmp_path, "", ()).lock == "uv.lock"


def test_the_window_follows_the_rate_of_the_second_half() -> None:
    # Ten thousand fast steps before learning, then one of 2 ms each.
    progress = [(0.0, 0), *((0.001 * k, 100 * k) for k in range(1, 101))]
    progress += [(0.1 + 0.002 * k, 10_000 + k) for k in range(1, 3000)]
    window = choose_window(4.0, progress)
    assert window.step_seconds == pytest.approx(0.002, rel=0.01)
    assert 10_000 < window.warmup_steps < 12_000
    assert window.steps == 1500
    assert window.counting_steps == 200


def test_the_window_holds_several_rollouts() -> None:
    progress = [(0.0, 0)]
    for rollout in range(3):
        start = 3.0 * rollout
        progress += [(start + 0.01 * k, 100 * rollout + k) for k in range(1, 101)]
    window = choose_window(1.0, progress)
    assert window.steps >= 3 * 100


def test_a_script_that_ends_is_measured_within_its_steps() -> None:
    window = choose_window(1.0, [(0.0, 0), (1.0, 20), (2.0, 40)], taken=40)
    assert (window.warmup_steps, window.steps) == (8, 30)
    assert window.warmup_steps + 2 * window.counting_steps <= 40
    short = describe_window(choose_window(1.0, [(0.0, 0), (0.1, 2)], taken=2), 2)
    assert short.startswith("1 step after 0, of the 2 that the script has, too few to see a small change: ")


def test_long_steps_make_a_short_window_of_few_repetitions() -> None:
    window = choose_window(20.0, [(0.0, 0), (0.1, 1), (10.0, 2), (20.0, 3), (30.0, 4)])
    assert (window.warmup_steps, window.steps, window.repetitions) == (2, 10, 3)
    assert window.time_limit > window.run_seconds


def test_a_first_look_takes_part_of_a_long_window() -> None:
    assert shorten_window(Window(5, 60, 1.0, 0.5)).steps == 20
    assert shorten_window(Window(5, 60, 1.0, 0.1)).steps == 60


def test_arguments_become_parameters_where_they_are_spelt_so() -> None:
    assert find_params(["--lr", "0.1", "--no-fused", "--name", "x", "--n", "-1"]) == {
        "lr": 0.1,
        "fused": False,
        "name": "x",
        "n": -1,
    }
    for words in (["config.py"], ["--a=1"], ["--batch_size", "4"], ["--a", "x,y"]):
        assert find_params(words) is None


def test_a_written_manifest_parses_with_its_parameters(tmp_path: Path) -> None:
    _, _, found = look_at(tmp_path, {"train.py": "import wandb\n" + SMALL})
    window = Window(10, 90, 1.0, 0.01)
    environment = EnvironmentGuess(requirements=("requirements.txt",), conflicts=("a wants b",))
    text = write_manifest(
        found[0], ["--name", 'a "b" \\ c', "--fused"], window, environment, (), {"auto": "why"}
    )
    benchmark = manifest.parse_manifest(text, "here").benchmarks["train"]
    assert benchmark.params == {"name": 'a "b" \\ c', "fused": True}
    assert (benchmark.steps, benchmark.counting_steps, benchmark.auto) == (90, 45, True)
    assert benchmark.variables == {"WANDB_MODE": "disabled"}
    assert "# a wants b." in text


def test_words_behind_the_dashes_are_the_scripts() -> None:
    assert split_arguments(["init", "x", "--", "--a", "--"]) == (["init", "x"], ("--a", "--"))
    assert split_arguments(["script", "x.py", "--", "a"]) == (["script", "x.py", "--", "a"], None)


def test_errors_are_told_by_the_line_that_names_them(tmp_path: Path) -> None:
    assert find_error("a\nKeyError: 'x'\nsee the documentation\n") == "KeyError: 'x'"
    assert find_error("  assert x\n  ^^^~~^\n  AssertionError\n") == "AssertionError at assert x"
    assert find_error("FileNotFoundError: x not found.") == "FileNotFoundError: x not found"
    # Environments in processes of their own fail, and then the loop that talks to them.
    dead = "gym.error.NameNotFound: Environment x doesn't exist. \nConnectionResetError: [Errno 104] reset\n"
    assert find_error(dead) == "gym.error.NameNotFound: Environment x doesn't exist"
    assert find_error("EOFError\n") == "EOFError"
    assert (
        find_error('AttributeError: \n"load()" was removed, use\n')
        == 'AttributeError: "load()" was removed, use'
    )
    assert find_error("") == ""
    _, _, found = look_at(tmp_path, {"train.py": SMALL})
    said = describe_missing(found[0], ["yaml", "no_such"], EnvironmentGuess(install=(".",)))
    assert said.endswith("pip install pyyaml no-such, or all that the repository asks for: pip install .")
