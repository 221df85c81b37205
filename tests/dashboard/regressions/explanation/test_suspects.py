from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dashboard.regressions.explanation.changed_functions import MODULE, Function, TouchedFunctions
from dashboard.regressions.explanation.suspects import BUILT_IN, MOST_SUSPECTS, rank_suspects
from tests.dashboard.factories import profiled_function

PHASE = "replay/sample"


def make_profile(*functions: dict[str, Any]) -> dict[str, Any]:
    return {"steps": 200, "functions": list(functions)}


def touched_functions(*names: str, file: str = "replay.py") -> TouchedFunctions:
    return TouchedFunctions(
        functions=tuple(Function(file, name, 1000 + at, True) for at, name in enumerate(names))
    )


def ranked_functions(
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    what: TouchedFunctions,
    kind: str = "time",
    delta: float = 0.004,
    phase: str = PHASE,
) -> list[str]:
    return [
        suspect["function"]
        for suspect in rank_suspects(before, after, what, kind=kind, phase=phase, delta=delta)
    ]


def training_loop(sample: float, builtin: float, push: float = 0.001) -> dict[str, Any]:
    """A training loop whose `sample` spends its time in a built-in function. Seconds per step."""
    total = 0.010 + sample + push
    return make_profile(
        profiled_function("train", "train.py", 10, self=0.010, cumulative=total),
        profiled_function("Replay.sample", line=40, self=sample - builtin, cumulative=sample, phase=PHASE),
        profiled_function(
            "random:Random.sample", BUILT_IN, 0, self=builtin, cumulative=builtin, calls=32, phase=PHASE
        ),
        profiled_function("Replay.push", line=20, self=push, cumulative=push, phase="replay/push"),
    )


def test_the_changed_caller_stands_before_the_built_in_that_takes_the_time() -> None:
    found = ranked_functions(
        training_loop(0.001, 0.0008), training_loop(0.005, 0.0047), touched_functions("Replay.sample")
    )
    assert found[:2] == ["Replay.sample", "random:Random.sample"]


def test_a_changed_function_that_costs_nothing_more_stands_behind() -> None:
    found = ranked_functions(
        training_loop(0.001, 0.0008),
        training_loop(0.005, 0.0047),
        touched_functions("Replay.push", "Replay.sample"),
    )
    assert found[0] == "Replay.sample"


def test_of_two_changed_ones_the_called_stands_before_its_caller() -> None:
    what = TouchedFunctions(
        functions=(
            *touched_functions("train", file="train.py").functions,
            *touched_functions("Replay.sample").functions,
        )
    )
    assert ranked_functions(training_loop(0.001, 0.0008), training_loop(0.005, 0.0047), what)[:2] == [
        "Replay.sample",
        "train",
    ]


def test_without_a_diff_what_grew_most_stands_first() -> None:
    found = ranked_functions(training_loop(0.001, 0.0008), training_loop(0.005, 0.0047), TouchedFunctions())
    assert found[0] == "random:Random.sample"


def test_a_new_function_is_ranked() -> None:
    after = training_loop(0.001, 0.0008)
    after["functions"].append(profiled_function("check", line=60, self=0.004, cumulative=0.004, phase=PHASE))
    first = rank_suspects(
        training_loop(0.001, 0.0008),
        after,
        touched_functions("check", "Replay.sample"),
        kind="time",
        phase=PHASE,
        delta=0.004,
    )[0]
    assert (first["function"], first["calls_before"], first["calls_after"]) == ("check", 0, 1)


def test_a_renamed_function_is_compared_with_itself() -> None:
    after = training_loop(0.005, 0.0047)
    after["functions"][3] |= {"function": "Replay.store"}
    what = TouchedFunctions(
        functions=(
            Function("replay.py", "Replay.store", 20, False, renamed_from="Replay.push"),
            Function("replay.py", "Replay.sample", 40, True),
        )
    )
    found = ranked_functions(training_loop(0.001, 0.0008), after, what)
    assert found[0] == "Replay.sample"
    assert "Replay.store" not in found


