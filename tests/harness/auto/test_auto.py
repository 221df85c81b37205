"""The parts of automatic phases, in this process: wrappers, import hook, pace."""

from __future__ import annotations

import _thread
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import paceline
import pytest
from paceline import step_kinds
from paceline.auto import (
    backward_passes,
    compilation,
    graphs,
    import_hooks,
    optimizers,
    step_finder,
    wrapping,
)
from paceline.measured.timing import TimingRecorder

from tests.harness.auto.conftest import phase_counts


def wrap_go(method: wrapping.Function) -> wrapping.Function:
    return wrapping.wrap_outermost("go", method, wrapping.is_never_traced)


class TestWrapping:
    def test_only_the_outermost_call_is_a_phase(self, recorder: TimingRecorder) -> None:
        def descend(depth: int) -> int:
            return depth and wrapped(depth - 1)

        wrapped = wrapping.wrap_outermost("falls", descend, wrapping.is_never_traced)
        assert (wrapped(5), wrapped(2)) == (0, 0)
        assert phase_counts(recorder) == {"falls": 2}

    def test_an_exception_closes_the_phase(self, recorder: TimingRecorder) -> None:
        wrapped = wrapping.wrap_outermost("fails", lambda: 1 // 0, wrapping.is_never_traced)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                wrapped()
        assert phase_counts(recorder) == {"fails": 2}
        assert recorder.main.node is recorder.main.root

    @pytest.mark.parametrize("inside", ["opens a phase", "begins laps", "is in another thread"])
    def test_a_phase_that_was_met_before_ends_with_its_call(
        self, recorder: TimingRecorder, inside: str
    ) -> None:
        """Its borders are the wrapper's own lines then."""

        def act() -> None:
            if inside == "opens a phase":
                paceline.phase("inner").__enter__()
            elif inside == "begins laps" and recorder.main.node.count:
                recorder.enable_laps(recorder.main)

        wrapped = wrap_go(act)
        wrapped()
        (node, *_) = recorder.nodes(recorder.main)
        assert node.is_plain
        wrapped()
        if inside == "is in another thread":
            other = threading.Thread(target=wrapped)
            other.start()
            other.join()
            assert node.count == 2
        wrapped()
        assert phase_counts(recorder) == {"go": 3} | ({"go/inner": 3} if "opens" in inside else {})
        assert recorder.main.node is recorder.main.root
        assert node.is_plain == (inside != "begins laps")
        assert 0 < sum(row.total for row in recorder.nodes(recorder.main)) < 60

    def test_traced_calls_pass_through(self, recorder: TimingRecorder) -> None:
        wrapped = wrapping.wrap_outermost("traced", lambda: 3, lambda: True)
        assert wrapped() == 3
        assert phase_counts(recorder) == {}

    def test_classes_that_come_later_are_wrapped(self, recorder: TimingRecorder) -> None:
        class Base:
            def go(self) -> str:
                return "base"

        wrapping.wrap_in_every_class(Base, "go", wrap_go)

        class Later(Base):
            def go(self) -> str:
                return f"later, {super().go()}"

        assert (Later().go(), Base().go()) == ("later, base", "base")
        assert phase_counts(recorder) == {"go": 2}

    def test_a_method_from_beside_the_family_is_wrapped(self, recorder: TimingRecorder) -> None:
        class Base: ...

        class Mixin:
            def go(self) -> int:
                return 4

        wrapping.wrap_in_every_class(Base, "go", wrap_go)

        class Both(Mixin, Base): ...

        class Heir(Both): ...

        assert (Both().go(), Heir().go(), Mixin().go()) == (4, 4, 4)
        assert phase_counts(recorder) == {"go": 2}

    def test_a_family_keeps_its_own_subclass_hook(self) -> None:
        class Base:
            names: ClassVar[list[str]] = []

            def __init_subclass__(cls, *, name: str, **kwargs: Any) -> None:
                super().__init_subclass__(**kwargs)
                cls.names.append(name)

        wrapping.wrap_in_every_class(Base, "go", lambda method: method)

        class Later(Base, name="later"): ...

        assert Later.names == ["later"]


class TestImports:
    @pytest.fixture(autouse=True)
    def _clean(self) -> Iterator[None]:
        before = list(sys.meta_path)
        yield
        sys.meta_path[:] = before
        sys.modules.pop("stranger", None)

    def test_the_action_follows_the_import(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "stranger.py").write_text("value = 7\n")
        monkeypatch.syspath_prepend(tmp_path)
        seen: list[int] = []
        import_hooks.call_after_import({"stranger": lambda module: seen.append(module.value)})
        assert seen == []
        import stranger  # type: ignore[import-not-found]

        assert seen == [7]
        assert "exec_module" not in vars(stranger.__spec__.loader)

    def test_several_actions_follow_one_import(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "stranger.py").write_text("value = 7\n")
        monkeypatch.syspath_prepend(tmp_path)
        seen: list[str] = []
        for name in ("first", "second"):
            import_hooks.call_after_import({"stranger": lambda _module, name=name: seen.append(name)})
        __import__("stranger")
        assert seen == ["first", "second"]

    def test_what_was_imported_before_is_acted_upon_at_once(self) -> None:
        seen: list[str] = []
        import_hooks.call_after_import({"json": lambda module: seen.append(module.__name__)})
        assert seen == ["json"]

    def test_a_module_that_is_missing_stays_missing(self) -> None:
        import_hooks.call_after_import({"stranger": print})
        # A finder of the older interface.
        sys.meta_path.append(SimpleNamespace(find_module=lambda _name, _path: None))  # type: ignore[arg-type]
        with pytest.raises(ModuleNotFoundError):
            __import__("stranger")


class Loop:
    """A loop that counts its calls."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.warmup_steps = length // 5
        self.called = False
        self.begun = self.steps = self.lasting_ident = 0

    def follow_thread(self) -> None: ...

    def begin(self) -> None:
        self.begun += 1

    def end_step(self) -> bool:
        self.steps += 1
        return self.steps >= self.length


class Owner: ...


class TestPacing:
    def make_finder(self, length: int = 100) -> tuple[step_finder.StepFinder, Loop]:
        loop = Loop(length)
        recorder = SimpleNamespace(loop=loop, steps=lambda items: items)
        return step_finder.StepFinder(recorder, lambda: None), loop

    def test_who_comes_first_sets_the_pace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        finder, loop = self.make_finder()
        first, second = Owner(), Owner()
        for owner in (first, second, second, first, second, first):
            finder.end_owner_step(step_kinds.ENVIRONMENT, owner)
        finder.end_owner_step(step_kinds.OPTIMIZER, Owner())
        assert (loop.begun, loop.steps, loop.called) == (1, 2, True)
        described = finder.describe_step()
        assert described is not None
        assert described["learned_after"] == 2
        monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
        assert "learned_after" not in (finder.describe_step() or {})

    def test_an_environment_takes_over_before_the_first_step(self) -> None:
        finder, loop = self.make_finder()
        optimizer, environment = Owner(), Owner()
        for _ in range(3):
            finder.end_owner_step(step_kinds.OPTIMIZER, optimizer)
            finder.end_owner_step(step_kinds.ENVIRONMENT, environment)
        assert (loop.begun, loop.steps) == (1, 3)

    def test_a_successor_takes_over_from_what_is_gone(self) -> None:
        finder, loop = self.make_finder()
        first = Owner()
        finder.end_owner_step(step_kinds.ENVIRONMENT, first)
        del first
        second = Owner()
        for _ in range(2):
            finder.end_owner_step(step_kinds.ENVIRONMENT, second)
        assert (loop.begun, loop.steps) == (1, 2)

    def test_another_kind_of_successor_is_named(self) -> None:
        finder, _ = self.make_finder()
        for task in range(3):
            inner = Owner()
            for _ in range(2):
                finder.end_owner_step(step_kinds.OPTIMIZER, inner)
            assert "succeeded" not in (finder.describe_step() or {}), task
            del inner
        finder.end_owner_step(step_kinds.OPTIMIZER, Loop(1))
        step = finder.describe_step() or {}
        assert (step["succeeded"], step["succeeded_after"], step["alternates"]) == ("Owner", 5, False)

    def test_owners_that_take_turns_are_told(self) -> None:
        finder, _ = self.make_finder()
        for number in range(3):
            owner = Owner() if number % 2 == 0 else Loop(1)
            for _ in range(2):
                finder.end_owner_step(step_kinds.OPTIMIZER, owner)
            del owner
        step = finder.describe_step() or {}
        assert (step["owner"], step["succeeded"], step["alternates"]) == ("Owner", "Loop", True)

    @pytest.mark.parametrize(
        ("before", "after", "steps"), [(5, 99, 4), (5, 140, 45), (19, 250, 79), (21, 999, 20)]
    )
    def test_an_optimizer_that_steps_far_more_takes_over_in_the_warmup(
        self, before: int, after: int, steps: int
    ) -> None:
        """A short pretraining sets no pace, though its optimizer is kept; its own loop in the window does."""
        finder, loop = self.make_finder()
        pretraining, training, second = Owner(), Owner(), Owner()
        for owner, number in ((pretraining, before), (training, after)):
            for _ in range(number):
                finder.end_owner_step(step_kinds.OPTIMIZER, owner)
                finder.end_owner_step(step_kinds.OPTIMIZER, second) if owner is training else None
        assert loop.steps == steps
        assert ((finder.describe_step() or {}).get("succeeded") == "Owner") == (steps > before)

    @pytest.mark.parametrize("learns", [False, True], ids=["an evaluation", "a training"])
    def test_an_environment_that_is_learned_from_takes_over_in_the_warmup(self, learns: bool) -> None:
        """One that was only looked at sets no pace, though it is kept; an evaluation's never does."""
        finder, loop = self.make_finder()
        first, second, optimizer = Owner(), Owner(), Owner()
        for owner, number in ((first, 5), (second, 140)):
            for _ in range(number):
                finder.end_owner_step(step_kinds.ENVIRONMENT, owner)
                if learns or owner is first:
                    finder.end_owner_step(step_kinds.OPTIMIZER, optimizer)
        # The first step of each begins to be measured.
        assert loop.steps == (45 if learns else 4)
        assert ("succeeded" in (finder.describe_step() or {})) == learns

    def test_pretrainings_one_behind_the_other_take_no_turns(self) -> None:
        finder, _ = self.make_finder()
        kept = [Owner() for _ in range(3)]
        for owner, number in zip(kept, (3, 102, 150), strict=True):
            for _ in range(number):
                finder.end_owner_step(step_kinds.OPTIMIZER, owner)
        step = finder.describe_step() or {}
        assert (step["succeeded_after"], step["alternates"]) == (5, False)

    @pytest.mark.parametrize("kind", [step_kinds.ENVIRONMENT, step_kinds.OPTIMIZER])
    def test_one_that_was_looked_at_too_bars_nobody_from_taking_over(self, kind: str) -> None:
        finder, loop = self.make_finder()
        optimizer = Owner()
        looked_at, trained = [Owner(), Owner()], Owner()
        for owner, number in ((looked_at[0], 5), (looked_at[1], 3), (trained, 250)):
            for _ in range(number):
                finder.end_owner_step(kind, owner)
                finder.end_owner_step(
                    step_kinds.OPTIMIZER, optimizer
                ) if kind == step_kinds.ENVIRONMENT else None
        # A hundred steps make it the rival of the owner, and a hundred its successor.
        assert loop.steps == 4 + 52

    def test_an_optimizer_that_steps_now_and_then_keeps_the_pace(self) -> None:
        finder, loop = self.make_finder()
        outer, inner = Owner(), Owner()
        for _ in range(10):
            for owner in (outer, *[inner] * 90):
                finder.end_owner_step(step_kinds.OPTIMIZER, owner)
        assert loop.steps == 9

    @pytest.mark.parametrize("within", [False, True], ids=["a pass", "a pass within a pass"])
    def test_hooks_in_a_thread_of_autograds_end_a_step_with_their_pass(
        self, monkeypatch: pytest.MonkeyPatch, within: bool
    ) -> None:
        finder, loop = self.make_finder()
        monkeypatch.setattr(step_finder, "_finder", finder)
        first, second = Owner(), Owner()
        seen: list[int] = []

        def step_both() -> None:
            for owner in (first, second):
                backward_passes.end_optimizer_step(owner, owner)

        step = backward_passes.wrap_backward(step_both, wrapping.is_never_traced) if within else step_both

        def run_thread(ended: threading.Event) -> None:
            step()
            seen.append(loop.steps)
            ended.set()

        def run_pass() -> None:
            ended = threading.Event()
            # A thread that `threading` didn't start, as autograd's are.
            _thread.start_new_thread(run_thread, (ended,))
            assert ended.wait(60)

        for _ in range(3):
            backward_passes.wrap_backward(run_pass, wrapping.is_never_traced)()
        assert (seen, loop.steps, finder.seen[step_kinds.OPTIMIZER]) == ([0, 0, 1], 2, 6)

    @pytest.mark.parametrize("seen_within", [False, True], ids=["compiled", "given up"])
    def test_a_compiled_step_ends_one_step(
        self, monkeypatch: pytest.MonkeyPatch, recorder: TimingRecorder, seen_within: bool
    ) -> None:
        finder, loop = self.make_finder()
        monkeypatch.setattr(step_finder, "_finder", finder)
        steps: list[object] = []

        class Optimizer:
            def step(self, closure: object = None) -> str:
                steps.append(closure)
                return "loss"

        def compile_code(model: Any, **_: object) -> Any:
            # Compiled code holds no wrapper; where the compiler gives up, it calls what it was given.
            return model if seen_within else lambda *args: whole(model.__self__, *args)

        whole = Optimizer.step
        Optimizer.step = optimizers.wrap_optimizer_step(whole, wrapping.is_never_traced)  # type: ignore[method-assign]
        fake: Any = SimpleNamespace(optim=SimpleNamespace(Optimizer=Optimizer), compile=compile_code)
        monkeypatch.setattr(optimizers, "_wraps_optimizer", lambda _: False)
        optimizers._patch_compiled_steps(fake, wrapping.is_never_traced)
        compiled = fake.compile(Optimizer().step, fullgraph=False)
        assert [compiled(number) for number in range(3)] == ["loss"] * 3
        assert (steps, loop.steps, phase_counts(recorder)) == ([0, 1, 2], 2, {"optimizer": 3})

    def test_a_captured_step_is_taken_by_each_replay(
        self, monkeypatch: pytest.MonkeyPatch, recorder: TimingRecorder
    ) -> None:
        finder, loop = self.make_finder()
        monkeypatch.setattr(step_finder, "_finder", finder)

        class Graph:
            replays = 0

            def capture_begin(self, pool: object = None) -> None: ...

            def capture_end(self) -> None: ...

            def replay(self) -> None:
                self.replays += 1

        graphs.patch_graph_class(Graph)
        owner, graph, other = Owner(), Graph(), Graph()
        backward_passes.end_optimizer_step(owner, owner)
        graph.capture_begin(pool=1)
        backward_passes.end_optimizer_step(owner, owner)
        # What another thread does meanwhile becomes no part of the graph.
        beside = Owner()
        thread = threading.Thread(target=backward_passes.end_optimizer_step, args=(beside, beside))
        thread.start()
        thread.join()
        graph.capture_end()
        assert (loop.steps, graph.replays, finder.seen[step_kinds.OPTIMIZER]) == (0, 0, 2)
        for _ in range(3):
            graph.replay()
            other.replay()
        assert (loop.steps, graph.replays, other.replays) == (3, 3, 3)
        assert phase_counts(recorder) == {"graph_replay": 3}
        # A graph keeps nothing alive, nor does what it had captured before.
        graph.capture_begin()
        graph.capture_end()
        graph.replay()
        assert loop.steps == 3

    def test_the_end_is_raised_and_raised_again(self) -> None:
        finder, loop = self.make_finder(1)
        owner = Owner()
        finder.end_owner_step(step_kinds.OPTIMIZER, owner)
        for _ in range(2):
            with pytest.raises(step_finder.ScriptEnded):
                finder.end_owner_step(step_kinds.OPTIMIZER, owner)
        assert (loop.steps, finder.ended) == (1, True)


@pytest.mark.parametrize(
    "wrapped",
    [
        wrapping.wrap_step("env_step", step_kinds.ENVIRONMENT, len, wrapping.is_never_traced),
        optimizers.wrap_optimizer_step(len, wrapping.is_never_traced),
    ],
)
def test_wrappers_hold_nothing_that_cannot_be_pickled(wrapped: wrapping.Function) -> None:
    held = [cell.cell_contents for cell in wrapped.__closure__ or ()]
    # A script's classes may travel to other processes by value, and what a wrapper holds with them.
    assert all(pickle.dumps(value) for value in held)


def test_the_compiler_traces_through_wrappers_and_compiles_none() -> None:
    skipped: list[str] = []
    rules: Any = SimpleNamespace(get_mod_inlinelist=lambda: {"nn"}, add=skipped.append)
    compilation.trace_through_wrappers(rules)
    traced = rules.get_mod_inlinelist()
    assert any(wrapping.__file__.startswith(folder) for folder in traced - {"nn"})
    assert skipped == ["paceline"]
    # Versions differ.
    compilation.trace_through_wrappers(SimpleNamespace())  # type: ignore[arg-type]
