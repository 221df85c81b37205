"""A benchmark's arguments: the fields of one dataclass, filled in by a variant, checked against their bounds.

Standard library only: a machine that measures needs nothing for it. A wrong argument gets one sentence.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, NoReturn, TypeVar

MOST_SEED = 2**32 - 1

Variants = Mapping[str, Mapping[str, Any]]
ArgsT = TypeVar("ArgsT")


def option(
    default: Any, text: str, least: float = 0, most: float = math.inf, choices: Sequence[str] = ()
) -> Any:
    """A field with its line of documentation and its bounds, or the words that it may be.

    None as default means: what the variant says.
    """
    return field(default=default, metadata={"help": text, "least": least, "most": most, "choices": choices})


def refuse(sentence: str) -> NoReturn:
    """End with the status of a wrong argument."""
    print(f"train.py: {sentence}", file=sys.stderr)
    sys.exit(2)


@dataclass(frozen=True)
class SpecifiedArguments(Generic[ArgsT]):
    """All arguments, and the names of the variant's toggles that were given and not left to the variant."""

    args: ArgsT
    explicit: frozenset[str]


class Parser(argparse.ArgumentParser):
    """One sentence for a wrong argument, in place of the usage."""

    def error(self, message: str) -> NoReturn:
        refuse(message.replace("ignored explicit argument", "takes no value, but was given"))


def parse_arguments(
    kind: type[ArgsT], variants: Variants, arguments: Sequence[str], description: str | None
) -> SpecifiedArguments[ArgsT]:
    """Read the arguments, fill in the variant's, check all; exits with status 2 and one sentence.

    `kind` is a frozen dataclass of options, with `variant` and `seed` among them.
    """
    parser = Parser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    for spec in fields(kind):  # type: ignore[arg-type]  # a dataclass
        _add_argument(parser, spec.name, str(spec.type), spec.default, spec.metadata)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        near = difflib.get_close_matches(unknown[0].partition("=")[0], parser._option_string_actions, n=1)
        refuse(f"there is no argument {unknown[0]}{f', did you mean {near[0]}?' if near else ''}")
    return _complete(kind(**vars(known)), variants)


def _add_argument(parser: Parser, name: str, kinds: str, default: Any, metadata: Mapping[str, Any]) -> None:
    flag, text = "--" + name.replace("_", "-"), metadata["help"]
    if "bool" in kinds:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
        return
    kind = next(kind for kind in (int, float, str) if kind.__name__ in kinds)
    if metadata["choices"]:
        text += ": " + ", ".join(metadata["choices"])
    parser.add_argument(flag, type=kind, default=default, metavar=kind.__name__.upper(), help=text)


def _complete(args: ArgsT, variants: Variants) -> SpecifiedArguments[ArgsT]:
    chosen = variants.get(args.variant)  # type: ignore[attr-defined]
    if chosen is None:
        refuse(f"--variant is {args.variant!r}, must be one of {', '.join(variants)}")  # type: ignore[attr-defined]
    if args.seed is None:  # type: ignore[attr-defined]
        args = replace(args, seed=_measurement_seed())  # type: ignore[type-var]
    explicit = frozenset(name for name in chosen if getattr(args, name) is not None)
    args = replace(args, **{name: value for name, value in chosen.items() if name not in explicit})  # type: ignore[type-var]
    for spec in fields(args):  # type: ignore[arg-type]
        _check_bounds(spec.name, getattr(args, spec.name), spec.metadata)
    return SpecifiedArguments(args, explicit)


def _measurement_seed() -> int:
    """The seed that the measurement gives, or 0."""
    text = os.environ.get("PACELINE_SEED", "0")
    if not text.isascii() or not text.isdigit():
        refuse(f"PACELINE_SEED is {text!r}, must be a number from 0 to {MOST_SEED}")
    return int(text)


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    flag, least, most = "--" + name.replace("_", "-"), metadata["least"], metadata["most"]
    if metadata["choices"] and value not in metadata["choices"]:
        refuse(f"{flag} is {value!r}, must be one of {', '.join(metadata['choices'])}")
    if isinstance(value, int | float) and not least <= value <= most:
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        refuse(f"{flag} is {value}, must be {bounds}")