def test_a_file_that_moved_is_compared_with_itself() -> None:
    after = training_loop(0.005, 0.0047)
    for function in after["functions"]:
        function["file"] = {"replay.py": "memory/replay.py"}.get(function["file"], function["file"])
    found = ranked_functions(
        training_loop(0.001, 0.0008), after, TouchedFunctions(moved={"memory/replay.py": "replay.py"})
    )
    assert "Replay.push" not in found


def test_a_change_that_calls_a_function_more_often_is_told_by_calls() -> None:
    before = make_profile(
        profiled_function("act", line=1, calls=1, self=0.001, cumulative=0.002),
        profiled_function("encode", line=9, calls=1, self=0.001, cumulative=0.001),
    )
    after = make_profile(
        profiled_function("act", line=1, calls=1, self=0.001, cumulative=0.005),
        profiled_function("encode", line=9, calls=4, self=0.004, cumulative=0.004),
    )
    assert ranked_functions(before, after, touched_functions("act"), kind="counter", delta=3)[:2] == [
        "act",
        "encode",
    ]


def test_memory_is_blamed_on_what_was_changed_in_its_phase() -> None:
    found = ranked_functions(
        training_loop(0.001, 0.0008),
        training_loop(0.001, 0.0008),
        touched_functions("Replay.push", "Replay.sample"),
        kind="memory",
        phase="replay/push",
    )
    assert found == ["Replay.push", "Replay.sample"]


def test_memory_of_the_setup_is_blamed_on_what_no_step_calls() -> None:
    what = touched_functions("Replay.__init__", "Replay.push", MODULE)
    found = ranked_functions(
        training_loop(0.001, 0.0008), training_loop(0.001, 0.0008), what, kind="memory", phase="(setup)"
    )
    assert found[0] == "Replay.__init__"


def test_a_constant_stands_behind_what_it_made_dearer() -> None:
    found = rank_suspects(
        training_loop(0.001, 0.0008),
        training_loop(0.005, 0.0012),
        touched_functions(MODULE),
        kind="time",
        phase=PHASE,
        delta=0.004,
    )
    assert [(suspect["function"], suspect["changed"]) for suspect in found] == [
        ("Replay.sample", False),
        (MODULE, True),
    ]


def test_many_small_operations_are_told_by_what_calls_them() -> None:
    def updates(number: int) -> dict[str, Any]:
        small = [
            profiled_function(
                f"torch:op{at}", BUILT_IN, at, self=2e-5 * number, cumulative=2e-5 * number, calls=number
            )
            for at in range(30)
        ]
        each = 6e-4 * number
        return make_profile(
            profiled_function("run", "train.py", 10, self=0.001, cumulative=0.001 + each),
            profiled_function(
                "Agent.learn", line=40, self=1e-6, cumulative=each, calls=number, phase="update"
            ),
            *small,
        )

    assert (
        ranked_functions(updates(4), updates(64), touched_functions(MODULE), phase="update", delta=0.036)[0]
        == "Agent.learn"
    )
    assert (
        ranked_functions(updates(4), updates(64), touched_functions("run", file="train.py"), phase="update")[
            0
        ]
        == "run"
    )


def test_more_calls_of_what_is_built_in_are_told_by_their_caller() -> None:
    def checks(calls: int) -> dict[str, Any]:
        noise = 1e-4 if calls > 100 else 3e-4
        return make_profile(
            profiled_function("torch:mse_loss", BUILT_IN, 0, self=noise, cumulative=noise, phase="learn"),
            profiled_function("isinstance", BUILT_IN, 0, self=1e-7 * calls, calls=calls, phase="check"),
            profiled_function(
                "Check.value", line=40, self=2e-5, cumulative=2e-5 + 1e-7 * calls, phase="check"
            ),
        )

    found = ranked_functions(
        checks(90), checks(190), touched_functions(MODULE), kind="counter", delta=100, phase="check"
    )
    assert found == ["Check.value", "isinstance", MODULE]


def test_without_profiles_the_diff_is_all_there_is() -> None:
    assert ranked_functions(None, None, touched_functions("Replay.sample")) == ["Replay.sample"]


