import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from tests.harness.conftest import LOOP, Project, Value


def test_the_document_fits_the_published_schema(measured: dict[str, Any]) -> None:
    schema = json.loads(resources.files("paceline").joinpath("document.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(measured, schema)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**measured, "unknown": 1})


def test_throughput_and_step_time_are_headlines(measured: dict[str, Any], value: Value) -> None:
    throughput, step_time = value(measured, "throughput"), value(measured, "step_time")
    assert throughput["headline"]
    assert step_time["headline"]
    assert len(step_time["samples"]) == 3
    assert throughput["value"] == pytest.approx(1 / step_time["value"])


def test_phases_of_the_main_thread_sum_to_the_step(measured: dict[str, Any], value: Value) -> None:
    own = sum(row["self"] for row in measured["phases"] if row["thread"] == "main")
    assert own == pytest.approx(value(measured, "step_time")["value"])
    assert {row["path"] for row in measured["phases"]} == {"act", "learn", "learn/sum", "(unattributed)"}


def test_the_slow_phase_has_the_share(measured: dict[str, Any]) -> None:
    shares = {row["path"]: row["share"] for row in measured["phases"]}
    assert shares["learn"] >= shares["learn/sum"] > 0.5 > shares["act"]


def test_counters_are_exact_and_by_phase(measured: dict[str, Any], value: Value) -> None:
    calls = value(measured, "function_calls")
    assert (calls["value"], calls["exact"], len(calls["samples"])) == (3.0, True, 2)
    assert value(measured, "function_calls", "act")["value"] == 2.0
    assert value(measured, "function_calls", "learn/sum")["value"] == 1.0


def test_the_profile_names_functions_by_file_and_line(measured: dict[str, Any]) -> None:
    push = next(row for row in measured["profile"]["functions"] if row["function"] == "push")
    assert (push["file"], push["line"], push["calls"], push["phase"]) == ("tiny.py", 6, 1.0, "act")
    assert all("paceline" not in row["file"] for row in measured["profile"]["functions"])


def test_memory_of_the_setup_is_told_apart(measured: dict[str, Any], value: Value) -> None:
    assert value(measured, "phase_memory", "(setup)")["value"] > 2**20
    assert value(measured, "peak_memory")["value"] >= value(measured, "phase_memory", "(setup)")["value"]


def test_without_torch_nothing_is_said_of_tensors(measured: dict[str, Any]) -> None:
    assert measured["environment"]["torch"] is None
    assert "tensor_operations" not in {row["name"] for row in measured["metrics"]}


def test_telemetry_covers_the_repetition(measured: dict[str, Any]) -> None:
    rows = {row["channel"]: row for row in measured["telemetry"] if row["repetition"] == 0}
    hosts = {"cpu_utilization", "memory", "memory_pss", "threads", "disk_read", "disk_write"}
    assert set(rows) == hosts
    assert max(value for value in rows["memory"]["values"] if value is not None) > 2**20


def test_what_the_code_reports_is_measured(project: Project, value: Value) -> None:
    reports = "    paceline.count('games', 2)\n    paceline.gauge('queue', 4)\npaceline.quality('score', 7.5)"
    project.write(f"import paceline\npaceline.setting('bf16', 'off:\\tno unit')\n{LOOP}{reports}")
    raw = project.measure()
    assert raw["environment"]["settings"] == {"bf16": "off:no unit"}
    assert value(raw, "count.games")["value"] == 2
    assert value(raw, "gauge.queue")["value"] == 4
    assert value(raw, "quality.score")["samples"] == [7.5, 7.5]


def test_params_reach_the_script_as_options(project: Project, value: Value) -> None:
    script = (
        "import sys\nimport paceline\npaceline.quality('words', len(sys.argv[1:]))\nprint(sys.argv[1:])\n"
    )
    project.write(f"{script}{LOOP}", params={"batch_size": 64, "fused": True, "log": False})
    ended = project.call("run", "tiny", "--quick", "--set", "batch_size=128", "--document", "out.json")
    assert "['--batch-size', '128', '--fused', '--no-log']" in ended.stderr
    raw = json.loads((project.folder / "out.json").read_text())
    assert raw["benchmark"]["case"] == "batch_size=128,fused=true,log=false"


def test_exact_parameters_are_completed_by_no_case(project: Project) -> None:
    project.write(LOOP, params={"batch_size": 64, "fused": True})

    def case_of(*words: str) -> str:
        project.call("run", "tiny", "--quick", "--set", "fused=true", *words, "--document", "out.json")
        return str(json.loads((project.folder / "out.json").read_text())["benchmark"]["case"])

    assert case_of() == "batch_size=64,fused=true"
    assert case_of("--exact") == "fused=true"


def test_quick_is_counted_once_and_not_called_exact(project: Project, value: Value) -> None:
    raw = project.measure("--quick")
    assert raw["protocol"]["quick"] is True
    assert value(raw, "function_calls")["exact"] is False


def test_timed_repetitions_alone_count_nothing(project: Project) -> None:
    raw = project.measure("--timed-only", "--repetitions", "1")
    assert (raw["profile"], raw["protocol"]["countings"]) == (None, 0)
    assert "counter" not in {row["kind"] for row in raw["metrics"]}
    assert "step_time" in {row["name"] for row in raw["metrics"]}


def test_without_counting_what_is_timed_stays(project: Project) -> None:
    project.write(
        "import sys, paceline\nfor _ in paceline.steps(range(int(sys.argv[-1]))): sum(range(1000))",
        params={"n": 10**6},
        scaling={"parameter": "n", "values": [200, 400, 800]},
    )
    raw = project.measure("--no-counting", "--repetitions", "1")
    assert (raw["profile"], raw["protocol"]["countings"]) == (None, 0)
    assert {point["value"] for point in raw["scaling"]["points"]} == {200, 400, 800}
    assert "scaling" not in project.measure("--timed-only", "--repetitions", "1")
    counted = project.measure("--no-sweep", "--repetitions", "1")
    assert "scaling" not in counted
    assert counted["profile"]["functions"]


def test_progress_ends_at_one(project: Project) -> None:
    project.measure("--progress", "progress.json", "--repetitions", "1")
    assert json.loads((project.folder / "progress.json").read_text()) == {"fraction": 1.0, "text": "done"}


def test_progress_that_cannot_be_written_costs_only_itself(project: Project) -> None:
    (project.folder / "told").mkdir()
    project.write(f"import shutil\nshutil.rmtree('told', ignore_errors=True)\n{LOOP}")
    measured = project.measure("--progress", "told/progress.json", "--repetitions", "1")
    assert (len(measured["repetitions"]), (project.folder / "told").exists()) == (1, False)


def test_other_seeds_learn_beside_the_repetitions(project: Project) -> None:
    seeded = "import os\npaceline.quality('score', int(os.environ['PACELINE_SEED']) * 2)"
    project.write(LOOP + seeded, guard={"score": {"minimum": 3.0}}, learning_seeds=[3, 4])
    measured = project.measure()
    assert measured["learning"] == [
        {"seed": 3, "quality": {"score": 6.0}},
        {"seed": 4, "quality": {"score": 8.0}},
    ]
    assert [row["quality"]["score"] for row in measured["repetitions"]] == [0, 0]
    (score,) = (row for row in measured["metrics"] if row["name"] == "quality.score")
    assert (score["value"], score["samples"]) == (pytest.approx(14 / 3), [0, 6, 8])
    (guard,) = measured["guards"]
    assert (guard["state"], guard["seeds"], guard["better"]) == ("kept", 3, "higher")
    assert "quality_below_guard" not in {row["code"] for row in measured["warnings"]}


def test_a_training_that_diverges_is_measured(project: Project) -> None:
    project.write(f"{LOOP}paceline.quality('loss', float('nan'))", guard={"loss": {"maximum": 3.0}})
    measured = project.measure("--repetitions", "1", "--timed-only", "--seed", "7")
    assert measured["protocol"]["seed"] == 7
    assert measured["guards"][0]["state"] == "diverged"
    assert "quality.loss" not in {row["name"] for row in measured["metrics"]}
    assert any(
        "training diverged: loss is no finite number" in row["message"] for row in measured["warnings"]
    )


def test_a_guard_that_is_missed_taints(project: Project) -> None:
    project.write(f"{LOOP}paceline.quality('score', 1)", guard={"score": {"minimum": 3.0}})
    warning = next(row for row in project.measure()["warnings"] if row["code"] == "quality_below_guard")
    assert warning["taints"]
    assert warning["message"] == "score is 1, its guard is at least 3"


def test_counters_that_differ_are_not_exact(project: Project, value: Value) -> None:
    project.write(f"import os\n{LOOP}    [push(n) for n in range(os.getpid() % 97)]")
    raw = project.measure()
    assert not value(raw, "function_calls")["exact"]
    assert "counters_inexact" in {row["code"] for row in raw["warnings"]}


def test_threads_of_the_code_are_counted_and_timed_apart(project: Project, value: Value) -> None:
    script = """
import threading, paceline
def work():
    with paceline.phase("collect"):
        sum(range(10))
for number in paceline.steps(range(10**6)):
    thread = threading.Thread(target=work, name="collector")
    thread.start()
    thread.join()
"""
    project.write(script)
    raw = project.measure()
    row = next(row for row in raw["phases"] if row["path"] == "collect")
    assert row["thread"] == "collector"
    assert value(raw, "function_calls", "collect")["value"] == 1.0


def test_the_harness_of_the_checkout_is_not_taken(project: Project) -> None:
    (project.folder / "paceline").mkdir()
    (project.folder / "paceline" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    assert project.measure()["harness"]["version"] == "0.2.0"


def test_one_odd_number_costs_only_itself(project: Project, value: Value) -> None:
    odd = (
        "    paceline.gauge('grad_norm', float('inf') if number < 15 else 3)\n"
        "    paceline.gauge('huge', 1e300)\n    paceline.count('tokens', float('nan'))\n"
    )
    project.write(f"{LOOP}{odd}paceline.quality('loss', float('nan'))\n")
    raw = project.measure()
    assert value(raw, "gauge.grad_norm")["value"] == 3
    assert not {"gauge.huge", "count.tokens", "quality.loss"} & {row["name"] for row in raw["metrics"]}
    told = {row["code"]: row["message"] for row in raw["warnings"]}
    assert "gauge grad_norm leaves out 10 readings" in told["number_left_out"]
    assert "huge" in told["number_left_out"]
    assert "loss" in told["quality_diverged"]
