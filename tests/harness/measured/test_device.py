"""The CUDA side against a fake of torch's events; what only a device can show is not claimed here."""

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from paceline.measured import cuda_device
from paceline.measured.timing import TimingRecorder


class Cuda:
    """A device whose clock goes one millisecond further with every recorded event."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = self.made = self.device = 0
        self.reserved = {0: 2000}
        self.waited_for: list[int] = []
        self.capturing = False
        self.allocator = "native"

    def get_allocator_backend(self) -> str:
        return self.allocator

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def synchronize(self, device: int) -> None:
        if self.capturing:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.waits += 1
        self.waited_for.append(device)

    def current_device(self) -> int:
        return self.device

    def get_device_name(self, number: int) -> str:
        return f"Device {number}"

    def get_device_properties(self, device: int) -> SimpleNamespace:
        return SimpleNamespace(uuid=f"{device:08d}-1111-2222-3333-ABCDEF012345" if device < 2 else "<uuid>")

    def max_memory_allocated(self, device: int) -> int:
        return self.reserved.get(device, 0) // 2

    def max_memory_reserved(self, device: int) -> int:
        return self.reserved.get(device, 0)

    def memory_stats(self, device: int) -> dict[str, int]:
        return {"inactive_split_bytes.all.peak": self.reserved.get(device, 0) * 3 // 20}

    def device_count(self) -> int:
        return 2

    def memory_reserved(self, index: int) -> int:
        if self.allocator == "pluggable":
            raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats.")
        return self.reserved.get(index, 0)

    def Event(self, enable_timing: bool = False) -> Any:  # noqa: N802  # torch's name
        self.made += 1
        return Event(self, enable_timing)


class Event:
    """Belongs to the device of its first record; times are read once the device was waited for."""

    def __init__(self, cuda: Cuda, timing: bool) -> None:
        self.cuda = cuda
        self.timing = timing
        self.at: float | None = None
        self.device = -1
        self.waits = 0
        self.captured = False

    def record(self, _stream: object = None) -> None:
        if self.device not in (-1, self.cuda.device):
            raise RuntimeError("Event device does not match recording stream's device")
        self.cuda.now += 1.0
        self.at, self.device, self.waits = self.cuda.now, self.cuda.device, self.cuda.waits
        self.captured = self.cuda.capturing

    def elapsed_time(self, end: "Event") -> float:
        """Return milliseconds."""
        if not (self.timing and end.timing) or self.at is None or end.at is None:
            raise ValueError("both events must be recorded, with timing")
        if self.captured or end.captured or self.device != end.device:
            raise RuntimeError("invalid resource handle")
        if self.cuda.waits in (self.waits, end.waits):
            raise RuntimeError("device not ready")
        return end.at - self.at


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=fake))  # type: ignore[arg-type]
    return fake


def run_loop(steps: int, warmup_steps: int = 2) -> tuple[TimingRecorder, list[int]]:
    recorder = TimingRecorder(warmup_steps, steps, lambda _: None)
    waits = []
    for _ in recorder.steps(range(10**6)):
        with recorder.phase("learn"), recorder.phase("backward"):
            pass
        waits.append(sys.modules["torch"].cuda.waits)
    return recorder, waits


def device_times(recorder: TimingRecorder) -> dict[str, float | None]:
    return {row["path"]: row["device_total"] for row in recorder.result()["phases"]}


def test_phases_have_device_time_per_step(cuda: Cuda) -> None:
    recorder, _ = run_loop(5)
    # Each step records four events, a millisecond apart.
    assert device_times(recorder) == {
        "learn": pytest.approx(0.003),
        "learn/backward": pytest.approx(0.001),
        "(unattributed)": None,
    }


def test_no_step_waits_for_the_device(cuda: Cuda) -> None:
    _, waits = run_loop(5)
    # Once where the window opens; the second wait follows its last step.
    assert waits == [0, 0, 1, 1, 1, 1, 1]
    assert cuda.waits == 2


def test_events_are_made_before_the_window(cuda: Cuda) -> None:
    recorder = TimingRecorder(2, 50, lambda _: None)
    made = []
    for _ in recorder.steps(range(10**6)):
        with recorder.phase("learn"), recorder.phase("backward"):
            pass
        made.append(cuda.made)
    assert set(made[2:]) == {4 * 50}


def test_long_windows_record_a_bounded_number_of_events(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_device, "MOST_COST", 1e9)
    recorder, _ = run_loop(1000)
    assert recorder.device._sampled == cuda_device.SAMPLED_STEPS
    assert cuda.made == 4 * cuda_device.SAMPLED_STEPS


@pytest.mark.parametrize(
    ("phases_per_second", "every"),
    [
        # An event takes a millisecond: of a phase with two in a second 0.4 % go into them, of ten 2 %.
        (2.0, 5),
        (10.0, 5),
        (49.0, 10),
        (99.0, 20),
        # A twentieth of the steps is sampled, whatever it costs.
        (1000.0, 50),
        (None, 5),
    ],
)
def test_so_few_steps_are_sampled_that_events_cost_little(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch, phases_per_second: float | None, every: int
) -> None:
    monkeypatch.setattr(cuda_device, "perf_counter", lambda: cuda.now / 1000)
    events = cuda_device.PhaseEvents()
    events.start(1000)
    events.create_events(2, phases_per_second)
    assert events.every == every


def test_a_window_of_small_steps_samples_fewer(cuda: Cuda) -> None:
    # Steps that do nothing but enter phases: recording would cost them more than they take. So many in the
    # warm-up that other work beside a few of them doesn't decide.
    recorder, _ = run_loop(1000, warmup_steps=2000)
    assert cuda_device.FEWEST_SAMPLED_STEPS <= recorder.device._sampled < cuda_device.SAMPLED_STEPS
    assert device_times(recorder)["learn/backward"] == pytest.approx(0.001)


@pytest.mark.parametrize("every", [4, 6, 8, 20])
def test_a_phase_of_each_fourth_step_is_met_as_often_as_it_comes(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    recorder = TimingRecorder(0, 4000, lambda _: None)
    for number in recorder.steps(range(4000)):
        if number == 0:
            recorder.device.every = every
        if number % 4 == 1:
            with recorder.phase("learn"):
                pass
    met = device_times(recorder)["learn"]
    assert met == pytest.approx(0.00025, rel=0.3)


def test_phases_before_the_loop_dont_count_as_those_of_its_steps(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An event takes a tenth of a microsecond.
    monkeypatch.setattr(cuda_device, "perf_counter", lambda: cuda.now / 1e7)
    sampled = []
    for before in (0, 10_000):
        recorder = TimingRecorder(2, 1000, lambda _: None)
        for _ in range(before):
            with recorder.phase("prepare"):
                pass
        for _ in recorder.steps(range(10**4)):
            with recorder.phase("learn"):
                sum(range(20_000))
        sampled.append(recorder.device._sampled)
    assert sampled == [cuda_device.SAMPLED_STEPS] * 2


def test_one_pause_doesnt_decide_what_an_event_costs(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 5.0, *(step / 1e6 for step in range(100, 200))])
    monkeypatch.setattr(cuda_device, "perf_counter", lambda: next(moments))
    events = cuda_device.PhaseEvents()
    events.start(1000)
    events.create_events(2, 1000.0)
    assert events.every == 5


def test_one_object_is_kept_of_each_stream(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    binding = SimpleNamespace(_cuda_getDevice=lambda: cuda.device, _cuda_getCurrentRawStream=lambda _: 7)
    monkeypatch.setattr(sys.modules["torch"], "_C", binding, raising=False)
    monkeypatch.setattr(cuda, "current_stream", lambda: asked.append(0) or "a stream", raising=False)
    recorder, _ = run_loop(5)
    assert device_times(recorder)["learn/backward"] == pytest.approx(0.001)
    assert len(asked) == 1


def test_a_flood_of_phases_stays_bounded(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_device, "EVENTS_LIMIT", 20)
    monkeypatch.setattr(cuda_device, "EVENTS_PER_STEP", 10)
    recorder = TimingRecorder(1, 20, lambda _: None)
    for number in recorder.steps(range(100)):
        for _ in range(100 if number == 4 else 3):
            with recorder.phase("learn"):
                pass
    # Whole steps were kept up to the limit, the one of the flood was not.
    assert (recorder.device._sampled, device_times(recorder)["learn"]) == (4, pytest.approx(0.003))


def test_nothing_is_recorded_while_a_graph_is_captured(cuda: Cuda) -> None:
    recorder = TimingRecorder(0, 4, lambda _: None)
    for number in recorder.steps(range(9)):
        cuda.capturing = number == 1
        with recorder.phase("capture"):
            pass
        with recorder.phase("begun before"):
            cuda.capturing = number == 2
        cuda.capturing = False
    times = device_times(recorder)
    assert times["capture"] == pytest.approx(0.003 / 4)
    assert times["begun before"] == pytest.approx(0.002 / 4)


def test_a_change_of_device_breaks_nothing(cuda: Cuda) -> None:
    recorder = TimingRecorder(1, 4, lambda _: None)
    for _ in recorder.steps(range(9)):
        with recorder.phase("other"):
            cuda.device = 1
        with recorder.phase("first"):
            cuda.device = 0
        with recorder.phase("learn"):
            pass
    assert device_times(recorder)["learn"] == pytest.approx(0.001)


def test_a_device_that_is_used_from_the_second_step_on_is_timed(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "is_initialized", lambda: False)
    recorder = TimingRecorder(3, 4, lambda _: None)
    for number in recorder.steps(range(9)):
        with recorder.phase("learn"):
            if number == 1:
                monkeypatch.setattr(cuda, "is_initialized", lambda: True)
    assert device_times(recorder)["learn"] == pytest.approx(0.001)


def test_a_phase_that_is_open_where_the_window_ends_has_no_device_time(cuda: Cuda) -> None:
    recorder = TimingRecorder(1, 3, lambda _: None)
    with contextlib.ExitStack() as later:
        for number in recorder.steps(range(9)):
            with recorder.phase("learn"):
                pass
            if number == 3:
                later.enter_context(recorder.phase("late"))
    assert device_times(recorder)["late"] is None


def test_device_memory_is_reported(cuda: Cuda) -> None:
    result = run_loop(3)[0].result()
    assert result["device_memory"] == {"allocated": 1000, "reserved": 2000, "inactive_split": 300}
    # Only those that hold memory of this process are in use.
    assert (result["devices"], result["device_ids"]) == (
        [0],
        ["00000000-1111-2222-3333-abcdef012345"],
    )
    # A torch that tells something else tells nothing.
    assert cuda_device.device_identities([2]) == [None]


def test_a_device_that_is_not_the_current_one_is_waited_for_and_measured(cuda: Cuda) -> None:
    cuda.reserved = {1: 8000, 0: 100}
    recorder, _ = run_loop(3)
    result = recorder.result()
    assert result["device_memory"] == {"allocated": 4000, "reserved": 8000, "inactive_split": 1200}
    assert (result["devices"], set(cuda.waited_for)) == ([0, 1], {0, 1})
    # Marks in the current device's stream tell nothing of the other one.
    assert set(device_times(recorder).values()) == {None}


def test_a_device_of_which_nothing_is_held_is_not_named(cuda: Cuda) -> None:
    cuda.reserved = {1: 8000}
    assert run_loop(3)[0].result()["device"] == "cuda:1 Device 1"


def test_a_phase_that_ends_before_it_began_in_another_stream_has_no_device_time(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Event, "elapsed_time", lambda _self, _end: -0.5)
    assert set(device_times(run_loop(3)[0]).values()) == {None}


def test_without_torch_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not cuda_device.is_device_used()
    assert cuda_device.peak_device_memory() is None


@pytest.mark.parametrize(
    ("allocator", "memory"),
    [("pluggable", None), ("cudaMallocAsync", {"allocated": 1000, "reserved": 2000})],
)
def test_an_allocator_that_tells_less_disturbs_no_loop(
    cuda: Cuda, allocator: str, memory: dict[str, int] | None
) -> None:
    cuda.allocator = allocator
    result = run_loop(5)[0].result()
    assert (result["device_memory"], result["devices"]) == (memory, [0])


def test_a_window_that_opens_in_a_captured_graph_records_no_events_there(cuda: Cuda) -> None:
    events = cuda_device.PhaseEvents()
    events.start(1000)
    cuda.capturing = True
    events.create_events(2, 10.0)
    assert cuda.made == 0
    events.next_step(0)
    cuda.capturing = False
    events.recording = True
    assert events.record_event() is not None


def test_an_allocator_that_keeps_nothing_tells_nothing(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda.reserved = {}
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    result = run_loop(3)[0].result()
    assert (result["device_memory"], result["devices"]) == (None, [0])


@pytest.mark.parametrize(
    ("settings", "told"), [("max_split_size_mb:128", True), ("a:1, expandable_segments:True", False)]
)
def test_of_segments_that_expand_no_fragments_are_known(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch, settings: str, told: bool
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", settings)
    memory = run_loop(3)[0].result()["device_memory"]
    assert (memory["reserved"], "inactive_split" in memory) == (2000, told)
