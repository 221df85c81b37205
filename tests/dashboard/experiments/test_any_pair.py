"""Whatever a host says of its pairs is kept and shown, or refused in one sentence: no page breaks over it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from paceline.metrics import describe_metric

from dashboard import experiments
from dashboard.host_protocol import MessageError, read_counted, read_message, read_pair
from dashboard.host_protocol.message_fields import LARGEST_NUMBER, SMALLEST_NUMBER
from dashboard.models import Experiment
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held

pytestmark = pytest.mark.django_db

# `EXAMPLES=2000` for a day on which the messages or the verdicts were changed.
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
SOME = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
QUESTIONS: dict[str, dict[str, Any]] = {
    "estimate": {},
    "test": {},
    "place": {},
    "bound": {"floor": 0.02, "before": None, "after": None},
}
METRICS = ("step_time", "throughput", "peak_memory", "function_calls", "memory_growth", "scaling_exponent")
NUMBERS = st.one_of(
    st.sampled_from(
        [0.0, 1.0, 0.01, -0.01, LARGEST_NUMBER, -LARGEST_NUMBER, SMALLEST_NUMBER, 5e-324, 1e299, 2**62]
    ),
    st.floats(0.009, 0.02),
)
NAMES = st.sampled_from(["learn", "learn/backward", "", "x" * 300, "</script>", "a\x08b", "\u202e", "(rest)"])
SECONDS = st.sampled_from([0.0, 1.0, 1e9, -1.0, 1e299])
POINTS = st.lists(
    st.fixed_dictionaries(
        {
            "value": NUMBERS,
            "repetition": st.sampled_from([0, 2**31 - 1]),
            "steps": st.sampled_from([0, 1, 2**62]),
            "seconds": SECONDS,
            "phases": st.dictionaries(NAMES, SECONDS, max_size=3),
            "waited": NUMBERS,
        }
    ),
    max_size=3,
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
SWEEPS = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"parameter": NAMES, "amount": st.one_of(st.none(), NUMBERS), "base": POINTS, "head": POINTS}
    ),
    ANYTHING,
)
OTHERS = st.dictionaries(
    st.sampled_from(["peak_memory", "quality.return", "step_time", "x"]),
    st.fixed_dictionaries(
        {
            "unit": st.sampled_from(["bytes", "1", ""]),
            "better": st.sampled_from(["lower", "higher"]),
            "kind": st.sampled_from(["memory", "quality", "time"]),
            "base": NUMBERS,
            "head": NUMBERS,
        }
    ),
    max_size=2,
)
BOTH = st.dictionaries(NAMES, st.lists(NUMBERS, min_size=2, max_size=2), max_size=3)
PAIRS = st.fixed_dictionaries(
    {
        "index": st.integers(0, 12),
        "base_first": st.booleans(),
        "base": st.one_of(st.none(), NUMBERS),
        "head": st.one_of(st.none(), NUMBERS),
        "disturbed": st.sampled_from([False, False, True]),
        "seconds": SECONDS,
        "phases": BOTH,
        "typical_phases": BOTH,
        "steps": st.one_of(
            st.just({}),
            st.fixed_dictionaries({"base": st.just([0.01] * 40), "head": st.just([0.011] * 39 + [1e100])}),
        ),
        "sweeps": SWEEPS,
        "others": OTHERS,
        "seed": st.one_of(st.none(), st.integers(0, 2**62)),
    }
)
FUNCTIONS = st.lists(
    st.fixed_dictionaries(
        {
            **{"function": NAMES, "file": NAMES, "line": st.sampled_from([0, 2**31 - 1])},
            **{"calls": NUMBERS, "self": NUMBERS, "cumulative": NUMBERS},
            "phase": st.one_of(st.none(), NAMES),
        }
    ),
    max_size=3,
)
COUNTED = st.one_of(
    st.just({}), ANYTHING, st.fixed_dictionaries({"profile": st.fixed_dictionaries({"functions": FUNCTIONS})})
)


def read_sent(value: Any) -> Any:
    """As it comes over HTTP."""
    return read_message(json.dumps({"sent": value}).encode()).inside("sent")


@SOME
@given(
    question=st.sampled_from(sorted(QUESTIONS)),
    metric=st.sampled_from(METRICS),
    in_turns=st.booleans(),
    counted=st.tuples(COUNTED, COUNTED),
    pairs=st.lists(PAIRS, min_size=1, max_size=12),
)
def test_any_pair_has_a_page(
    client: Client,
    make_experiment: MakeExperiment,
    question: str,
    metric: str,
    in_turns: bool,
    counted: tuple[Any, Any],
    pairs: list[Any],
) -> None:
    assert describe_metric(metric)
    with transaction.atomic():
        row = make_experiment(metric, question=question, **QUESTIONS[question])
        lease = claim_held().lease
        Experiment.objects.update(in_turns=in_turns)
        with suppress(MessageError):
            sides = dict(zip(("base", "head"), map(read_counted, map(read_sent, counted)), strict=True))
            experiments.keep_profiles(lease, sides, 1.0)
        for said in pairs:
            with suppress(MessageError):
                if experiments.add_pair(lease, read_pair(read_sent(said))):
                    break
        for address in (f"/experiments/{row.pk}/", f"/api/v1/experiments/{row.pk}"):
            assert client.get(address).status_code == 200, address
        assert client.get(f"/api/v1/experiments/{row.pk}/pairs").status_code == 200
        transaction.set_rollback(True)
