"""Where a step's time went, from planted events in Kineto's form: times in microseconds."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paceline.document import read_document
from paceline.document_rows import DeviceProfile, IdleRow, TimelineRow
from paceline.reports.device_report import describe_new_kernels, timeline_table
from paceline.timeline import trace_file
from paceline.timeline.activity_rows import shorten_kernel_name
from paceline.timeline.device_profile import EmptyTraceError, build_device_profile
from paceline.timeline.intervals import intersect_interval, subtract_intervals, unite_intervals
from paceline.timeline.profiler_errors import find_profiler_error
from paceline.timeline.timeline_differences import subtract_idle_time, subtract_timelines
from paceline.timeline.trace_events import read_trace

DOCUMENT = Path(__file__).parents[2] / "golden" / "paceline.document-1.json"
MAIN, AUTOGRAD = 100, 101
Raw = dict[str, Any]


class Timeline:
    """Writes events as Kineto does: host ranges, calls that launch, and what they start on the device."""

    def __init__(self) -> None:
        self.events: list[Raw] = []
        self.correlation = 0

    def put_range(
        self, name: str, start: float, end: float, *, cat: str = "user_annotation", tid: int = MAIN
    ) -> None:
        self._put(name, cat, start, end, tid)

    def put_operation(self, name: str, start: float, end: float, *, tid: int = MAIN) -> None:
        self._put(name, "cpu_op", start, end, tid)

    def put_call(self, name: str, start: float, end: float, *, tid: int = MAIN) -> int:
        self.correlation += 1
        self._put(name, "cuda_runtime", start, end, tid, correlation=self.correlation)
        return self.correlation

    def put_activity(
        self, name: str, start: float, end: float, launch: int, *, cat: str = "kernel", device: int = 0
    ) -> None:
        self._put(name, cat, start, end, 7, device=device, stream=7, correlation=launch)

    def put_kernel(self, name: str, start: float, end: float, *, launched: float, tid: int = MAIN) -> None:
        self.put_activity(
            name, start, end, self.put_call("cudaLaunchKernel", launched, launched + 4, tid=tid)
        )

    def _put(self, name: str, cat: str, start: float, end: float, tid: int, **args: Any) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": cat,
                "name": name,
                "pid": 1,
                "tid": tid,
                "ts": 1e9 + start,
                "dur": end - start,
                "args": args,
            }
        )

    def build_profile(self, busy_share: float | None = None, *, is_rank: bool = False) -> Raw:
        return build_device_profile(read_trace({"traceEvents": self.events}), busy_share, is_rank=is_rank)


def one_step(length: float = 1000) -> Timeline:
    timeline = Timeline()
    timeline.put_range("step: 1", 0, length)
    return timeline


def idle_by_cause(profile: Raw) -> dict[str, float]:
    """Return the microseconds of each cause."""
    sums: defaultdict[str, float] = defaultdict(float)
    for row in profile["idle"]:
        sums[row["cause"]] += row["seconds"] * 1e6 * profile["steps"]
    return {cause: round(seconds, 3) for cause, seconds in sums.items()}


def test_a_host_that_launches_late_is_the_cause() -> None:
    timeline = one_step()
    timeline.put_range("phase: act", 0, 1000)
    timeline.put_kernel("first", 10, 400, launched=0)
    timeline.put_kernel("second", 700, 1000, launched=690)
    profile = timeline.build_profile()
    assert idle_by_cause(profile) == {"host": 310}
    assert profile["idle"][0]["phase"] == "act"
    assert (profile["explained"], profile["launches"]) == (1, 2)
    assert profile["busy_seconds"] == pytest.approx(690e-6)


def test_waiting_for_data_is_told_from_what_the_host_does_beside() -> None:
    timeline = one_step()
    timeline.put_range("phase: learn", 0, 400)
    timeline.put_range("phase: epoch/data_loading", 450, 650)
    timeline.put_kernel("first", 0, 400, launched=0)
    timeline.put_kernel("second", 700, 1000, launched=690)
    assert idle_by_cause(timeline.build_profile()) == {"data": 200, "host": 100}


def test_torchs_own_range_of_a_dataloader_is_waiting_for_data_too() -> None:
    timeline = one_step()
    timeline.put_range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 400, 690)
    timeline.put_kernel("first", 0, 400, launched=0)
    timeline.put_kernel("second", 700, 1000, launched=690)
    assert idle_by_cause(timeline.build_profile()) == {"data": 290, "host": 10}


def test_a_read_of_a_value_drains_the_queue() -> None:
    timeline = one_step()
    timeline.put_range("phase: log", 100, 600)
    timeline.put_kernel("first", 0, 400, launched=0)
    copy = timeline.put_call("cudaMemcpyAsync", 110, 403)
    timeline.put_activity("Memcpy DtoH (Device -> Pageable)", 400, 402, copy, cat="gpu_memcpy")
    timeline.put_call("cudaStreamSynchronize", 404, 406)
    timeline.put_kernel("second", 600, 1000, launched=590)
    assert idle_by_cause(timeline.build_profile()) == {"copy": 3, "synchronisation": 197}


def test_a_copy_beside_which_nothing_computes_is_a_cause() -> None:
    timeline = one_step()
    timeline.put_kernel("first", 0, 400, launched=0)
    copy = timeline.put_call("cudaMemcpyAsync", 100, 120)
    timeline.put_activity("Memcpy HtoD (Pinned -> Device)", 400, 700, copy, cat="gpu_memcpy")
    timeline.put_kernel("second", 700, 1000, launched=200)
    profile = timeline.build_profile()
    assert idle_by_cause(profile) == {"copy": 300}
    assert sorted(row["kind"] for row in profile["rows"]) == ["copy", "kernel", "kernel"]


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_what_only_ranks_send_is_no_computing() -> None:
    timeline = one_step()
    timeline.put_range("phase: backward", 0, 600)
    timeline.put_kernel("first", 0, 400, launched=0)
    # Half of it lies behind a kernel, in a stream of its own.
    timeline.put_kernel(NCCL, 200, 600, launched=20)
    timeline.put_kernel("second", 602, 1000, launched=30)
    profile = timeline.build_profile()
    assert idle_by_cause(profile) == {"collectives": 200, "launch": 2}
    assert profile["busy_seconds"] == pytest.approx(798e-6)
    assert sum(row["count"] for row in profile["rows"]) == 3


def test_a_wait_for_ranks_is_told_before_what_the_host_did_beside() -> None:
    timeline = one_step()
    timeline.put_kernel("first", 0, 400, launched=0)
    timeline.put_kernel(NCCL, 400, 700, launched=20)
    timeline.put_range("phase: data_loading", 500, 800)
    timeline.put_call("cudaDeviceSynchronize", 100, 702)
    timeline.put_kernel("second", 850, 1000, launched=840)
    assert idle_by_cause(timeline.build_profile()) == {"collectives": 300, "data": 100, "synchronisation": 50}


def test_what_was_queued_before_waits_for_something_that_isnt_seen() -> None:
    timeline = one_step()
    timeline.put_kernel("first", 0, 300, launched=0)
    timeline.put_kernel("second", 302, 600, launched=10)
    timeline.put_kernel("third", 800, 1000, launched=20)
    profile = timeline.build_profile()
    assert idle_by_cause(profile) == {"launch": 2, "unexplained": 200}
    assert profile["explained"] == pytest.approx(0.8)


def test_the_parts_of_a_step_add_up_to_it() -> None:
    timeline = one_step()
    timeline.put_range("phase: learn", 0, 900)
    for start in range(0, 900, 100):
        timeline.put_kernel("work", start + 20, start + 70, launched=start)
    # Two streams beside each other count once.
    timeline.put_kernel("beside", 130, 160, launched=120)
    profile = timeline.build_profile()
    whole = profile["busy_seconds"] + sum(row["seconds"] for row in profile["idle"])
    assert whole == pytest.approx(profile["step_seconds"])
    assert profile["busy_seconds"] == pytest.approx(450e-6)


def test_a_kernel_of_the_backward_pass_belongs_to_the_phase_that_asked_for_it() -> None:
    timeline = one_step()
    timeline.put_range("phase: learn", 0, 800)
    timeline.put_range("phase: learn/push", 100, 500)
    timeline.put_operation("autograd::engine::evaluate_function: IndexPutBackward0", 110, 300, tid=AUTOGRAD)
    timeline.put_operation("IndexPutBackward0", 115, 290, tid=AUTOGRAD)
    timeline.put_operation("aten::index_put_", 120, 280, tid=AUTOGRAD)
    timeline.put_operation("aten::_index_put_impl_", 130, 270, tid=AUTOGRAD)
    timeline.put_kernel(
        "void at::native::index_put_kernel<float>(int, float*)", 300, 900, launched=140, tid=AUTOGRAD
    )
    (row,) = timeline.build_profile()["rows"]
    assert (row["name"], row["operation"], row["phase"]) == (
        "index_put_kernel<float>",
        "aten::index_put_",
        "learn/push",
    )


def test_numbers_are_per_step_and_the_busiest_device_counts() -> None:
    timeline = Timeline()
    for step in range(4):
        timeline.put_range(f"step: {step + 1}", 1000 * step, 1000 * step + 1000)
        timeline.put_kernel("work", 1000 * step + 10, 1000 * step + 1000, launched=1000 * step)
    launch = timeline.put_call("cudaLaunchKernel", 5, 6)
    timeline.put_activity("elsewhere", 10, 400, launch, device=1)
    profile = timeline.build_profile()
    (row,) = profile["rows"]
    assert (profile["steps"], row["count"]) == (4, 1)
    assert (row["seconds"], profile["step_seconds"]) == (pytest.approx(990e-6), pytest.approx(1e-3))


def test_many_kernels_are_bounded_and_their_rest_is_summed() -> None:
    timeline = one_step(3000)
    for number in range(300):
        timeline.put_kernel(f"kernel_{number}", 10 * number + 5, 10 * number + 10, launched=10 * number)
    profile = timeline.build_profile()
    assert (len(profile["rows"]), profile["rest"]["rows"], profile["rest"]["count"]) == (200, 100, 100)
    assert profile["rest"]["seconds"] == pytest.approx(500e-6)


def test_without_a_device_operations_have_their_own_time_and_python_the_rest() -> None:
    timeline = one_step()
    timeline.put_range("phase: forward", 100, 500)
    timeline.put_operation("aten::linear", 100, 400)
    timeline.put_operation("aten::addmm", 150, 350)
    timeline.put_operation("aten::relu", 400, 500)
    profile = timeline.build_profile()
    own = {row["name"]: round(row["seconds"] * 1e6, 3) for row in profile["rows"]}
    assert own == {"aten::addmm": 200, "aten::linear": 100, "aten::relu": 100}
    assert (profile["device"], idle_by_cause(profile)) == ("cpu", {"host": 600})


def test_what_the_thread_slept_is_unexplained() -> None:
    timeline = one_step()
    timeline.put_operation("aten::mm", 0, 400)
    timeline.put_range("phase: data_loading", 400, 500)
    profile = timeline.build_profile(busy_share=0.7)
    # Of the 300 that it slept or waited, 100 were for data.
    assert idle_by_cause(profile) == {"data": 100, "host": 300, "unexplained": 200}
    assert profile["explained"] == pytest.approx(0.8)


def test_a_rank_waits_in_collectives_where_no_python_runs() -> None:
    timeline = one_step()
    timeline.put_range("phase: backward", 0, 800)
    timeline.put_range("phase: backward/all_reduce", 300, 800)
    timeline.put_operation("aten::mm", 0, 300)
    profile = timeline.build_profile(busy_share=0.5, is_rank=True)
    assert idle_by_cause(profile) == {"collectives": 500, "host": 200}
    assert profile["explained"] == pytest.approx(1)
    # Without ranks it is a phase that the script named so.
    alone = timeline.build_profile(busy_share=0.5)
    assert idle_by_cause(alone) == {"host": 200, "unexplained": 500}


def test_a_loader_without_workers_runs_the_datasets_python() -> None:
    timeline = one_step()
    for kind, start in (("SingleProcess", 0), ("MultiProcessing", 500)):
        timeline.put_range("phase: data_loading", start, start + 300)
        timeline.put_range(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", start + 20, start + 280)
    timeline.put_operation("aten::stack", 200, 300)
    assert idle_by_cause(timeline.build_profile()) == {"dataset": 200, "data": 300, "host": 400}


def test_a_trace_without_steps_explains_nothing() -> None:
    with pytest.raises(EmptyTraceError, match="holds no step"):
        Timeline().build_profile()


def test_events_that_arent_whole_are_left_out() -> None:
    timeline = one_step()
    timeline.put_operation("aten::mm", 0, 400)
    timeline.events += [{"ph": "X", "cat": "kernel", "name": "cut"}, {"ph": "i", "name": "mark", "ts": 3}, {}]
    assert timeline.build_profile()["device"] == "cpu"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void at::native::elementwise_kernel<4, at::native::Fill<float>>(int, at::native::Fill<float>)",
            "elementwise_kernel<4, Fill<float>>",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(Params)",
            "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>",
        ),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax<float>"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void f<int (*)(int)>(int (*)(int))", "f<int (*)(int)>"),
        ("\n", "kernel"),
    ],
)
def test_a_kernels_name_is_shortened(name: str, short: str) -> None:
    assert shorten_kernel_name(name) == short


def test_intervals_are_united_and_subtracted() -> None:
    united = unite_intervals([(5, 7), (1, 3), (2, 4), (9, 20)], (2, 10))
    assert united == [(2, 4), (5, 7), (9, 10)]
    assert subtract_intervals([(0, 6), (8, 12)], united) == [(0, 2), (4, 5), (8, 9), (10, 12)]
    assert intersect_interval((3, 6), united) == [(3, 4), (5, 6)]


ADVICE = "INFO: If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to https://developer.nvidia.com"
MISSING = "WARNING: CUPTI initialization failed - CUDA profiler activities will be missing"


@pytest.mark.parametrize(
    ("output", "name", "said"),
    [
        (
            "cbapi->getCuptiStatus() failed with CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)",
            "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
            "another profiler",
        ),
        (
            "failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)",
            "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            "administrator",
        ),
        (
            "failed with error CUPTI_ERROR_INVALID_DEVICE (2)",
            "CUPTI_ERROR_INVALID_DEVICE",
            "CUPTI_ERROR_INVALID_DEVICE",
        ),
        ("", "", "CUPTI didn't start"),
    ],
)
def test_why_the_profiler_sees_no_device(output: str, name: str, said: str) -> None:
    # The advice that Kineto prints behind every failure names an error that may not have happened.
    error = find_profiler_error(f"step 1\n{output}\n{MISSING}\n{ADVICE}\n")
    assert error is not None
    assert error.name == name
    assert said in error.sentence


def test_a_profiler_without_complaints_has_no_error() -> None:
    assert find_profiler_error("epoch 1 loss 0.3") is None


def test_idle_time_of_several_phases_is_mostly_in_one() -> None:
    idle = [IdleRow("host", phase, 1, seconds) for phase, seconds in (("act", 2e-3), ("learn", 4e-3))]
    idle.append(IdleRow("data", "act", 1, 1e-3))
    profile = replace(profile_with(), device="cpu", step_seconds=0.02, idle=tuple(idle))
    document = replace(read_document(DOCUMENT.read_bytes()), device_profile=profile)
    *_, host, data, _ = (re.split("  +", line) for line in timeline_table(document).splitlines())
    assert host == ["Python between operations", "mostly learn", "6 ms", "30.0%"]
    assert data == ["waiting for data", "act", "1 ms", "5.0%"]


def test_a_report_tells_how_much_of_the_collectives_was_hidden() -> None:
    timeline = one_step()
    timeline.put_kernel("first", 0, 400, launched=0)
    timeline.put_kernel(NCCL, 200, 600, launched=20)
    timeline.put_kernel("second", 600, 1000, launched=30)
    document = replace(
        read_document(DOCUMENT.read_bytes()), device_profile=read_rows(timeline.build_profile())
    )
    table = timeline_table(document)
    assert table.endswith(
        "100% of it explained, 3 launches a step, collectives of 400 us, 50% of it beside kernels"
    )
    # The rows add up to the step.
    assert [line.split()[-1] for line in table.splitlines()[1:-1]] == ["40.0%", "40.0%", "20.0%"]


def test_an_exported_trace_is_bounded_and_names_no_host(tmp_path: Path) -> None:
    timeline = one_step()
    for number in range(10):
        timeline.put_operation("aten::mm", number, number + 1)
    raw = {
        "schemaVersion": 1,
        "host_name": "secret",
        "traceEvents": [*timeline.events, {"ph": "M", "name": "process_name", "ts": 0}],
    }
    limited = trace_file.limit_trace(raw, 5)
    assert (len(limited["traceEvents"]), limited["eventsCut"]) == (5, 7)
    assert "host_name" not in limited
    trace_file.write_trace(raw, tmp_path / "trace.json.gz")
    written = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert len(written["traceEvents"]) == 12
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.gz"]


def test_a_trace_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(trace_file.TraceFileError, match="left no trace"):
        trace_file.load_trace(tmp_path / "none.json")
    (tmp_path / "cut.json").write_text('{"traceEvents": [')
    with pytest.raises(trace_file.TraceFileError, match="no JSON"):
        trace_file.load_trace(tmp_path / "cut.json")


def read_rows(profile: Raw) -> DeviceProfile:
    rows = tuple(TimelineRow(**row) for row in profile["rows"])
    return DeviceProfile(
        **{**profile, "rows": rows, "idle": tuple(IdleRow(**row) for row in profile["idle"])}
    )


def profile_with(*pushes: str) -> DeviceProfile:
    """A step whose kernel `work` is followed by those of `index_put_`."""
    timeline = one_step(4000)
    timeline.put_range("phase: learn", 0, 4000)
    timeline.put_range("phase: learn/push", 0, 4000)
    timeline.put_kernel("work", 10, 1000, launched=0)
    for number, name in enumerate(pushes):
        start = 1000 + 600 * number
        timeline.put_operation("aten::index_put_", start - 10, start)
        timeline.put_kernel(name, start, start + 600, launched=start - 8)
    return read_rows(timeline.build_profile())


def test_new_kernels_are_told_in_a_sentence() -> None:
    differences = subtract_timelines(profile_with(), profile_with("index_put_kernel", "sort_keys"))
    assert {row.name for row in differences} == {"index_put_kernel", "sort_keys"}
    assert describe_new_kernels(differences) == "2 new kernels, 1.2 ms: index_put in learn/push"
    assert describe_new_kernels(subtract_timelines(profile_with("a"), profile_with())) == ""


def test_idle_time_that_grew_is_told_by_its_cause() -> None:
    before, after = profile_with("a", "b"), profile_with("a")
    (row,) = subtract_idle_time(before, after)
    # The host launched one kernel less, and the device had nothing to do for as long.
    assert (row.name, row.phase) == ("host", "learn/push")
    assert row.growth == pytest.approx(600e-6)


def test_the_same_work_differs_in_nothing() -> None:
    assert subtract_timelines(profile_with("a"), profile_with("a")) == []
    assert subtract_idle_time(profile_with("a"), profile_with("a")) == []
