from __future__ import annotations

from textwrap import dedent

import pytest

from dashboard.regressions.explanation import commit_difference
from dashboard.regressions.explanation.changed_functions import MODULE, TouchedFunctions, compare_texts
from dashboard.regressions.explanation.commit_difference import choose_compared
from dashboard.regressions.explanation.excerpts import Body, function_body

OLD = dedent(
    '''
    import random

    SIZE = 10

    class Replay:
        def push(self, item):
            """Keep an item."""
            self.items.append(item)

        def sample(self, n):
            return random.sample(self.items, n)

    def helper(x):
        return x + 1
    '''
)


def changed_names(new: str, old: str = OLD) -> list[str]:
    return [function.name for function in compare_texts("replay.py", old, new) if function.changed]


def test_the_function_whose_body_differs_is_changed() -> None:
    assert changed_names(OLD.replace("random.sample(self.items, n)", "sorted(self.items)[:n]")) == [
        "Replay.sample"
    ]


def test_comments_docstrings_and_moved_lines_change_nothing() -> None:
    new = "# a header\n\n" + OLD.replace("Keep an item.", "Keep it.").replace("x + 1", "x + 1  # one more")
    assert changed_names(new) == []


def test_a_renamed_function_is_not_a_changed_one() -> None:
    functions = compare_texts("replay.py", OLD, OLD.replace("def helper", "def plus_one"))
    assert [(function.name, function.renamed_from) for function in functions if function.renamed_from] == [
        ("plus_one", "helper")
    ]
    assert not any(function.changed for function in functions)


def test_a_new_function_is_changed() -> None:
    assert changed_names(OLD + "\ndef check(x):\n    return bool(x)\n") == ["check"]


def test_a_constant_of_the_module_counts_as_the_module() -> None:
    assert changed_names(OLD.replace("SIZE = 10", "SIZE = 20")) == [MODULE]


def test_the_module_stands_at_its_first_new_statement() -> None:
    added = compare_texts("replay.py", OLD, OLD + "\nSIZE = 20\n")
    assert [(function.name, function.line) for function in added if function.changed] == [
        (MODULE, OLD.count("\n") + 2)
    ]
    gone = compare_texts("replay.py", OLD, OLD.replace("SIZE = 10\n", ""))
    assert [(function.name, function.line) for function in gone if function.changed] == [(MODULE, 1)]


def test_a_decorator_and_a_default_belong_to_the_function() -> None:
    assert changed_names(OLD.replace("def helper(x)", "@cache\ndef helper(x)")) == ["helper"]
    assert changed_names(OLD.replace("def helper(x)", "def helper(x=0)")) == ["helper"]


def test_a_function_inside_another_is_its_own() -> None:
    old = "def outer():\n    def inner():\n        return 1\n    return inner\n"
    assert changed_names(old.replace("return 1", "return 2"), old) == ["outer.<locals>.inner"]


def test_text_that_is_no_python_has_no_functions() -> None:
    assert compare_texts("replay.py", OLD, "def broken(:\n") == []
    assert compare_texts("replay.py", OLD, "x = " + "(" * 5000) == []


def test_a_profile_finds_functions_by_line_and_by_name() -> None:
    touched = TouchedFunctions(functions=tuple(compare_texts("replay.py", OLD, OLD)))
    by_line = touched.find("replay.py", "anything", 14)
    by_name = touched.find("replay.py", "sample", 999)
    assert by_line is not None
    assert by_name is not None
    assert (by_line.name, by_name.name) == ("helper", "Replay.sample")
    assert touched.find("other.py", "sample", 11) is None


def test_a_text_that_nobody_writes_is_not_parsed() -> None:
    """A megabyte of it keeps Python's parser busy for a minute."""
    large = "def act(): return f'" + "{a}" * 300_000 + "'"
    assert compare_texts("a.py", "def act(): pass", large) == []
    assert compare_texts("a.py", large, "def act(): pass") == []
    assert function_body(large, "act") == Body(1, [])


def test_of_too_much_the_smallest_files_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_difference, "MOST_COMPARED", 20)
    texts = {"large.py": ("x" * 8, "x" * 9), "small.py": ("x", "y"), "new.py": ("", "x" * 12)}
    assert list(choose_compared(texts)) == ["small.py", "new.py"]
    assert choose_compared({"small.py": ("x", "y")}) == {"small.py": ("x", "y")}
