"""Which functions a commit range changed.

Read from the syntax of both sides, so that comments, moved lines and formatting change nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MODULE = "<module>"
# In characters. Of a line with a hundred thousand places of an f-string Python's parser takes minutes.
LARGEST_SOURCE = 200_000

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file as it is after the range; `renamed_from` where only its name is new.

    `added` where there was none of its name before.
    """

    file: str
    name: str
    line: int
    changed: bool
    renamed_from: str = ""
    added: bool = False


@dataclass(frozen=True, slots=True)
class TouchedFunctions:
    """What a commit range touched: all paths, and the functions of the Python files among them."""

    paths: frozenset[str] = frozenset()
    functions: tuple[Function, ...] = ()
    # New path of a file -> its old one, where that differs.
    moved: Mapping[str, str] = field(default_factory=dict)

    def find(self, file: str, name: str, line: int) -> Function | None:
        """The function that a profile names: by its first line, or where lines don't agree by its name."""
        here = [function for function in self.functions if function.file == file]
        by_line = (function for function in here if function.line == line and function.name != MODULE)
        by_name = (function for function in here if name in (function.name, function.name.rpartition(".")[2]))
        return next(by_line, None) or next(by_name, None)

    def before(self, function: Function | None, file: str, name: str) -> tuple[str, str]:
        """The file and name under which a profile of the old side knows a function."""
        old = function.renamed_from if function else ""
        if old and "." not in name:
            old = old.rpartition(".")[2]
        return self.moved.get(file, file), old or name


def compare_texts(path: str, old: str, new: str) -> list[Function]:
    """The functions of a file's new text, each with whether it differs from the old text.

    Text that isn't Python any Python can read has no functions.
    """
    try:
        before, after = read_definitions(old), read_definitions(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    gone = {shape: name for name, (_, shape) in before.items() if name not in after}
    found = []
    for name, (line, shape) in after.items():
        if name in before:
            changed = before[name][1] != shape
            if changed and name == MODULE:
                line = first_new_line(old, new)
            found.append(Function(path, name, line, changed=changed))
        else:
            renamed_from = gone.get(shape, "")
            added = not renamed_from
            found.append(Function(path, name, line, changed=added, renamed_from=renamed_from, added=added))
    return found


def parse_source(source: str) -> ast.Module:
    """Raises what `ast.parse` does, and ValueError for a text that nobody has written by hand."""
    if len(source) > LARGEST_SOURCE:
        raise ValueError(f"has {len(source)} characters, at most {LARGEST_SOURCE} are read")
    return ast.parse(source)


def read_definitions(source: str) -> dict[str, tuple[int, str]]:
    """Qualified name -> first line and shape of each function, and of what stands outside all functions."""
    tree = parse_source(source)
    found = {name: (first_line(node), shape_of(node)) for name, node in walk_definitions(tree, "")}
    found[MODULE] = (1, ast.dump(ast.Module(outside_definitions(tree.body), [])))
    return found


def first_new_line(old: str, new: str) -> int:
    """The line of the first statement outside all functions that is new; 1 where some are only gone."""
    known = {ast.dump(statement) for statement in outside_definitions(parse_source(old).body)}
    added = (
        statement.lineno
        for statement in outside_definitions(parse_source(new).body)
        if ast.dump(statement) not in known
    )
    return next(added, 1)


def walk_definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield prefix + child.name, child
            yield from walk_definitions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from walk_definitions(child, f"{prefix}{child.name}.")
        else:
            yield from walk_definitions(child, prefix)


def first_line(node: Definition) -> int:
    """As a code object counts: from its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def shape_of(node: Definition) -> str:
    """What a function does, as text: without its name, its docstring and the functions defined inside it."""
    body = without_docstring(node.body)
    parts: list[ast.AST] = [node.args, *node.decorator_list, *outside_definitions(body)]
    return "\n".join(ast.dump(part) for part in parts)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:] if isinstance(first.value.value, str) else body
    return body


def outside_definitions(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that aren't definitions; of a class what stands directly in it."""
    kept: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            kept.extend(outside_definitions(statement.body))
        elif not isinstance(statement, Definition):
            kept.append(statement)
    return kept
