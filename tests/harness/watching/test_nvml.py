import sys
from collections.abc import Callable

import pynvml
import pytest
from paceline.watching import nvml
from paceline.watching.nvml import CoTenants, Devices

from tests.harness.fake_nvml import Device, FakeNvml, Instance

Probe = Callable[..., Devices]
PCI = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Probe a fake NVML with these devices, as a process with this environment."""

    def probe_fake(
        *devices: Device, old_driver: bool = False, driver: bool = True, **variables: str
    ) -> Devices:
        fake = FakeNvml(list(devices), driver=driver, old_driver=old_driver)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return nvml.probe_devices({**PCI, **variables})

    return probe_fake


def test_the_fake_has_only_what_the_real_package_has() -> None:
    names = {name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))}
    assert [name for name in names if not hasattr(pynvml, name)] == []
    constants = [name for name in names if isinstance(getattr(FakeNvml, name), int)]
    assert {name: getattr(pynvml, name) for name in constants} == {
        name: getattr(FakeNvml, name) for name in constants
    }


def test_the_real_package_knows_every_reason() -> None:
    assert set(nvml._throttle_reasons(pynvml).values()) == set(nvml.THROTTLE_REASONS.values())


def test_no_driver_means_no_devices(probe: Probe) -> None:
    assert probe(Device(), driver=False).visible == []


@pytest.mark.parametrize("installed", [True, False])
def test_pynvml_is_imported_where_there_is_a_driver(monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    def load_library(name: str) -> object:
        assert name == "libnvidia-ml.so.1"
        if installed:
            return object()
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setitem(sys.modules, "pynvml", pynvml)
    monkeypatch.delitem(sys.modules, "pynvml")
    monkeypatch.setattr(nvml.ctypes, "CDLL", load_library)
    nvml.probe_devices(PCI).close()
    assert ("pynvml" in sys.modules) == installed


def test_the_driver_is_known_and_let_go(probe: Probe) -> None:
    devices = probe(Device(), Device())
    devices.close()
    assert (devices.driver, len(devices.visible), devices.api.closed) == ("550.54.15", 2, True)


def test_a_device_is_read(probe: Probe) -> None:
    ((index, readings),) = probe(Device(milliwatts=301_500)).read()
    assert (index, readings["gpu_power"], readings["gpu_memory"]) == (0, 301.5, 2**30)


@pytest.mark.parametrize(
    ("device", "watts"),
    [
        (Device(milliwatts=160_000, instant_milliwatts=440_000), 440.0),
        (Device(milliwatts=160_000), 160.0),
        (Device(milliwatts=160_000, instant_milliwatts=440_000, unsupported={"fields"}), 160.0),
    ],
)
def test_the_power_is_that_of_the_instant_where_it_is_known(
    probe: Probe, device: Device, watts: float
) -> None:
    ((_, readings),) = probe(device).read()
    assert readings["gpu_power"] == watts


def test_an_unsupported_reading_is_none_and_not_zero(probe: Probe) -> None:
    devices = probe(Device(unsupported={"power"}))
    ((_, readings),) = devices.read()
    assert (readings["gpu_power"], readings["gpu_temperature"]) == (None, 61)
    assert devices.lost == set()


def test_a_lost_device_is_told_apart_and_the_others_go_on(probe: Probe) -> None:
    devices = probe(Device(lost=True), Device(gpu=7))
    (_, first), (_, second) = devices.read()
    assert (set(first.values()), second["gpu_utilization"]) == ({None}, 7)
    assert devices.lost == {0}
    assert devices.throttling() == set()


@pytest.mark.parametrize(
    ("visible", "indices", "lost"),
    [(None, [0, 2], {1}), ("0", [0], set()), ("1,2", [2], {1}), ("GPU-c", [2], set())],
)
def test_a_device_without_a_handle_hides_no_other(
    probe: Probe, visible: str | None, indices: list[int], lost: set[int]
) -> None:
    fakes = [Device(uuid="GPU-aa"), Device(uuid="GPU-bb", unsupported={"handle"}), Device(uuid="GPU-cc")]
    devices = probe(*fakes, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}))
    assert ([device.index for device in devices.visible], devices.lost) == (indices, lost)


@pytest.mark.parametrize(("visible", "indices"), [(None, [1, 3]), ("0", [1]), ("1,0", [3, 1]), ("2", [])])
def test_devices_of_others_are_no_devices_of_cuda(
    probe: Probe, visible: str | None, indices: list[int]
) -> None:
    fakes = [Device(uuid=f"GPU-{name}", forbidden=name in "ac") for name in "abcd"]
    devices = probe(*fakes, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}))
    assert ([device.index for device in devices.visible], devices.lost) == (indices, set())


def test_a_part_of_a_device_of_others_isnt_watched(probe: Probe) -> None:
    other = Device(uuid="GPU-a", instances=[Instance("MIG-a")], forbidden=True)
    assert probe(other, Device(uuid="GPU-b"), CUDA_VISIBLE_DEVICES="MIG-a").visible == []


def test_a_device_is_found_by_its_uuid_whatever_its_number(probe: Probe) -> None:
    parts = [Instance("MIG-p")]
    devices = probe(Device(uuid="GPU-aa"), Device(uuid="GPU-bb"), Device(uuid="GPU-cc", instances=parts))
    assert [devices.find_index(0, identity) for identity in ("bb", "cc", "p", "zz", None)] == [
        1,
        2,
        2,
        None,
        0,
    ]
    assert devices.find_index(7, None) is None


@pytest.mark.parametrize("old_driver", [False, True])
def test_throttling_is_told_by_any_driver(probe: Probe, old_driver: bool) -> None:
    devices = probe(Device(reasons=0x04 | 0x40 | 0x01), old_driver=old_driver)
    assert devices.throttling() == {(0, "power cap"), (0, "temperature (hardware)")}


@pytest.mark.parametrize(
    ("visible", "indices"),
    [("1", [1]), ("1,0", [1, 0]), ("", []), ("-1", []), ("0,9,1", [0]), ("GPU-b", [1]), ("GPU-", [])],
)
def test_only_visible_devices_count(probe: Probe, visible: str, indices: list[int]) -> None:
    devices = probe(Device(uuid="GPU-aa"), Device(uuid="GPU-bb"), CUDA_VISIBLE_DEVICES=visible)
    assert [device.index for device in devices.visible] == indices


def test_in_another_order_a_number_names_no_device(probe: Probe) -> None:
    devices = probe(Device(), Device(), CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="FASTEST_FIRST")
    assert [device.index for device in devices.visible] == [0, 1]


def test_a_part_of_a_divided_device_has_its_own_memory(probe: Probe) -> None:
    parts = [Instance("MIG-a", used=1), Instance("MIG-b", used=2)]
    devices = probe(Device(uuid="GPU-x"), Device(uuid="GPU-y", instances=parts), CUDA_VISIBLE_DEVICES="MIG-b")
    ((index, readings),) = devices.read()
    assert (index, readings["gpu_memory"], readings["gpu_utilization"]) == (1, 2, None)
    assert readings["gpu_sm_clock"] == 1700


def test_of_a_divided_device_the_first_part_is_taken(probe: Probe) -> None:
    ((_, readings),) = probe(Device(instances=[Instance("MIG-a", used=5)])).read()
    assert readings["gpu_memory"] == 5


@pytest.mark.parametrize(
    ("fake", "exclusive"),
    [(Device(), False), (Device(compute_mode=3), True), (Device(unsupported={"compute mode"}), False)],
)
def test_a_device_may_be_for_one_process_alone(probe: Probe, fake: Device, exclusive: bool) -> None:
    assert probe(Device(), fake).are_exclusive() == exclusive


def foreign_processes(devices: Devices, ours: set[int]) -> set[tuple[int, int]]:
    tenancy = CoTenants()
    devices.note_co_tenants(tenancy, ours, 1.0)
    return tenancy.foreign_processes()


def test_a_co_tenant_is_seen_beside_us(probe: Probe) -> None:
    assert foreign_processes(probe(Device(processes=[7, 8])), {7}) == {(0, 8)}
    assert foreign_processes(probe(Device(processes=[7])), {7}) == set()


def test_ids_of_another_namespace_accuse_nobody(probe: Probe) -> None:
    assert foreign_processes(probe(Device(processes=[40_001, 40_002])), {7}) == set()


def test_a_device_that_hides_its_processes_accuses_nobody(probe: Probe) -> None:
    assert foreign_processes(probe(Device(processes=[7, 8], unsupported={"processes"})), {7}) == set()