@pytest.mark.parametrize("sides", [(None, None), (None, training_loop(0.001, 0.0008))])
def test_what_is_known_without_both_profiles_says_so(sides: Sequence[dict[str, Any] | None]) -> None:
    before, after = sides
    changed = touched_functions("Replay.sample")
    (suspect,) = rank_suspects(before, after, changed, kind="time", phase=PHASE, delta=0.004)
    assert (suspect["function"], suspect["calls_after"], suspect["profiled"]) == ("Replay.sample", 0, False)


def test_for_what_is_no_longer_learned_changed_functions_alone_are_suspected() -> None:
    changed, slower = touched_functions("Replay.push"), training_loop(0.050, 0.040)
    found = ranked_functions(training_loop(0.001, 0.0008), slower, changed, kind="quality", delta=-7.0)
    assert found == ["Replay.push"]


def blur_and_loop(blurs: int) -> dict[str, Any]:
    """The augmentation has a phase of its own; no step calls the function that holds the loop."""
    blur = profiled_function("blur", "augment.py", calls=blurs, self=1e-3 * blurs, phase="data_loading")
    return make_profile(blur, profiled_function("log", "train.py", calls=1, self=1e-5, phase=""))


@pytest.mark.parametrize(
    ("phase", "share", "first"),
    [("(unattributed)", 1.0, "main"), ("data_loading", 1.0, "blur"), ("(unattributed)", 0.3, "blur")],
)
def test_what_is_counted_in_one_phase_is_not_done_in_another(phase: str, share: float, first: str) -> None:
    files = (("augment.py", "blur"), ("train.py", "main"))
    changed = TouchedFunctions(functions=tuple(Function(file, name, 50, True) for file, name in files))
    before, after = blur_and_loop(1), blur_and_loop(16)
    found = rank_suspects(before, after, changed, kind="counter", phase=phase, delta=1.0, share=share)
    assert found[0]["function"] == first


@pytest.mark.parametrize("phase", ["train", "", "train/forward"])
def test_who_calls_it_there_is_not_elsewhere(phase: str) -> None:
    """A function that runs in the phase around, or opens the phases itself, does what is counted inside."""
    changed = touched_functions("learn", file="agent.py")

    def learning(calls: int) -> dict[str, Any]:
        forward = profiled_function(
            "forward", "net.py", calls=calls, self=1e-3 * calls, phase="train/forward"
        )
        return make_profile(forward, profiled_function("learn", "agent.py", calls=1, self=1e-4, phase=phase))

    found = rank_suspects(
        learning(1), learning(2), changed, kind="counter", phase="train/forward", delta=1.0, share=1.0
    )
    alone = rank_suspects(learning(1), learning(2), changed, kind="counter", phase="", delta=1.0, share=None)
    assert [suspect["function"] for suspect in found] == [suspect["function"] for suspect in alone]


def test_new_code_that_no_step_calls_stands_behind_a_changed_constant() -> None:
    """A commit adds a model, and lets another one be trained by default."""
    added = Function("train.py", "Bag.forward", 900, changed=True, added=True)
    what = TouchedFunctions(functions=(added, Function("train.py", MODULE, 5, changed=True)))
    found = ranked_functions(training_loop(0.001, 0.0008), training_loop(0.005, 0.0012), what)
    assert found[-2:] == [MODULE, "Bag.forward"]


def test_a_constant_is_suspected_whatever_phase_it_is_counted_in() -> None:
    loop, changed = training_loop(0.001, 0.0008), touched_functions(MODULE)
    found = rank_suspects(loop, loop, changed, kind="counter", phase=PHASE, delta=100.0, share=1.0)
    assert found[-1]["function"] == MODULE


def test_functions_that_did_not_grow_are_no_suspects() -> None:
    assert (
        ranked_functions(training_loop(0.001, 0.0008), training_loop(0.001, 0.0008), TouchedFunctions()) == []
    )


def test_ten_are_kept_at_most() -> None:
    many = [profiled_function(f"f{at}", line=at, self=0.001, cumulative=0.001) for at in range(30)]
    found = ranked_functions(make_profile(), make_profile(*many), TouchedFunctions(), delta=0.001)
    assert len(found) <= MOST_SUSPECTS
