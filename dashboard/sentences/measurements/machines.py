"""What a machine is and does, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from dashboard.host_protocol import OLDEST_PROTOCOL
from dashboard.host_protocol.free_disk import LEAST_FREE_BYTES
from dashboard.models import Experiment, Machine, Run
from dashboard.querysets.machines import WaitingWork
from dashboard.querysets.projects import SILENT_AFTER
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import upper_first
from dashboard.sentences.formatting.metric_labels import field_label
from dashboard.sentences.measurements.disturbances import ADVICE

# Within which an experiment has its environments built, as a rule: its budget doesn't count that.
BUILDS_OF_EXPERIMENT = timedelta(hours=1)
MIB = 2**20
# Where a line must not end.
TIED = "\N{NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"

STATUS_LABELS = {
    "retired": "retired",
    "outdated": "update the host",
    "new": "not started yet",
    "silent": "silent",
    "paused": "paused",
    "draining": "draining",
    "full": "disk full",
    "measuring": "measuring",
    "idle": "idle",
}

# What each button does, for who hovers over it or reads beside it.
ACTION_SENTENCES = {
    "pause": "It finishes what it measures, then gets nothing until somebody resumes it.",
    "drain": "As paused; besides, its agent ends once nothing is measured: before a reboot or an update.",
    "resume": "It gets work again at once.",
    "retire": "Its token is revoked at once, and what it measures now is requested again.",
}


def machine_status(machine: Machine, works: bool, now: datetime) -> str:
    """A key of STATUS_LABELS: of all that is true of it what a person has to know first."""
    if machine.state == Machine.State.RETIRED:
        return "retired"
    if machine.is_outdated:
        return "outdated"
    if machine.seen_at is None:
        return "new"
    # The agent of a drained machine ends: nobody waits to hear from it.
    if machine.state == Machine.State.DRAINING:
        return "draining"
    if machine.seen_at < now - SILENT_AFTER:
        return "silent"
    if machine.state == Machine.State.PAUSED:
        return "paused"
    if works:
        return "measuring"
    return "idle" if machine.too_few_bytes is None else "full"


def status_sentence(machine: Machine, status: str, works: bool) -> str:
    """What its status means, and what to do about it."""
    finishes = " It finishes what it measures first." if works else ""
    match status:
        case "retired":
            return (
                "Its token is revoked; what it measured stays. It may join again under "
                "this name, with a new code."
            )
        case "outdated":
            return (
                f"Its agent{_agent_text(machine)} speaks protocol {machine.protocol}, and this site needs "
                f"{OLDEST_PROTOCOL} or newer: update Paceline on the host and start it again. Until then it "
                "gets no work."
            )
        case "new":
            return "It has joined, but its agent hasn't been heard yet: start it on the host."
        case "silent":
            return "Nothing was heard from it lately: is the host up, its agent running, the network there?"
        case "paused":
            return f"It gets no work until somebody resumes it.{finishes}"
        case "full":
            left, needed = (size // MIB for size in (machine.too_few_bytes or 0, LEAST_FREE_BYTES))
            return (
                f"It takes no work: its disk has {left} MiB left of the {needed} MiB that are needed. Free "
                "some, and it goes on by itself."
            )
        case "draining":
            return (
                f"It gets no more work, and its agent ends once nothing is measured.{finishes} Once the "
                "agent is started again, it gets work again."
            )
    return "" if works else "It waits for work."


def _agent_text(machine: Machine) -> str:
    return f" ({machine.agent_version})" if machine.agent_version else ""


def waiting_work_text(waiting: WaitingWork) -> str:
    """`12 runs and 1 experiment wait`."""
    counts = [(waiting.runs, "run"), (waiting.experiments, "experiment")]
    named = [f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number]
    return f"{' and '.join(named)} {'waits' if waiting.runs + waiting.experiments == 1 else 'wait'}"


def held_time(job: Run | Experiment) -> str:
    """`for 12 min`: since a machine has had it; empty where none has."""
    since = _held_since(job)
    return f"for {numbers.format_duration((timezone.now() - since).total_seconds())}" if since else ""


def past_limit_text(job: Run | Experiment) -> str:
    """Of what is measured for longer than it may be: its machine should be looked at. Else empty."""
    limit: float
    if isinstance(job, Run):
        # Its environment is there when it begins to measure.
        limit, builds, past = job.time_limit, timedelta(), "past its time limit"
    else:
        limit, builds, past = job.most_seconds, BUILDS_OF_EXPERIMENT, "far past its budget"
    if job.measuring_at is None or timezone.now() - job.measuring_at <= timedelta(seconds=limit) + builds:
        return ""
    return f"{past} of {numbers.format_duration(limit)}"


def _held_since(job: Run | Experiment) -> datetime | None:
    return job.claimed_at if isinstance(job, Run) else job.measuring_at


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a machine is, each in words; a dash where its host doesn't tell."""

    processor: str
    cores: str
    memory: str
    gpus: str
    driver: str
    system: str
    kernel: str

    @property
    def counted_cores(self) -> str:
        """`4 cores`; empty where the host doesn't tell."""
        return "" if self.cores == numbers.DASH else f"{self.cores} core{'' if self.cores == '1' else 's'}"

    @property
    def named_kernel(self) -> str:
        """`kernel 6.1`; empty where the host doesn't tell."""
        return "" if self.kernel == numbers.DASH else f"kernel {self.kernel}"


def describe_hardware(fingerprint: Mapping[str, Any]) -> Hardware:
    """Of a fingerprint as a host sent it: nothing in it can be relied on."""

    def text_of(name: str) -> str:
        value = fingerprint.get(name)
        return str(value) if isinstance(value, str | int) and value else numbers.DASH

    return Hardware(
        processor=text_of("cpu_model"),
        cores=text_of("cpu_count"),
        memory=_memory_text(fingerprint) or numbers.DASH,
        gpus=_gpu_text(fingerprint.get("gpus")),
        driver=text_of("driver"),
        system=text_of("os"),
        kernel=text_of("kernel"),
    )


def _memory_text(described: Mapping[str, Any]) -> str:
    size = described.get("memory_bytes")
    return numbers.format_quantity(size, "bytes") if isinstance(size, int | float) else ""


def _gpu_text(gpus: object) -> str:
    """Name and memory of each, of alike ones how many there are."""
    if not isinstance(gpus, list):
        return numbers.DASH
    counts: dict[str, int] = {}
    for gpu in gpus:
        if isinstance(gpu, Mapping):
            memory = _memory_text(gpu).replace(" ", TIED)
            name = ", ".join(filter(None, (str(gpu.get("name") or "unknown"), memory)))
            counts[name] = counts.get(name, 0) + 1
    named = [f"{number} {TIMES} {name}" if number > 1 else name for name, number in counts.items()]
    return "; ".join(named) or "none"


def warning_label(code: str) -> str:
    """`processor_contention` -> `Processor contention`."""
    return field_label(code)


def warning_advice(code: str) -> str:
    """What to do about it, for the codes that taint; empty for the others."""
    return f"{upper_first(ADVICE[code][1])}." if code in ADVICE else ""


def warning_cause(code: str) -> str:
    """What happened, for the codes that taint; empty for the others."""
    return ADVICE[code][0] if code in ADVICE else ""


def code_counts_text(counts: Mapping[str, int]) -> str:
    """`processor contention 5, throttling 2`."""
    return ", ".join(f"{code.replace('_', ' ')}{TIED}{number}" for code, number in counts.items())
