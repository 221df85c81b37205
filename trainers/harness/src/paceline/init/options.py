"""The options of a script, from its source: argparse, click, absl, dataclasses, and nanoGPT's globals."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

Value = str | int | float | bool | None
# Functions that make options of a dataclass's fields.
DATACLASS_PARSERS = (
    "tyro.cli",
    "HfArgumentParser",
    "simple_parsing",
    "pyrallis",
    "ArgumentParser().add_arguments",
)


class Spelling(enum.StrEnum):
    """How an option is written on the command line."""

    ARGPARSE = "--name value"
    TYRO = "--name value, --no-name"
    GLOBALS = "--name=value"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Option:
    """`default` is None where it isn't a plain value; `is_switch` takes no value, it inverts its default."""

    name: str  # with underscores, as the code names it
    flag: str  # as it is written, such as --batch-size
    default: Value = None
    is_switch: bool = False
    is_required: bool = False

    def spell(self, value: Value, spelling: Spelling) -> list[str]:
        """The words that give it a value."""
        if spelling is Spelling.GLOBALS:
            return [f"{self.flag}={value}"]
        if self.is_switch:
            return [self.flag]
        if isinstance(value, bool):
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        return [self.flag, str(value)]


def read_options(tree: ast.Module) -> tuple[Spelling, tuple[Option, ...]]:
    """How the file's options are spelt, and which there are."""
    text = ast.unparse(tree)
    if "configurator.py" in text:
        return Spelling.GLOBALS, tuple(_read_globals(tree))
    if any(parser in text for parser in DATACLASS_PARSERS):
        joint = "-" if "tyro" in text else "_"
        found = [option for node in ast.walk(tree) for option in _read_dataclass(node, joint)]
        if found:
            return Spelling.TYRO, tuple(found)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    options = [option for call in calls if (option := _read_call(call)) is not None]
    return (Spelling.ARGPARSE if options else Spelling.UNKNOWN), tuple(options)


def _read_globals(tree: ast.Module) -> Iterator[Option]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, _plain_value(node.value)
            if value is not None and not name.startswith("_"):
                yield Option(name, f"--{name}", value)


def _read_dataclass(node: ast.AST, joint: str) -> Iterator[Option]:
    if not isinstance(node, ast.ClassDef):
        return
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name = field.target.id
            yield Option(
                name,
                f"--{name.replace('_', joint)}",
                None if field.value is None else _plain_value(field.value),
                is_required=field.value is None,
            )


def _read_call(call: ast.Call) -> Option | None:
    """The option that `add_argument`, `click.option` or `flags.DEFINE_...` makes."""
    made_by = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    names = [word for word in map(_plain_value, call.args) if isinstance(word, str)]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if made_by.startswith("DEFINE_") and names:
        return Option(names[0], f"--{names[0]}", _plain_value(call.args[1]) if len(call.args) > 1 else None)
    if made_by not in ("add_argument", "option", "argument") or not names:
        return None
    flag = max(names, key=len)
    action = _plain_value(keywords["action"]) if "action" in keywords else None
    is_switch = action in ("store_true", "store_false") or _is_true(keywords.get("is_flag"))
    default: Value = action == "store_false" if is_switch else None
    if "default" in keywords:
        default = _plain_value(keywords["default"])
    is_positional = not flag.startswith("-")
    needs_no_word = "default" in keywords or _may_be_missing(keywords.get("nargs"))
    return Option(
        name=str(_plain_value(keywords.get("dest")) or flag.lstrip("-").replace("-", "_")),
        flag=flag,
        default=default,
        is_switch=is_switch,
        is_required=_is_true(keywords.get("required")) or (is_positional and not needs_no_word),
    )


def _may_be_missing(nargs: ast.expr | None) -> bool:
    return _plain_value(nargs) in ("?", "*")


def _is_true(node: ast.expr | None) -> bool:
    return _plain_value(node) is True


def _plain_value(node: ast.expr | None) -> Value:
    """A constant, or arithmetic of constants such as 5 * 8 and int(1e6); None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _plain_value(node.operand)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _plain_value(node.left), _plain_value(node.right)
        return left * right if isinstance(left, int | float) and isinstance(right, int | float) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and node.args:
        value = _plain_value(node.args[0])
        return int(value) if isinstance(value, int | float) else None
    return None
