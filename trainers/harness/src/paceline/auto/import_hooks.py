"""Calls an action after the script has imported a module, and imports nothing itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

ImportAction = Callable[[ModuleType], None]


def call_after_import(actions: Mapping[str, ImportAction]) -> None:
    """Call each module's action once, right after its import; at once where it was imported before."""
    waiting = dict(actions)
    for name in list(waiting):
        if name in sys.modules:
            waiting.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _Finder(waiting))


class _Finder:
    """Lets the other finders find the module, and hooks into its loader.

    Of no class of importlib.abc: that imports tempfile, shutil and what they need, in each measured process.
    """

    def __init__(self, waiting: dict[str, ImportAction]) -> None:
        self._waiting = waiting
        # The modules that are being looked for: another one of us asks this one too.
        self._sought: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._waiting or fullname in self._sought:
            return None
        self._sought.add(fullname)
        try:
            for finder in sys.meta_path:
                # An old one may have none: Python passes it over too.
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(fullname, path, target) if find else None
                if spec is not None:
                    self._hook_loader(fullname, spec)
                    return spec
        finally:
            self._sought.discard(fullname)
        return None

    def _hook_loader(self, name: str, spec: ModuleSpec) -> None:
        loader = spec.loader
        if loader is None or not hasattr(loader, "__dict__"):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # The loader is as it was before: resources and tracebacks are looked up through it.
            vars(loader).pop("exec_module", None)
            execute(module)
            action = self._waiting.pop(name, None)
            if action is not None:
                action(module)

        vars(loader)["exec_module"] = exec_module
