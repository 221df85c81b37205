"""What `init` tells people: what it guessed, why, what it tried, and what comes next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from ..units import format_amount, format_count, format_duration
from .arguments import LEARN_SOONER, LOGGER_OFF, NO_DEVICE, PATH_OF_FOLDER, SHORTER, ArgumentGuess
from .candidates import Candidate
from .packages import EnvironmentGuess, package_name
from .window import ENOUGH_STEPS, Window

REASONS = {
    NO_DEVICE: "this machine has no CUDA device",
    LOGGER_OFF: "a service that needs an account",
    PATH_OF_FOLDER: "its default is seen from the script's folder",
    SHORTER: "no step came in time without it",
    LEARN_SOONER: "so that learning begins within the warm-up",
}
MOST_OTHERS = 6
LABEL_WIDTH = 13
LONGEST_ERROR = 200
# By its name, or by that of its module: `gym.error.NameNotFound: ...`.
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b|(\w+\.)+[A-Z]\w*: ")
# What a process raises when one that it talks to has failed.
_FOLLOWING_ERROR = re.compile(r"(BrokenPipe|Connection\w*|EOF)Error\b")


def format_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Rows of a label and what is said of it; empty ones are left out."""
    return "\n".join(f"{label.ljust(LABEL_WIDTH)}{text}" for label, text in rows if text)


def describe_start(candidate: Candidate, words: Sequence[str]) -> str:
    """The command that starts the script."""
    if candidate.working_directory:
        path = PurePosixPath(candidate.path).relative_to(candidate.working_directory)
        return f"cd {shlex.quote(candidate.working_directory)} && {shlex.join(['python', str(path), *words])}"
    start = ["-m", candidate.module] if candidate.module else [candidate.path]
    return shlex.join(["python", *start, *words])


def describe_others(candidates: Sequence[Candidate], chosen: Candidate) -> str:
    """The other candidates, and how one of them is chosen."""
    others = [candidate for candidate in candidates if candidate.path != chosen.path]
    shown = [
        candidate.path + (f" (needs {', '.join(candidate.missing[:4])})" if candidate.missing else "")
        for candidate in others[:MOST_OTHERS]
    ]
    more = f" and {len(others) - MOST_OTHERS} more" if len(others) > MOST_OTHERS else ""
    return f"{', '.join(shown)}{more}; choose by --script PATH" if others else ""


def describe_arguments(guess: ArgumentGuess) -> str:
    """Where the arguments come from, and why some were added."""
    parts = [f"a line of {guess.source}"] if guess.source else []
    parts += [f"{words}: {REASONS[why]}" for words, why in guess.added]
    return "; ".join(parts) or "none, its defaults"


def describe_ranks(candidate: Candidate) -> str:
    """How many processes it is started in, where it needs several."""
    if candidate.processes == 1:
        return ""
    return f"{candidate.processes} processes of this host, since it asks its environment which rank it is"


def describe_environment(environment: EnvironmentGuess) -> str:
    """What a commit's environment is made of, and what of it isn't as it is here."""
    parts = [*environment.requirements, *([environment.lock] if environment.lock else [])]
    parts += [f"pip install {target}" for target in environment.install]
    parts += [f"imports from {place} too" for place in environment.python_path]
    sentence = "; ".join(parts) or "no requirements found: this Python's own packages"
    return "; but ".join([sentence, *environment.conflicts[:4]])


def describe_window(window: Window, taken: int | None) -> str:
    """The steps that are measured, and what a run takes."""
    run = f"a run takes about {format_duration(window.run_seconds)}"
    ends = f", of the {taken} that the script has" if taken is not None else ""
    if taken is not None and window.steps < ENOUGH_STEPS:
        ends += ", too few to see a small change: give arguments behind -- by which it runs longer"
    return (
        f"{format_count(window.steps, 'step')} after {window.warmup_steps}{ends}; the first one came after "
        f"{format_duration(window.start_seconds)}, then each took {format_amount(window.step_seconds, 's')}; "
        f"{run}, {window.repetitions} repetitions and the counting"
    )


def describe_missing(
    candidate: Candidate, modules: Sequence[str], environment: EnvironmentGuess, own: Collection[str] = ()
) -> str:
    """Which modules are missing, and the commands that install them; `own` are the repository's."""
    sentence = f"{candidate.path} imports {', '.join(modules)}, which this Python lacks"
    if own:
        # On an index a package of this name would be somebody else's.
        return (
            f"{sentence}: install the repository's own package, pip install {' '.join(environment.install)}"
        )
    sentence += f": pip install {shlex.join(dict.fromkeys(package_name(module) for module in modules))}"
    files = [f"pip install -r {path}" for path in environment.requirements]
    whole = [*files, *(f"pip install {target}" for target in environment.install)]
    return f"{sentence}, or all that the repository asks for: {' && '.join(whole)}" if whole else sentence


def find_error(output: str) -> str:
    """The line of a script's last words that says what went wrong; empty where there is none."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    places = [place for place, line in enumerate(lines) if _ERROR.match(line)]
    causes = [place for place in places if not _FOLLOWING_ERROR.match(lines[place])]
    error = lines[-1] if lines else ""
    if places:
        place = (causes or places)[-1]
        error = lines[place]
        if error.endswith(":"):
            error = " ".join(lines[place : place + 2])
        elif ":" not in error and place > 0:
            # Bare, the line of code above it says more; Python may underline a part of it.
            code = [line for line in lines[:place] if line.strip("^~ ")]
            error = f"{error} at {code[-1]}" if code else error
    return error[:LONGEST_ERROR].rstrip(".")
