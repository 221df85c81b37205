"""A package made by hand, so that environments are built without a network."""

from __future__ import annotations

import zipfile
from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(folder: Path, name: str, code: str, requires: str = "") -> str:
    """Make the wheel; the text of a requirements file that installs it and looks nowhere else."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    record = "".join(f"{path},,\n" for path in (f"{name}.py", f"{info}/METADATA", f"{info}/WHEEL"))
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", code)
        file.writestr(
            f"{info}/METADATA",
            METADATA.format(name=name) + (f"Requires-Dist: {requires}\n" if requires else ""),
        )
        file.writestr(f"{info}/WHEEL", WHEEL)
        file.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return f"--no-index\n--find-links {folder}\n{name}==1.0\n"
