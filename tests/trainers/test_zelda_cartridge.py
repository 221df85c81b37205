"""The assembler of zelda_overworld's cartridge, and the cartridge that it makes."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

from tests.trainers.conftest import ROOT, import_script

ZELDA = ROOT / "trainers" / "zelda_overworld"


@pytest.fixture(scope="module")
def assembler() -> ModuleType:
    return import_module("benchmark_support.nes.assembler")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("LDA #<$1234+1", "a935"),
        ("STA $12,x", "9512"),
        ("STA $0112,x", "9d1201"),
        ("LDA ($10),y", "b110"),
        ("here: JMP here", "4c00c0"),
        ("here: BNE here", "d0fe"),
        ("LSR", "4a"),
        (".byte 1, %11, 'A'", "010341"),
        (".word $C123", "23c1"),
        ("near = $10\n  INC near ; a comment", "e610"),
    ],
)
def test_a_line_becomes_its_code(assembler: ModuleType, line: str, code: str) -> None:
    assert assembler.assemble(f".org $C000\n{line}")[0].hex() == code


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("LDQ #1", "there is no instruction LDQ"),
        ("INX $10", "INX has no addressing mode abs"),
        ("LDA nowhere", "nowhere"),
        (".org $C000\nhere: .org $C100\nBNE here", "the branch reaches over -258 bytes"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(assembler: ModuleType, line: str, why: str) -> None:
    with pytest.raises(assembler.AssemblyError, match=rf"^line \d+, .*{why}"):
        assembler.assemble(line)


def test_the_cartridge_has_the_size_that_its_header_says() -> None:
    content = import_script(ZELDA, "cartridge").cartridge()
    assert content[:6] == b"NES\x1a\x01\x01"
    assert len(content) == 16 + content[4] * 16384 + content[5] * 8192
