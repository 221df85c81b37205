"""Energy, performance counters and the model's operations, against a fake NVML and known products."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from paceline.counting import model_flops
from paceline.counting.operations import OperationMode, OperationSwitch, ThreadTallies
from paceline.document_building import device_use, document_builder
from paceline.document_building.device_peaks import find_peaks
from paceline.measured.phase_nodes import PhaseNode, ThreadState
from paceline.run_warnings.device_use import device_use_warnings
from paceline.watching import nvml
from paceline.watching.energy import READINGS_LIMIT, EnergyMeter

from tests.harness.fake_nvml import Device, FakeNvml, Instance
from tests.harness.watching.test_sampler import Clock, make_sampler

Raw = dict[str, Any]


def sample_devices(monkeypatch: pytest.MonkeyPatch, *fakes: Device, seconds: float = 4.0) -> Any:
    """Sample devices that draw 200 W each, ten times a second, and return the sampler."""
    clock = Clock()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(list(fakes)))
    devices = nvml.probe_devices({})
    devices.counters.clock = clock
    sampler = make_sampler(clock, devices)
    for slot in range(round(seconds * 10) + 1):
        clock.now = 100 + slot / 10
        for fake in fakes:
            fake.millijoules = 5_000_000 + 20_000 * slot
        sampler.sample()
    return sampler


def make_repetition(sampler: Any, **result: Any) -> Any:
    chosen = {"steps": 100, "devices": [0], "counts": {}, "step_time": {"mean": 0.03}, **result}
    environment = {"path": "cuda", "gpus": [{"name": "NVIDIA A100-SXM4-40GB"}]}
    window = (0.55, 3.85)
    return SimpleNamespace(result=chosen, environment=environment, window=window, sampler=sampler, ranks=())


def count_products(types: dict[str, float], **flops: Any) -> list[Raw]:
    found = {"types": types, "uncounted": [], "compiled": False, **flops}
    return [{"operations": {}, "model_flops": found}]


def test_energy_is_what_the_counter_rose_in_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sample_devices(monkeypatch, Device(milliwatts=200_000), Device(milliwatts=200_000))
    use = device_use.find_device_use([make_repetition(sampler, counts={"samples": 4.0})], [])
    # 200 W for 3.3 s, 100 steps; the second device isn't in use.
    assert use.samples["energy", None] == [pytest.approx(6.6)]
    assert use.samples["energy_per_sample", None] == [pytest.approx(1.65)]
    assert use.member is not None
    assert use.member["energy"] == {"step": pytest.approx(6.6), "sampled": pytest.approx(6.6)}


def test_the_devices_of_all_ranks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sample_devices(monkeypatch, Device(), Device())
    repetition = make_repetition(sampler)
    repetition.ranks = ({"devices": [0]}, {"devices": [1]})
    assert device_use.find_device_use([repetition], []).samples["energy", None] == [pytest.approx(13.2)]


def test_energy_is_that_of_the_device_whose_uuid_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sample_devices(
        monkeypatch, Device(uuid="GPU-aa"), Device(uuid="GPU-bb", unsupported={"energy"})
    )
    named = {"devices": [0], "device_ids": ["bb"]}
    assert device_use.find_device_use([make_repetition(sampler, **named)], []).samples == {}
    named["device_ids"] = ["aa"]
    use = device_use.find_device_use([make_repetition(sampler, **named)], [])
    assert use.samples["energy", None] == [pytest.approx(6.6)]


def test_only_devices_in_use_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sample_devices(monkeypatch, Device(gpu=30), Device(gpu=100))
    rows = device_use.device_rows(make_repetition(sampler), "gpu_utilization")
    assert [row["mean"] for row in rows] == [30.0]
    # A helper may compute on another one.
    sampler.co_tenants.own_devices.add(1)
    assert len(device_use.device_rows(make_repetition(sampler), "gpu_utilization")) == 2


@pytest.mark.parametrize(
    "fake", [Device(unsupported={"energy"}), Device(instances=[Instance("MIG-1")]), Device(lost=True)]
)
def test_energy_that_cant_be_read_is_none(monkeypatch: pytest.MonkeyPatch, fake: Device) -> None:
    use = device_use.find_device_use([make_repetition(sample_devices(monkeypatch, fake))], [])
    assert use.member is not None
    assert (use.member["energy"]["step"], use.samples) == (None, {})


def test_a_counter_that_disagrees_with_the_power_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for milliwatts, codes in ((200_000, []), (260_000, ["energy_disagrees"])):
        sampler = sample_devices(monkeypatch, Device(milliwatts=milliwatts))
        use = device_use.find_device_use([make_repetition(sampler)], [])
        assert [row["code"] for row in device_use_warnings({"device_use": use.member}, None)] == codes


def test_a_counter_that_fell_tells_nothing() -> None:
    meter = EnergyMeter()
    for moment, joules in enumerate([10.0, 20.0, 30.0, 2.0, 3.0]):
        meter.add_reading(float(moment), joules)
    assert meter.joules_between((0.0, 2.0)) == 20.0
    assert meter.joules_between((0.0, 4.0)) is None
    assert meter.joules_between((1.0, 9.0)) is None


def test_readings_of_energy_are_bounded() -> None:
    meter = EnergyMeter()
    for number in range(3 * READINGS_LIMIT):
        meter.add_reading(number / 10, 2.0 * number)
    assert len(meter._readings) <= READINGS_LIMIT
    assert meter.joules_between((100.0, 5000.0)) == pytest.approx(2.0 * 49_000)


def test_telemetry_is_that_of_the_devices_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    repetition = make_repetition(sample_devices(monkeypatch, Device(), Device(), seconds=0.5))
    repetition.index = 0
    rows = document_builder._telemetry_rows([repetition], uses_device=True)
    assert {row["device"] for row in rows} == {None, 0}
    assert {row["device"] for row in document_builder._telemetry_rows([repetition], uses_device=False)} == {
        None
    }


def test_performance_counters_are_read_and_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sample_devices(monkeypatch, Device())
    use = device_use.find_device_use([make_repetition(sampler)], [])
    assert use.member is not None
    assert use.member["counters"] == {"tensor_cores": 40.0, "memory_bandwidth": 70.0, "status": "known"}
    api = sampler._devices.api
    sampler._devices.close()
    assert api.samples == 0


@pytest.mark.parametrize(
    ("fake", "status"),
    [
        (Device(unsupported={"counters"}), "not_supported"),
        (Device(unsupported={"counters' support"}), "not_supported"),
        (Device(instances=[Instance("MIG-1")]), "divided"),
        (Device(lost=True), "failed"),
    ],
)
def test_counters_that_cant_be_read_have_a_reason(
    monkeypatch: pytest.MonkeyPatch, fake: Device, status: str
) -> None:
    use = device_use.find_device_use([make_repetition(sample_devices(monkeypatch, fake))], [])
    assert use.member is not None
    assert use.member["counters"] == {"tensor_cores": None, "memory_bandwidth": None, "status": status}


@pytest.mark.parametrize(
    ("window", "status"),
    [
        ((1.05, 1.3), "short_window"),
        ((0.55, 3.85), "known"),
        # Long, and behind the last reading.
        ((4.2, 9.0), "failed"),
    ],
)
def test_counters_are_those_of_readings_in_the_window(
    monkeypatch: pytest.MonkeyPatch, window: tuple[float, float], status: str
) -> None:
    repetition = make_repetition(sample_devices(monkeypatch, Device()))
    repetition.window = window
    use = device_use.find_device_use([repetition], [])
    assert use.member is not None
    assert use.member["counters"]["status"] == status


def test_a_known_product_has_its_utilization() -> None:
    # A tenth of what an A100 does at best in 30 ms.
    counted = count_products({"bfloat16": 0.1 * 312e12 * 0.03})
    use = device_use.find_device_use([make_repetition(make_sampler(Clock()))], counted)
    assert use.samples["model_flops_utilization", None] == [pytest.approx(10.0)]


def test_types_are_weighed_by_what_the_device_does_of_each() -> None:
    counted = count_products({"bfloat16": 0.1 * 312e12 * 0.03, "float32": 0.2 * 19.5e12 * 0.03})
    use = device_use.find_device_use([make_repetition(make_sampler(Clock()))], counted)
    assert use.samples["model_flops_utilization", None] == [pytest.approx(30.0)]


def test_more_than_possible_is_an_error_and_no_percentage() -> None:
    counted = count_products({"float32": 5.63 * 19.5e12 * 0.03})
    use = device_use.find_device_use([make_repetition(make_sampler(Clock()))], counted)
    assert ("model_flops_utilization", None) not in use.samples
    (warning,) = device_use_warnings({"device_use": use.member}, None)
    assert (warning["code"], "%" in warning["message"]) == ("model_flops_impossible", False)


@pytest.mark.parametrize(
    ("counted", "status"),
    [
        ([], "not_counted"),
        (count_products({"float32": 1e9}, compiled=True), "compiled"),
        (count_products({"complex64": 1e9}), "unknown_type"),
        (count_products({}), "none"),
    ],
)
def test_an_unknown_utilization_has_a_reason(counted: list[Raw], status: str) -> None:
    use = device_use.find_device_use([make_repetition(make_sampler(Clock()))], counted)
    assert use.member is not None
    assert (use.member["flops"]["status"], use.samples) == (status, {})


def test_a_device_that_isnt_in_the_table_is_unknown() -> None:
    repetition = make_repetition(make_sampler(Clock()))
    repetition.environment["gpus"] = [{"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}]
    use = device_use.find_device_use([repetition], count_products({"float32": 1e9}))
    assert use.member is not None
    assert use.member["flops"]["status"] == "unknown_device"


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.0),
        ("NVIDIA H200", 989.4),
        ("NVIDIA A100 80GB PCIe", 312.0),
        ("NVIDIA L4", 121.0),
        ("NVIDIA GeForce RTX 4090", 165.2),
    ],
)
def test_peaks_are_dense(name: str, tera: float) -> None:
    peaks = find_peaks(name)
    assert peaks is not None
    assert peaks["bfloat16"] == tera * 1e12
    assert find_peaks("Tesla V100-SXM2-16GB").keys() == {"float64", "float32", "float16"}  # type: ignore[union-attr]
    assert find_peaks("NVIDIA GeForce RTX 4090 Laptop GPU") is None


def count_model(work: Any) -> Any:
    """Return what one thread counted while `work` ran."""
    state = ThreadState("main", None)  # type: ignore[arg-type]  # no thread is asked for
    state.node = PhaseNode("", None, state)
    tallies, switch = ThreadTallies(state), OperationSwitch()
    switch.on = True
    with OperationMode(tallies, switch):
        work()
    return tallies.current_tally()


def test_products_are_counted_by_their_type_forward_and_backward() -> None:
    layer = torch.nn.Linear(8, 16, bias=False)
    rows = torch.randn(4, 8, requires_grad=True)
    tally = count_model(lambda: layer(rows).sum().backward())
    # The product, and its two gradients.
    assert dict(tally.flops) == {"float32": 3 * 2 * 4 * 8 * 16}
    half = torch.ones(4, 8, dtype=torch.bfloat16)
    assert count_model(lambda: half @ half.T).flops == {"bfloat16": 2 * 4 * 4 * 8}


def test_attention_on_a_processor_is_counted() -> None:
    query = torch.randn(2, 4, 8, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    assert count_model(lambda: attend(query, query, query)).model_flops == 2 * 2 * (2 * 4) * 8 * 8 * 16


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_products_with_sparse_matrices_are_not_counted_as_dense_ones(convert: Any) -> None:
    graph, weight = convert(torch.eye(64)), torch.randn(64, 4)
    counted = count_model(lambda: graph @ weight)
    assert (counted.model_flops, counted.uncounted) == (0, {"aten::mm"})


def test_convolutions_have_a_type_before_pytorch_2_9(monkeypatch: pytest.MonkeyPatch) -> None:
    before = SimpleNamespace(allow_tf32=True)
    monkeypatch.setattr(torch.backends, "cudnn", before)
    assert model_flops._uses_tf32("aten::convolution")
    before.allow_tf32 = False
    assert not model_flops._uses_tf32("aten::convolution_backward")


def test_an_operation_of_somebody_elses_is_named() -> None:
    assert model_flops.is_uncounted("flash_attn::_flash_attn_forward")
    assert not model_flops.is_uncounted("aten::relu")
