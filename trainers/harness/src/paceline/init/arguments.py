"""With which arguments a script is tried: a README's line or none, and what this machine asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .candidates import Candidate
from .options import Option, Value

# Why words were added.
NO_DEVICE, LOGGER_OFF, PATH_OF_FOLDER, SHORTER, LEARN_SOONER = (
    "no device",
    "logger",
    "path",
    "shorter",
    "sooner",
)
DEVICE_OPTIONS = frozenset({"device", "accelerator", "device_type"})
LOGGERS = frozenset({"track", "wandb", "use_wandb", "wandb_log", "log_wandb"})
# What takes long before the first step or between two of them, and is no training.
SHORTER_VALUES: dict[str, int] = {
    **dict.fromkeys(("eval_iters", "eval_steps", "eval_episodes", "n_eval_episodes", "num_eval_episodes"), 1),
    **dict.fromkeys(("eval_interval", "eval_every", "eval_freq", "val_every"), 1_000_000),
    **dict.fromkeys(("batch_size", "per_device_train_batch_size", "micro_batch_size"), 4),
    **dict.fromkeys(("buffer_size", "replay_size", "num_samples", "n_samples"), 10_000),
    **dict.fromkeys(("num_workers", "workers", "n_workers"), 0),
}
LEARNING_STARTS = frozenset(
    {"learning_starts", "learning_start", "start_timesteps", "start_steps", "warmup_frames"}
)
SOONER_STEPS = 500
# Lines of a README that do something else than train from the beginning.
OTHER_WORDS = ("resume", "eval_only", "eval-only", "--help", "--track", "--evaluate", "--inference", "--test")
SHORTEST_LINES = 3


@dataclass(frozen=True, slots=True)
class ArgumentGuess:
    """A script's arguments: of a line that `source` tells, and what was added to them, with the reason."""

    words: tuple[str, ...] = ()
    source: str = ""
    added: tuple[tuple[str, str], ...] = ()  # the words, and why


def propose_arguments(candidate: Candidate, folder: Path, *, has_device: bool) -> list[ArgumentGuess]:
    """What to try one after the other, the likeliest first; empty where a needed line is missing."""
    from_commands = list(_guesses_from_commands(candidate))
    if not has_device:
        from_commands.sort(key=lambda guess: not _names_processor(guess.words))
    needs_line = any(option.is_required for option in candidate.facts.options)
    # What has no dash before it is a file or a word that the script can't do without.
    begins_with_line = bool(from_commands) and (
        needs_line
        or _has_positional(from_commands[0].words)
        or (not has_device and _names_processor(from_commands[0].words))
    )
    bare = [] if needs_line else [ArgumentGuess()]
    guesses = [*from_commands[:1], *bare, *from_commands[1:]] if begins_with_line else [*bare, *from_commands]
    return [
        _fit_machine(guess, candidate, folder, has_device=has_device) for guess in guesses[:SHORTEST_LINES]
    ]


def shorten_arguments(guess: ArgumentGuess, candidate: Candidate) -> ArgumentGuess:
    """The same, with less work before the first step, as far as the script has options for it."""
    for option in candidate.facts.options:
        value = SHORTER_VALUES.get(option.name)
        if value is not None and _is_number(option.default) and not _is_set(option, guess.words):
            guess = _add_words(guess, option.spell(value, candidate.facts.spelling), SHORTER)
    return guess


def learn_sooner(guess: ArgumentGuess, candidate: Candidate) -> ArgumentGuess:
    """The same, so that learning begins after some hundred steps of an environment."""
    for option in candidate.facts.options:
        if option.name in LEARNING_STARTS and _is_number(option.default) and not _is_set(option, guess.words):
            guess = _add_words(guess, option.spell(SOONER_STEPS, candidate.facts.spelling), LEARN_SOONER)
    return guess


def _guesses_from_commands(candidate: Candidate) -> Iterator[ArgumentGuess]:
    seen: set[tuple[str, ...]] = {()}
    for line in candidate.commands:
        wanted = not line.launcher and not line.has_placeholder
        if wanted and line.arguments not in seen and not _does_otherwise(line.arguments):
            seen.add(line.arguments)
            yield ArgumentGuess(line.arguments, line.source)


def _does_otherwise(words: Sequence[str]) -> bool:
    return any(word == "-h" or any(part in word for part in OTHER_WORDS) for word in words)


def _names_processor(words: Sequence[str]) -> bool:
    return any(word == "cpu" or word.endswith("=cpu") for word in words)


def _has_positional(words: Sequence[str]) -> bool:
    return bool(words) and not words[0].startswith("-")


def _fit_machine(
    guess: ArgumentGuess, candidate: Candidate, folder: Path, *, has_device: bool
) -> ArgumentGuess:
    spelling = candidate.facts.spelling
    for option in candidate.facts.options:
        if _is_set(option, guess.words):
            continue
        value, why = _fitting_value(option, candidate, folder, has_device=has_device)
        if value is not None:
            guess = _add_words(guess, option.spell(value, spelling), why)
    return guess


def _fitting_value(
    option: Option, candidate: Candidate, folder: Path, *, has_device: bool
) -> tuple[Value, str]:
    default = option.default
    if not has_device and option.name in DEVICE_OPTIONS and isinstance(default, str):
        return ("cpu" if default.startswith(("cuda", "gpu")) else None), NO_DEVICE
    if not has_device and option.name == "compile" and default is True:
        return False, NO_DEVICE
    if option.name in LOGGERS and default is True and not option.is_switch:
        return False, LOGGER_OFF
    if candidate.working_directory:
        return None, ""
    if isinstance(default, str) and candidate.folder and _is_path_below(default, candidate.folder, folder):
        return f"{candidate.folder}/{default.removeprefix('./')}", PATH_OF_FOLDER
    return None, ""


def _is_path_below(default: str, script_folder: str, folder: Path) -> bool:
    """Whether a relative path is there seen from the script's folder, and not from the repository's root."""
    is_path = "/" in default and not default.startswith(("/", "~", "http")) and len(default) < 200
    return is_path and (folder / script_folder / default).exists() and not (folder / default).exists()


def _is_set(option: Option, words: Sequence[str]) -> bool:
    negated = option.flag.replace("--", "--no-", 1)
    flags = {option.flag, option.flag.replace("-", "_").replace("__", "--", 1), negated}
    return any(word.split("=")[0] in flags for word in words)


def _add_words(guess: ArgumentGuess, words: list[str], why: str) -> ArgumentGuess:
    return ArgumentGuess((*guess.words, *words), guess.source, (*guess.added, (" ".join(words), why)))


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
