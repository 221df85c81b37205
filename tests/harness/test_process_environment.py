import json
from pathlib import Path

import pytest
from paceline import manifest
from paceline.command_line import listing
from paceline.manifest.benchmarks import make_case
from paceline.manifest.environment_variables import FORBIDDEN_VARIABLES, KEY_OF_VARIABLE
from paceline.measurement import MeasurementRequest
from paceline.protocol import case_runner, process_environment
from paceline.watching import nvml

from tests.harness.conftest import LOOP, Project, Value

SEEN = """
import gc, json, os
names = ("FOLDER", "OMP_NUM_THREADS", "PYTHONHASHSEED", "PACELINE_SEED", "CUDA_DEVICE_ORDER")
seen = {name: os.environ.get(name) for name in names}
open("seen.json", "w").write(json.dumps({**seen, "processors": sorted(os.sched_getaffinity(0))}))
"""
CYCLES = """
class Cycle: pass
for cycle in range(100):
    first, second = Cycle(), Cycle()
    first.other, second.other = second, first
paceline.quality("frozen", gc.get_freeze_count())
paceline.quality("enabled", gc.isenabled())
"""


@pytest.fixture
def project(project: Project) -> Project:
    """Of new processes: their environment is what is looked at."""
    project.new = True
    return project


def test_all_that_the_protocol_fixes_reaches_the_code_and_the_document(project: Project) -> None:
    project.write(f"{SEEN}{LOOP}", seed=7, threads=2, affinity=[0], variables={"FOLDER": "data"})
    raw = project.measure("--quick")
    seen = json.loads((project.folder / "seen.json").read_text())
    assert seen == {
        "FOLDER": "data",
        "OMP_NUM_THREADS": "2",
        "PYTHONHASHSEED": "7",
        "PACELINE_SEED": "7",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "processors": [0],
    }
    assert (raw["protocol"]["affinity"], raw["protocol"]["variables"]) == ([0], {"FOLDER": "data"})
    assert (raw["protocol"]["seed"], raw["protocol"]["threads"], raw["protocol"]["gc"]) == (7, 2, "default")
    assert raw["environment"]["affinity"] == [0]
    assert raw["environment"]["variables"]["FOLDER"] == "data"


def test_hashes_may_have_a_seed_of_their_own(project: Project) -> None:
    project.write(f"{SEEN}{LOOP}", seed=7)
    project.measure("--quick", "--hash-seed", "8")
    seen = json.loads((project.folder / "seen.json").read_text())
    assert (seen["PYTHONHASHSEED"], seen["PACELINE_SEED"]) == ("8", "7")


@pytest.mark.parametrize(
    ("wish", "frozen", "enabled"), [("default", 0, 1), ("disabled", 0, 0), ("frozen", 1, 1)]
)
def test_the_collector_works_as_it_is_told(
    project: Project, value: Value, wish: str, frozen: int, enabled: int
) -> None:
    project.write(f"import gc\n{LOOP}{CYCLES}", gc=wish)
    raw = project.measure("--quick")
    assert (value(raw, "quality.frozen")["value"] > 0) == frozen
    assert value(raw, "quality.enabled")["value"] == enabled


def test_what_the_protocol_sets_can_not_be_set_otherwise() -> None:
    bench = manifest.parse_manifest('[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=5', "m").benchmarks["a"]
    fixed = {*KEY_OF_VARIABLE, *FORBIDDEN_VARIABLES}
    # The host's own, which sets it for a run whose files the site keeps.
    assert fixed - {"PACELINE_KEPT_FILES"} <= set(process_environment.child_environment(bench))


@pytest.mark.parametrize(("keeps_running", "order"), [(False, "PCI_BUS_ID"), (True, None)])
def test_devices_are_looked_for_as_the_code_will_count_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keeps_running: bool, order: str | None
) -> None:
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    orders: list[str | None] = []

    def probe(environment: dict[str, str]) -> nvml.Devices:
        orders.append(environment.get("CUDA_DEVICE_ORDER"))
        return nvml.Devices()

    monkeypatch.setattr(nvml, "probe_devices", probe)
    bench = manifest.parse_manifest('[benchmarks.a]\nversion=1\nscript="a.py"\nsteps=5', "m").benchmarks["a"]
    request = MeasurementRequest(bench, make_case({}), tmp_path, quick=True, keep_running=keeps_running)
    with case_runner._probed_devices(request):
        assert orders == [order]


def test_a_benchmark_is_listed_with_all_that_is_measured_of_it(project: Project) -> None:
    project.write(
        LOOP,
        scaling={"parameter": "n", "values": [4, 2, 1]},
        job={"unit": "n", "amount": 50_000},
        limits={"step_time": {"maximum": 0.5}},
        repetitions=1,
    )
    benchmarks = manifest.load_manifest(project.folder / "paceline.toml").benchmarks
    text = listing.describe_benchmark(benchmarks["tiny"])
    assert text.splitlines() == [
        "tiny  version 1, tiny.py, 1 repetition of 100 steps",
        "  (no parameters)",
        "  scaling: n 1, 2, 4",
        "  job: 50,000 n",
        "  limit: step_time up to 500 ms",
    ]
