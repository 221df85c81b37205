"""The two windows of a counting repetition: what is counted in each, in every thread."""

from __future__ import annotations

import gc
import sys
import threading
from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..measured.mark_recorder import MarkRecorder
from ..phase_names import UNATTRIBUTED
from . import call_tree, compilation

if TYPE_CHECKING:
    # It imports torch, which the measured code may not use.
    from .operations import OperationMode, OperationSwitch, ThreadTallies
    from .tally import Tally

# The counters of a phase and the fields of a tally that they are the sums of.
TALLY_FIELDS = {
    "host_device_copies": "copies",
    "copied_bytes": "copied_bytes",
    "scalar_reads": "scalar_reads",
    "synchronisations": "synchronisations",
    "tensors_allocated": "tensors",
    "allocated_bytes": "allocated_bytes",
    "optimizer_steps": "optimizer_steps",
    "unused_gradient_operations": "unused_gradient_operations",
    "model_flops": "model_flops",
}


class CallWindow:
    """The window in which function calls are counted, and all that no dispatch mode may disturb."""

    def __init__(self, marks: MarkRecorder[Any], compilations: compilation.CompilationCounter) -> None:
        self._marks = marks
        self._compilations = compilations
        self.switch = call_tree.ProfileSwitch()
        # A list, since Python gives the number of a thread that ended to another one.
        self.profiles: list[call_tree.ThreadProfile] = []
        self.displaced = False
        self._opened_in: threading.Thread | None = None
        self.counts: dict[str, float] = {}
        self._main: call_tree.ThreadProfile | None = None
        self._callback: call_tree.Callback | None = None

    def profile(self) -> call_tree.ThreadProfile:
        """Return a profile for the calling thread, which must have none yet."""
        profile = call_tree.ThreadProfile(self._marks.current_state(), self.switch)
        self.profiles.append(profile)
        return profile

    def open(self) -> None:
        """Begin to count, in the thread that takes the steps and in those that it started."""
        gc.collect()
        self._main = self.profile()
        self._opened_in = threading.current_thread()
        self._callback = self._main.callback
        compilation.exclude_from_compilation(call_tree.CODES)
        self.counts = dict(self._marks.counts)
        self._compilations.begin()
        sys.setprofile(self._callback)
        self.switch.on = True

    def restore_profile(self) -> None:
        """Take the profile back where the program set one of its own, or ran out of room for a call."""
        # Another thread that takes a step has a profile of its own.
        if self._main is None or threading.current_thread() is not self._opened_in:
            return
        if sys.getprofile() is not self._callback:
            self.displaced = True
            self._main.restart()
            sys.setprofile(self._callback)

    def close(self) -> None:
        """Count no more."""
        self.restore_profile()
        self.switch.on = False
        sys.setprofile(None)
        self._compilations.end()
        before = self.counts
        self.counts = {name: number - before.get(name, 0.0) for name, number in self._marks.counts.items()}


