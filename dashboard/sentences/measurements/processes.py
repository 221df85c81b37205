"""What is said of a training's processes: which rank is waited for, which worker starves the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.sentences.formatting import numbers
from dashboard.training_processes.loaders import LOOP, WORKERS, Loader
from dashboard.training_processes.ranks import Ranks

# The document's name for what no phase covers.
UNATTRIBUTED = "(unattributed)"
# Why it isn't known which rank is waited for, by the document's codes.
REASONS = {
    "no_collectives": "not every rank took a collective in the measured window",
    "different_numbers": "the ranks took different numbers of collectives, so that they can't be matched",
    "different_kinds": "the ranks took different collectives, so that they can't be matched",
    "too_few_collectives": "too few collectives were taken in the measured window",
    "device_collectives": "collectives run on the devices, where the hosts don't see who comes last",
    "none_late": "no rank comes later than the others by what is known",
    "several_late": "several ranks come late, and no single one is waited for",
    "repetitions_disagree": "the repetitions name different ranks",
}
STEP_KINDS = {
    "optimizer": "optimizer's step",
    "batch": "batch of data",
    "environment": "environment's step",
}


def describe_slowest(ranks: Ranks) -> str:
    """`Rank 2 is waited for: it comes last to 97 % of the collectives, ...`, or why that isn't known."""
    slowest = None if ranks.slowest is None else ranks.find_rank(ranks.slowest)
    if slowest is None:
        reason = REASONS.get(ranks.reason, "the document doesn't say why")
        return f"Which rank is waited for isn't known: {reason}."
    facts = []
    if slowest.last_share is not None:
        facts.append(f"it comes last to {numbers.format_share(slowest.last_share)} of the collectives")
    if slowest.late is not None:
        facts.append(f"{numbers.format_seconds(slowest.late)} a step after the others")
    text = f"Rank {slowest.number} is waited for: {', '.join(facts)}." if facts else ""
    text = text or f"Rank {slowest.number} is waited for."
    if ranks.phase and ranks.excess is not None:
        where = "What it does outside all phases" if ranks.phase == UNATTRIBUTED else f"Its {ranks.phase}"
        text += f" {where} takes {numbers.format_seconds(ranks.excess)} longer than that of the others."
    return f"{text} {describe_waiting(ranks)}".strip()


def describe_waiting(ranks: Ranks) -> str:
    """`Rank 0 waits 18 % of its time for it, most of it in all_reduce.`; empty where no wait is known."""
    waiting = ranks.longest_waiting
    if waiting is None or waiting.waits is None or waiting.step_time <= 0:
        return ""
    share = numbers.format_share(waiting.waits / waiting.step_time)
    where = f", most of it in {waiting.main_collective}" if waiting.main_collective else ""
    return f"Rank {waiting.number} waits {share} of its time{where}."


def describe_loader(loader: Loader) -> str:
    """Who starves whom, and which worker takes longest."""
    parts = []
    if loader.starved == LOOP:
        waits = numbers.format_seconds(loader.wait_time)
        parts.append(f"The loop starves: it waits {waits} a step for batches.")
    elif loader.starved == WORKERS:
        parts.append("The workers wait for the loop, which takes longer than they do.")
        if loader.fetch_time is not None and loader.wait_time > loader.batches * loader.fetch_time:
            receives = numbers.format_seconds(loader.wait_time)
            parts.append(f"Receiving batches that are ready takes it {receives} a step.")
    else:
        parts.append(f"The loop waits {numbers.format_seconds(loader.wait_time)} a step for batches.")
    worker = None if loader.slowest is None else loader.find_worker(loader.slowest)
    if worker is not None:
        others = [other.fetch_time for other in loader.workers if other.number != worker.number]
        beside = f", the others {numbers.format_seconds(sum(others) / len(others))}" if others else ""
        takes = numbers.format_seconds(worker.fetch_time)
        parts.append(f"Worker {worker.number} takes {takes} for a batch{beside}.")
    return " ".join(parts)


def describe_slow_process(found: Mapping[str, Any]) -> str:
    """`rank 2 comes later: its augment takes 40 ms longer; the others wait in all_reduce`."""
    match found["code"]:
        case "rank":
            return describe_slow_rank(found)
        case "rank memory":
            more = numbers.format_quantity(found["more"], "bytes")
            return f"of {found['ranks']} ranks only rank {found['rank']} holds more, by {more}"
        case "loader":
            return describe_slow_loader(found)
    return str(found["code"])


def describe_slow_rank(found: Mapping[str, Any]) -> str:
    what, longer = found["phase"] or "work", found["phase_longer"] or found["longer"]
    text = f"rank {found['rank']} comes later: its {what} takes {numbers.format_seconds(longer)} longer"
    others = "the others wait" if found["ranks"] > 2 else "the other waits"
    where = f" in {found['collective']}" if found["collective"] else " for it"
    return f"{text}; {others}{where}" if found["waits"] else text


def describe_slow_loader(found: Mapping[str, Any]) -> str:
    """`worker 1 of the DataLoader of Tiles takes 12 ms for a batch instead of 3 ms; the loop waits ...`."""
    of_rank = "" if found["rank"] is None else f" of rank {found['rank']}"
    loader = f"the DataLoader of {found['dataset']}{of_rank}"
    after, before = found["fetch_after"], found["fetch_before"]
    waits = numbers.format_seconds(found["waits_after"] - found["waits_before"])
    loop = f"the loop waits {waits} longer a step"
    if after is None or before is None or after <= before:
        return f"{loop} for {loader}"
    who = f"a worker of {loader}" if found["worker"] is None else f"worker {found['worker']} of {loader}"
    new, old = numbers.format_seconds(after), numbers.format_seconds(before)
    return f"{who} takes {new} for a batch instead of {old}; {loop}"


def describe_step(step: Mapping[str, Any] | None) -> str:
    """`ends with the optimizer's step of Adam, which stepped first`; empty where the document doesn't say."""
    if not step:
        return ""
    if step["kind"] == "mark":
        return "is one pass through paceline.steps"
    succeeded = step.get("succeeded")
    other = "another " if succeeded == step["owner"] else ""
    first = f"which took over from {other}{succeeded}" if succeeded else "which stepped first"
    why = "as the manifest chose" if step["chosen"] else first
    owner = f"ends with the {STEP_KINDS.get(step['kind'], step['kind'])} of {step['owner']}, {why}"
    passes = step.get("passes", {})
    held = [
        f"{numbers.format_number(passes[name])} {name}"
        for name in ("forward", "backward")
        if passes.get(name, 1) != 1
    ]
    return f"{owner}; it holds {' and '.join(held)} passes" if held else owner
