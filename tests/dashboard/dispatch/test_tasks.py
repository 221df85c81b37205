"""The names of tasks: what dashboard/ sends by name, workers/ registers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dashboard import dispatch
from tests.processes import CHECKOUT
from workers.site.app import app

# `workers.judge` is a task of ours, `celery.chord` one that Celery brings along.
PREFIX = "workers."


@cache
def task_constants() -> dict[str, str]:
    """Constant -> task name, of everything in dashboard/dispatch.py that names a task."""
    tree = ast.parse((CHECKOUT / "dashboard/dispatch.py").read_text())
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    values = {name: getattr(dispatch, name) for name in names}
    return {name: text for name, text in values.items() if isinstance(text, str) and text.startswith(PREFIX)}


def sent_names(source: str) -> Iterator[str]:
    """What `source` passes to `dispatch.send_task`, and every name of a task that it spells out."""
    if "send_task" not in source and PREFIX not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dispatch.send_task":
            # A variable was filled from a constant or a text somewhere, which is found below.
            if not isinstance(node.args[0], ast.Name):
                yield ast.unparse(node.args[0])
        elif isinstance(node, ast.Constant) and is_task_name(node.value):
            yield ast.unparse(node)


def source_files() -> list[Path]:
    return [file for room in ("dashboard", "workers") for file in (CHECKOUT / room).rglob("*.py")]


def is_task_name(value: object) -> bool:
    """True for `workers.judge`, not for `workers.site.app`, which is a module, nor for a package."""
    if not isinstance(value, str) or not value.startswith(PREFIX):
        return False
    path = CHECKOUT / value.replace(".", "/")
    return not (path.with_suffix(".py").exists() or path.is_dir())


def test_every_task_has_a_constant_and_every_constant_a_task() -> None:
    registered = {name for name in app.tasks if name.startswith(PREFIX)}
    assert set(task_constants().values()) == registered


def test_every_name_that_is_sent_is_a_constant() -> None:
    files = source_files()
    files.remove(CHECKOUT / "dashboard/dispatch.py")
    # What a host does is a task of its own app.
    files.remove(CHECKOUT / "dashboard/host_protocol/queues.py")
    sent = {name for file in files for name in sent_names(file.read_text())}
    assert sent
    assert sent <= {f"dispatch.{constant}" for constant in task_constants()}


def test_every_constant_is_sent_by_somebody() -> None:
    used = {name for file in source_files() for name in used_constants(file.read_text())}
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert [
        name for name, task in task_constants().items() if name not in used and task not in scheduled
    ] == []


# They register tasks, and send none.
DECORATORS = ("app.task", "retried_task", "count_failures", "from_outbox")


def used_constants(source: str) -> Iterator[str]:
    """What is sent: `dispatch.X` but for the decorators, X within a call of dispatch."""
    if not any(name in source for name in task_constants()):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in DECORATORS:
            for argument in node.args:
                yield ast.unparse(argument).removeprefix("dispatch.")


def test_a_planted_name_is_found() -> None:
    source = "dispatch.send_task(dispatch.JUDGES, 7)\nname = 'workers.judges'\ndispatch.send_task(name, 7)\n"
    assert set(sent_names(source)) == {"dispatch.JUDGES", "'workers.judges'"}