class OperationWindow:
    """The window in which tensor operations are counted, in every thread."""

    def __init__(self, marks: MarkRecorder[Any], calls: call_tree.ProfileSwitch) -> None:
        self._marks = marks
        self._calls = calls
        self._hooks = ExitStack()
        self._opened: tuple[threading.Thread, OperationMode] | None = None
        self.switch: OperationSwitch | None = None
        self.tallies: dict[int, ThreadTallies] = {}

    def open(self) -> bool:
        """Begin to count, if the code uses torch at all."""
        if "torch" not in sys.modules:
            return False
        from . import hooks, operations, unused_gradients

        self.switch = operations.OperationSwitch()
        compilation.exclude_from_compilation((*operations.CODES, *unused_gradients.CODES))
        self._hooks.enter_context(hooks.install_hooks(self._tally_here))
        self._hooks.enter_context(unused_gradients.watch_forward_passes(self._tallies_here, self.switch))
        self._opened = threading.current_thread(), self._mode(self.switch)
        self._opened[1].__enter__()
        self.switch.on = True
        # Other threads can only be reached from within: by the next event of their profile.
        self._calls.on_idle_event = self._enter_thread
        return True

    def close(self) -> None:
        """Count no more; other threads keep their modes, which now only pass operations on."""
        self._calls.on_idle_event = None
        if self.switch is not None:
            self.switch.on = False
        if self._opened is not None and self._opened[0] is threading.current_thread():
            self._opened[1].__exit__(None, None, None)
        self._hooks.close()

    def _mode(self, switch: OperationSwitch) -> OperationMode:
        """Return a mode for the calling thread."""
        from .operations import OperationMode, ThreadTallies

        state = self._marks.current_state()
        tallies = self.tallies.setdefault(threading.get_ident(), ThreadTallies(state))
        return OperationMode(tallies, switch)

    def _enter_thread(self) -> None:
        from torch._C import _len_torch_dispatch_stack

        # A mode of the program's own must stay the innermost: it is left first.
        if self.switch is not None and _len_torch_dispatch_stack() == 0:
            sys.setprofile(None)
            self._mode(self.switch).__enter__()

    def _tallies_here(self) -> ThreadTallies:
        """Return the calling thread's tallies; a thread of autograd's works for the main one."""
        own = self.tallies.get(threading.get_ident()) or self.tallies.get(self._marks.main_ident)
        if own is None:
            from .operations import ThreadTallies

            # The thread that the steps began in takes none of this window's.
            own = self.tallies.setdefault(threading.get_ident(), ThreadTallies(self._marks.current_state()))
        return own

    def _tally_here(self) -> Tally:
        return self._tallies_here().current_tally()

    def per_step(self, steps: int) -> dict[str, dict[str, Any]] | None:
        """Return each phase's tallies per step, or None where the code doesn't use torch."""
        if self.switch is None:
            return None
        by_phase: defaultdict[str, list[Tally]] = defaultdict(list)
        for thread in self.tallies.values():
            for path, tally in thread.by_phase.items():
                by_phase[path or UNATTRIBUTED].append(tally)
        return {path: _sum_tallies(tallies, steps) for path, tallies in by_phase.items()}

    def model_share(self) -> float:
        """Return which part of the main thread's outermost calls of modules is a model's."""
        main = self.tallies.get(self._marks.main_ident)
        if main is None or not main.model_calls:
            return 0.0
        return main.model_calls / (main.model_calls + main.weightless_calls)

    def model_flops(self, steps: int) -> dict[str, Any]:
        """Return the model's FLOPs per step by type, what wasn't counted, and whether code was compiled."""
        tallies = [tally for thread in self.tallies.values() for tally in thread.by_phase.values()]
        types: defaultdict[str, int] = defaultdict(int)
        for tally in tallies:
            for name, number in tally.flops.items():
                types[name] += number
        uncounted = sorted({name for tally in tallies for name in tally.uncounted})
        compiled = False
        if self.switch is not None:
            from .model_flops import UNCOUNTED_LIMIT, runs_compiled_code

            compiled, uncounted = runs_compiled_code(), uncounted[:UNCOUNTED_LIMIT]
        return {
            "types": {name: number / steps for name, number in sorted(types.items())},
            "uncounted": uncounted,
            "compiled": compiled,
        }


def _sum_tallies(tallies: list[Tally], steps: int) -> dict[str, Any]:
    kinds: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for tally in tallies:
        for name, (number, seconds) in tally.operations.items():
            kinds[name][0] += number
            kinds[name][1] += seconds
    return {
        "kinds": {name: number / steps for name, (number, _) in kinds.items()},
        "seconds": {name: seconds / steps for name, (_, seconds) in kinds.items()},
        **{
            name: sum(getattr(tally, field) for tally in tallies) / steps
            for name, field in TALLY_FIELDS.items()
        },
    }
