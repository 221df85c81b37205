"""What a run's page shows of a document that holds everything, and of one that is older."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Run
from tests.pages import builders
from tests.pages.documents import complete_document
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db

STACKS = [
    {"stack": ["train.py:1 <module>", "learn agent.py:90"], "phase": "learn", "calls": 2.0, "self": 3e-4},
    {"stack": ["train.py:1 <module>", "act agent.py:41"], "phase": "rollout", "calls": 1.0, "self": 1e-4},
]


def create_measured_run(**changes: Any) -> Run:
    project = builders.create_project()
    commit, case = builders.create_commits(project, 1)[0], builders.create_case(project)
    return builders.create_measured_run(commit, case, 0.001, body=complete_document(**changes))


def get_page(client: Client, run: Run, query: str = "") -> str:
    answer = client.get(f"/runs/{run.pk}/{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def with_stacks() -> dict[str, Any]:
    return {**complete_document()["profile"], "stacks": STACKS}


def test_a_crossed_limit_is_told_in_words_once(client: Client) -> None:
    shown = get_page(client, create_measured_run())
    assert "1 limit crossed" in shown
    assert "Step time was 1.33 ms</strong>, and must be at most 666 µs" in shown
    for state in ("crossed", "kept", "not measured"):
        assert f'-measured">{state}<' in shown or f'limit-{state}">{state}<' in shown
    assert "Step_time is over its limit" not in shown


def test_idle_time_of_several_phases_is_mostly_in_one(client: Client) -> None:
    timeline = complete_document()["device_profile"]
    cause = timeline["idle"][0]["cause"]
    timeline["idle"] = [
        {"cause": cause, "phase": phase, "count": 1.0, "seconds": seconds}
        for phase, seconds in (("act", 1e-4), ("learn", 3e-4))
    ]
    shown = get_page(client, create_measured_run(device_profile=timeline))
    assert (
        'mostly <code>learn</code></td><td class="empty"></td><td class="num" data-label="Time">400 µs'
        in shown
    )


def test_the_full_job_is_projected_with_its_interval(client: Client) -> None:
    shown = get_page(client, create_measured_run())
    assert "50,000 episodes" in shown
    assert "7.40 h" in shown
    assert "[7, 7.83] h" in shown
    assert "projected from the fit of its scaling" in shown


def test_what_the_code_chose_by_itself_stands_with_the_environment(client: Client) -> None:
    chosen_by_machine = {"cpu_features": ["avx2", "avx512f"], "settings": {"bf16": "off: no bfloat16"}}
    environment = {**complete_document()["environment"], **chosen_by_machine}
    shown = get_page(client, create_measured_run(environment=environment))
    chosen = shown.partition("What the code chose by itself")[2].partition("</details>")[0]
    assert "<li>bf16" in chosen
    assert "off: no bfloat16" in chosen
    assert chosen.count("<li>") == 1
    assert "avx2, avx512f" in shown


def test_what_other_seeds_learned_stands_with_the_protocol(client: Client) -> None:
    shown = get_page(client, create_measured_run(learning=[{"seed": 2, "quality": {"score": 8.25}}]))
    assert "<dt>Learned with seed 2</dt><dd>score 8.25</dd>" in shown


def test_scaling_is_a_straight_line_beside_proportion(client: Client) -> None:
    run = create_measured_run()
    drawn = embedded_figure(client, f"/runs/{run.pk}/", "scaling")
    assert drawn["layout"]["xaxis"]["type"] == drawn["layout"]["yaxis"]["type"] == "log"
    assert {"in proportion", "fit: 1.90", "measured", "learn"} <= {trace["name"] for trace in drawn["data"]}
    of_a_step = embedded_figure(client, f"/runs/{run.pk}/", "scaling-step")
    assert "level" in {trace["name"] for trace in of_a_step["data"]}


def test_exponents_say_what_they_mean_and_link_to_their_series(client: Client) -> None:
    run = create_measured_run()
    series = builders.headline_series(run.case, "scaling_exponent")
    shown = get_page(client, run)
    assert f'<a href="/series/{series.pk}/">Whole loop</a>' in shown
    assert "[1.88, 1.92]" in shown
    assert "3.73 \N{MULTIPLICATION SIGN}" in shown
    assert "faster than in proportion" in shown


def test_a_service_beside_the_trainer_is_seen_apart(client: Client) -> None:
    shown = get_page(client, create_measured_run())
    assert "<code>service.py</code>" in shown
    assert "60 MB" in shown
    assert "98 % of a core" in shown


def test_counters_stand_beside_those_of_the_run_before(client: Client) -> None:
    project = builders.create_project()
    line, case = builders.create_commits(project, 2), builders.create_case(project)
    first = builders.create_measured_run(line[0], case, 0.001, body=complete_document())
    body = complete_document()
    for row in body["metrics"]:
        row["value"] *= 1.25 if row["name"] == "function_calls" else 1
    shown = get_page(client, builders.create_measured_run(line[1], case, 0.001, body=body))
    assert f'beside <a href="/runs/{first.pk}/">run {first.pk}</a>' in shown
    assert "more: +25 %" in shown
    assert "no earlier run" in get_page(client, first)


def test_another_branch_is_no_run_before(client: Client) -> None:
    project = builders.create_project()
    line, case = builders.create_commits(project, 2), builders.create_case(project)
    line[0].branch = "try"
    line[0].save()
    builders.create_measured_run(line[0], case, 0.001, body=complete_document())
    run = builders.create_measured_run(line[1], case, 0.001, body=complete_document())
    assert "no earlier run" in get_page(client, run)


def test_tensor_operations_have_times_where_they_were_measured(client: Client) -> None:
    operations = [{"name": "aten::mm", "count": 4.0, "seconds": 2e-5}, {"name": "aten::add", "count": 9.0}]
    profile = {**complete_document()["profile"], "operations": operations}
    shown = get_page(client, create_measured_run(profile=profile))
    assert '<code>aten::mm</code></td><td class="num" data-label="Per step">4 ' in shown
    assert 'data-label="Each">5.00 µs' in shown


def test_tensor_operations_without_times_have_no_such_column(client: Client) -> None:
    profile = {**complete_document()["profile"], "operations": [{"name": "aten::mm", "count": 4.0}]}
    operations = get_page(client, create_measured_run(profile=profile)).partition("Tensor operations</h3>")[2]
    assert "<code>aten::mm</code>" in operations
    assert "Time per step" not in operations


def test_threads_beside_the_main_one_are_told_apart(client: Client) -> None:
    phases = complete_document()["phases"]
    aside = {**copy.deepcopy(phases[0]), "path": "prefetch", "thread": "loader-1"}
    run = create_measured_run(phases=[*phases, aside])
    main, _, other = get_page(client, run).partition("Other threads</h3>")
    assert "prefetch" in other
    assert "<code>prefetch</code>" not in main
    (bars,) = embedded_figure(client, f"/runs/{run.pk}/", "flame")["data"]
    assert not any("prefetch" in text for text in bars["text"])


@pytest.mark.parametrize(("seconds", "shown"), [(7.7e-5, True), (None, False)])
def test_device_times_stand_beside_the_hosts(client: Client, seconds: float | None, shown: bool) -> None:
    phases = complete_document()["phases"]
    phases[0]["device_total"] = seconds
    assert ('data-label="Device">77 µs' in get_page(client, create_measured_run(phases=phases))) == shown


def test_stacks_are_an_icicle_whose_frames_lead_into_themselves(client: Client) -> None:
    run = create_measured_run(profile=with_stacks())
    shown = get_page(client, run)
    assert 'width="75.0%"' in shown
    assert 'href="?frame=2#frames"' in shown
    inside = get_page(client, run, "?frame=2")
    assert "Functions in this part" in inside
    assert "act agent.py:41" not in inside.partition('class="icicle"')[2].partition("</svg> <p")[0]


def test_frames_alone_are_a_part_of_the_page(client: Client) -> None:
    run = create_measured_run(profile=with_stacks())
    answer = client.get(f"/runs/{run.pk}/frames/?width=calls&frame=2")
    assert "<html" not in answer.content.decode()
    assert answer["HX-Push-Url"] == f"/runs/{run.pk}/?width=calls&frame=2"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("scaling", 'id="scaling"'),
        ("limits", 'id="limits"'),
        ("job", "projected from"),
        ("processes", "Process"),
    ],
)
def test_an_older_document_lacks_the_additions(client: Client, missing: str, words: str) -> None:
    body = complete_document()
    project = builders.create_project()
    older, newer = builders.create_commits(project, 2)
    case = builders.create_case(project)
    whole = get_page(client, builders.create_measured_run(newer, case, 0.001, body=body))
    del body[missing]
    shown = get_page(client, builders.create_measured_run(older, case, 0.001, body=body))
    assert shown.count(words) < whole.count(words)


def test_what_the_protocol_set_is_shown(client: Client) -> None:
    protocol = complete_document()["protocol"]
    protocol |= {"gc": "frozen", "affinity": [0, 1], "variables": {"MODE": "fast"}}
    shown = get_page(client, create_measured_run(protocol=protocol))
    assert "<dt>Garbage collection</dt><dd>frozen</dd>" in shown
    assert "<dt>Processors it may use</dt><dd>0, 1</dd>" in shown
    assert "<code>MODE</code></dt><dd><code>fast</code>" in shown


def test_a_profiled_steps_rows_add_up_to_it(client: Client) -> None:
    shown = get_page(client, create_measured_run()).partition('id="device"')[2].partition("</section>")[0]
    for name in ("ampere_sgemm_128x64_tn", "index_put_kernel&lt;float&gt;", "3 others"):
        assert name in shown
    assert "Idle: waits for data" in shown
    assert "97 % of it is explained" in shown
    # A copy that no kernel hides is idle time, and no row beside it.
    assert "<code>Memcpy" not in shown
    assert "2 copies a step take 800 µs" in shown
    shares = [float(share) for share in re.findall(r'"Of the step">([0-9.]+) %', shown)]
    assert sum(shares) == pytest.approx(100)


def test_what_isnt_known_of_a_device_has_a_reason(client: Client) -> None:
    use = copy.deepcopy(complete_document()["device_use"])
    use["flops"] |= {"status": "impossible"}
    use["counters"] = {"tensor_cores": 41.2, "memory_bandwidth": None, "status": "failed"}
    shown = get_page(client, create_measured_run(device_use=use)).partition('id="device"')[2]
    assert "unknown: more was counted than the device can do" in shown
    assert "41 %" in shown
    assert "not known: the driver refused" in shown


def test_an_older_run_has_no_device(client: Client) -> None:
    body = complete_document()
    del body["device_profile"], body["device_use"]
    run = create_measured_run()
    run.document.body = body
    run.document.save()
    assert 'id="device"' not in get_page(client, run)
