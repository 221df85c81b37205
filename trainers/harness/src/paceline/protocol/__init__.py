"""The course of a measurement: its processes one after the other, until there are repetitions enough."""

from .case_runner import Progress, measure_case, run_case

__all__ = ["Progress", "measure_case", "run_case"]
