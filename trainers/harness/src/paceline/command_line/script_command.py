"""The command `script`: measure any PyTorch script without a manifest and without a change to it."""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import metrics, protocol
from ..document_building import document_builder
from ..manifest import REPETITIONS_LIMIT, STEPS_LIMIT
from ..manifest.benchmarks import RANKS_LIMIT, Benchmark, Case, QuickSettings, case_key
from ..manifest.toml_table import ManifestError, Scalar
from ..measurement import MeasurementRequest
from ..step_kinds import CHOICES
from ..watching.measurement_errors import MeasurementError, TooFewStepsError

STEPS = 200
WARMUP_SHARE = 5  # one step in so many belongs to the warm-up
COUNTING_STEPS = 200
TIME_LIMIT = 3600
ATTEMPTS = 3
FEWEST_STEPS = 2  # of a window and its warm-up
# Statuses of what somebody else has ended: with fewer steps it wouldn't have ended by itself.
STATUSES_OF_SIGNALS = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))

# Launchers of ranks, by the words that they are started with: of the same environment as this harness.
_PYTHON = (sys.executable, "-P", "-m")
LAUNCHERS = {
    "torchrun": (*_PYTHON, "torch.distributed.run"),
    "torch.distributed.launch": (*_PYTHON, "torch.distributed.launch"),
    "accelerate": (*_PYTHON, "accelerate.commands.accelerate_cli"),
    "deepspeed": ("deepspeed",),
    "mpirun": ("mpirun",),
    "mpiexec": ("mpiexec",),
    "srun": ("srun",),
}
# The same where they are named as a module, as of python -m.
LAUNCHER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.accelerate_cli": "accelerate",
}
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
# They run a program in an environment of theirs, which the harness has to be in.
RUNNERS = ("uv", "poetry", "pdm", "hatch", "pipenv", "conda", "pixi", "rye")
# These start any program, Python among them.
PROGRAM_LAUNCHERS = ("mpirun", "mpiexec", "srun")
# The word behind these is no program.
JOB_NAMES = ("-J", "--job-name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; whatever follows the script is the script's."""
    parser.description = (
        "Measures a PyTorch script as it is. A step ends with a gymnasium environment's step, or, without an "
        "environment, with an optimizer's. The script is ended after --steps steps. "
        "Several ranks are started by --nproc, or by naming their launcher: "
        "script torchrun --nproc-per-node 4 train.py"
    )
    parser.add_argument("--steps", type=int, metavar="N", help=f"steps in all; default {STEPS}")
    parser.add_argument("--warmup-steps", type=int, metavar="W", help="of them; default a fifth")
    parser.add_argument("--repetitions", type=int, metavar="R", help="default 5, or 2 with --quick")
    parser.add_argument("--threads", type=int, default=1, metavar="T", help="of PyTorch; default 1")
    parser.add_argument("--time-limit", type=int, default=TIME_LIMIT, metavar="SECONDS", help="for all of it")
    parser.add_argument("--quick", action="store_true", help="two repetitions, counted once")
    parser.add_argument(
        "--profile-device", action="store_true", help="with --quick too: one more repetition, profiled"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="PATH", help="keep its trace, for chrome://tracing and Perfetto"
    )
    parser.add_argument("--document", type=Path, metavar="PATH", help="where to write the document")
    parser.add_argument("--progress", type=Path, metavar="PATH", help="keep the progress here, as JSON")
    parser.add_argument(
        "--keep-running",
        action="store_true",
        help="measure once, let the script run to its own end, and end with its status",
    )
    parser.add_argument("--step", choices=CHOICES, default="", help="what ends a step; default: see above")
    parser.add_argument("--nproc", type=int, default=1, metavar="N", help="ranks to start on this host")
    parser.add_argument(
        "--python-path",
        action="append",
        default=[],
        metavar="FOLDER",
        help="where modules are looked for first, such as src; may be given again",
    )
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module, as of python -m")
    parser.add_argument("script", type=Path, help="run as __main__ in the current folder; or a launcher")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")


def measure_script(arguments: argparse.Namespace, progress: protocol.Progress) -> tuple[dict[str, Any], int]:
    """Measure the script; return its document and the status to end with.

    A script that ends by itself before its steps are taken is measured again with the steps that it has.
    Raises ManifestError and MeasurementError.
    """
    read_launcher(arguments)
    if arguments.launcher and shutil.which(arguments.launcher[0]) is None:
        raise ManifestError(f"{arguments.launcher[0]}: there is no such program on this host")
    _complete_python_path(arguments)
    try:
        return _measure_window(arguments, progress)
    except MeasurementError as failure:
        folder = _find_missing_module(failure.output, arguments.python_path)
        if failure.status and folder:
            failure.args = (f"{failure}; what it lacks lies in this repository, give --python-path {folder}",)
        elif failure.status and failure.status not in STATUSES_OF_SIGNALS and failure.taken >= FEWEST_STEPS:
            steps = STEPS if arguments.steps is None else arguments.steps
            advice = (
                f"it had taken {failure.taken} of {steps} steps, --steps {failure.taken} ends it before that"
            )
            failure.args = (f"{failure}; {advice}",)
        raise


def _measure_window(arguments: argparse.Namespace, progress: protocol.Progress) -> tuple[dict[str, Any], int]:
    steps = _in_range(
        "--steps", STEPS if arguments.steps is None else arguments.steps, FEWEST_STEPS, STEPS_LIMIT
    )
    if arguments.keep_running:
        run = protocol.run_case(_build_request(arguments, steps), progress)
        return document_builder.build_document(run), run.timed[0].status
    return _measure_until_long_enough(arguments, steps, progress), 0


def _measure_until_long_enough(
    arguments: argparse.Namespace, steps: int, progress: protocol.Progress
) -> dict[str, Any]:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return protocol.measure_case(_build_request(arguments, steps), progress)
        except TooFewStepsError as short:
            if attempt == ATTEMPTS or (arguments.warmup_steps or 0) >= short.taken:
                raise
            if attempt > 1 and short.taken < steps // 2:
                # With fewer steps something else ended them, such as a pretraining that was over before its
                # warm-up: that isn't what was measured at first.
                raise
            if short.taken < FEWEST_STEPS:
                raise _too_short(arguments.script, short) from short
            # The number of steps may differ from run to run; the second time a few are left out.
            steps = short.taken if attempt == 1 else max(FEWEST_STEPS, short.taken * 9 // 10)
            print(f"paceline: {short}; measuring {steps}", file=sys.stderr, flush=True)
    raise AssertionError("the last attempt returns or raises")


def read_launcher(arguments: argparse.Namespace) -> None:
    """Part a launcher's line into the launcher and the script that it starts; raises ManifestError."""
    arguments.launcher = ()
    name = arguments.script.name
    if arguments.module:
        name = LAUNCHER_MODULES.get(str(arguments.script), "")
    if name not in LAUNCHERS or (not arguments.module and arguments.script.is_file()):
        return
    if arguments.nproc != 1:
        raise ManifestError(f"--nproc and {name}: name one of them, both start ranks")
    words: list[str] = arguments.arguments
    before = LAUNCHERS[name]
    if name in PROGRAM_LAUNCHERS:
        name, before, words = _read_program(name, words)
    absent = ""
    for place in range(len(words)):
        absent = absent or (words[place] if words[place].endswith(".py") else "")
        is_module = words[place] in ("-m", "--module") and place + 1 < len(words)
        if is_module or (words[place].endswith(".py") and Path(words[place]).is_file()):
            flag = "--module" if name == "deepspeed" else "-m"
            arguments.launcher = (*before, *words[:place], flag)
            arguments.module = is_module
            arguments.script = Path(words[place + is_module])
            arguments.arguments = words[place + is_module + 1 :]
            return
    if absent:
        raise ManifestError(f"{name}: {absent} is not a file here, in {Path.cwd()}")
    raise ManifestError(f"{name}: its line names no script, a file that ends in .py or -m MODULE")


def _read_program(name: str, words: Sequence[str]) -> tuple[str, tuple[str, ...], list[str]]:
    """Part what starts any program by what it starts: Python, or the launcher of one host's ranks.

    Return the launcher that starts the script, the words until there, and those behind; raises ManifestError.
    """
    nested = LAUNCHERS.keys() - PROGRAM_LAUNCHERS
    for place, word in enumerate(words):
        program = Path(word).name
        named = words[place - 1] if place else ""
        if named in JOB_NAMES or not (program.startswith("python") or program in nested):
            continue
        behind = list(words[place + 1 :])
        started = (*LAUNCHERS[name], *words[:place])
        if program in nested:
            return program, (*started, *LAUNCHERS[program]), behind
        module = LAUNCHER_MODULES.get(behind[1], "") if behind[:1] == ["-m"] and behind[1:] else ""
        if module:
            return module, (*started, *LAUNCHERS[module]), behind[2:]
        return name, (*started, sys.executable), behind
    raise ManifestError(f"{name}: its line must hold python or torchrun, and then the script")


def _find_missing_module(output: str, python_path: Sequence[str]) -> str:
    """The folder, `src` or the current one, that has the module that the imports missed; or none."""
    missed = _MISSING_MODULE.findall(output)
    folders = [folder for folder in ("src", ".") if folder not in python_path]
    return next((folder for name in missed[-1:] for folder in folders if _has_module(folder, name)), "")


def _has_module(folder: str, name: str) -> bool:
    place = Path(folder, *name.split("."))
    # A folder of data may have the name of a package.
    return any(place.glob("*.py")) or place.with_name(f"{place.name}.py").is_file()


def _complete_python_path(arguments: argparse.Namespace) -> None:
    """Check the folders, and add `src` where a module lies only there; raises ManifestError."""
    for name in arguments.python_path:
        if not Path(name).is_dir():
            raise ManifestError(f"--python-path {name}: there is no such folder in {Path.cwd()}")
    if not arguments.module or arguments.python_path:
        return
    found = [folder for folder in ("", "src") if _has_module(folder, str(arguments.script))]
    if found == ["src"]:
        print(f"paceline: {arguments.script} lies below src: --python-path src is taken", file=sys.stderr)
        arguments.python_path = ["src"]


def _too_short(script: Path, short: TooFewStepsError) -> TooFewStepsError:
    seen = (
        f"{script} took {short.taken} whole steps, from the end of one environment's or optimizer's step "
        "to the end of the next; at least 2 are needed"
    )
    return TooFewStepsError(seen, "let it train longer", short.output, short.taken)


def _build_request(arguments: argparse.Namespace, steps: int) -> MeasurementRequest:
    if not arguments.module:
        _check_script(arguments.script, arguments.arguments)
    benchmark = _build_benchmark(arguments, steps)
    folder = Path.cwd()
    if arguments.keep_running:
        if arguments.repetitions is not None:
            raise ManifestError("--keep-running measures once: leave --repetitions out")
        if is_profile_wanted(arguments):
            raise ManifestError("--keep-running measures once: leave --profile-device and --trace out")
        benchmark = replace(benchmark, repetitions=1, countings=0)
    return MeasurementRequest(
        benchmark,
        benchmark.cases[0],
        folder,
        arguments.quick,
        arguments=tuple(arguments.arguments),
        profile_device=is_profile_wanted(arguments),
        trace=arguments.trace,
        keep_running=arguments.keep_running,
    )


def is_profile_wanted(arguments: argparse.Namespace) -> bool:
    """Whether a profiled repetition is measured: asked for, or in every whole run that isn't a short look."""
    if arguments.profile_device or arguments.trace is not None:
        return True
    leaving_out = ("quick", "timed_only", "no_counting", "no_sweep", "turns", "keep_running")
    return not any(getattr(arguments, name, False) for name in leaving_out)


def _check_script(script: Path, words: Sequence[str]) -> None:
    """Refuse what is no script, with the words that would measure it; raises ManifestError."""
    name = script.name
    if script.is_file():
        with script.open("rb") as file:
            is_source = b"\0" not in file.read(2**16)
        if not is_source:
            raise ManifestError(
                f"script: {script} is no source of Python; unpack an archive "
                f"(python -m zipfile -e {script} FOLDER), and name FOLDER/__main__.py"
            )
        return
    if (script / "__main__.py").is_file():
        raise ManifestError(f"script: {script} is a folder; name {script / '__main__.py'}, or -m {name}")
    if name in RUNNERS and words[:1] == ["run"]:
        # Its own options come before the program.
        place = next((index for index, word in enumerate(words) if word.endswith(".py")), 1)
        before = words[: place - words[place - 1].startswith("python")]
        line = shlex.join([name, *before, "paceline", "script", *words[place:]])
        raise ManifestError(f"script: {name} run comes first, {line}")
    named = next((word for word in words if word.endswith(".py")), "")
    if name.startswith("python") and words[:1] == ["-m"] and words[1:]:
        named = f"-m {words[1]}"
    if name.startswith("python") and named:
        raise ManifestError(f"script: leave {name} out, what is named is the script itself, {named}")
    raise ManifestError(f"script: there is no file {script}")


def _build_benchmark(arguments: argparse.Namespace, steps: int) -> Benchmark:
    warmup = steps // WARMUP_SHARE if arguments.warmup_steps is None else arguments.warmup_steps
    _in_range("--warmup-steps", warmup, 0, steps - 1)
    params = _arguments_as_params(arguments.arguments)
    repetitions = (2 if arguments.quick else 5) if arguments.repetitions is None else arguments.repetitions
    # Two windows are counted one after the other; both must lie within the script's steps.
    counting_warmup = min(warmup, steps - 2)
    name = str(arguments.script) if arguments.module else arguments.script.stem
    return Benchmark(
        name=re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100] or "script",
        version=1,
        script=str(arguments.script),
        cases=(Case(params, case_key(params)),),
        params=params,
        warmup_steps=warmup,
        steps=steps - warmup,
        counting_steps=min(COUNTING_STEPS, (steps - counting_warmup) // 2),
        counting_warmup_steps=counting_warmup,
        countings=1 if arguments.quick else 2,
        repetitions=_in_range("--repetitions", repetitions, 1, REPETITIONS_LIMIT),
        seed=0,
        threads=_in_range("--threads", arguments.threads, 1, 1024),
        time_limit=_in_range("--time-limit", arguments.time_limit, 1, 2**31 - 1),
        headline=metrics.DEFAULT_HEADLINE,
        guard={},
        auto=True,
        quick=QuickSettings(),
        module=arguments.module,
        step=arguments.step,
        python_path=tuple(arguments.python_path),
        processes=_in_range("--nproc", arguments.nproc, 1, RANKS_LIMIT),
        launcher=arguments.launcher,
    )


def _arguments_as_params(arguments: list[str]) -> Mapping[str, Scalar]:
    """Return the script's arguments as one parameter, spelt so that it can stand in a case's key."""
    if not arguments:
        return {}
    line = shlex.join(arguments)
    text = re.sub(r"[\x00-\x1f]", " ", line).replace(",", ";").replace("=", " ")
    if len(text) > 200:
        text = f"{text[:180]} ... {hashlib.sha256(line.encode()).hexdigest()[:12]}"
    return {"arguments": text}


def _in_range(option: str, value: int, minimum: int, maximum: int) -> int:
    if not minimum <= value <= maximum:
        raise ManifestError(f"{option} is {value}, must be between {minimum} and {maximum}")
    return value
