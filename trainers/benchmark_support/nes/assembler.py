"""A small assembler for the 6502: labels, constants, expressions of + - * < >, `.byte` and `.org`.

`assemble(source)` returns the bytes from the first to the last address and the table of symbols. A wrong line
raises AssemblyError with its number.
"""

from __future__ import annotations

import re

OPCODES: dict[str, dict[str, int]] = {
    "ADC": {"imm": 0x69, "zp": 0x65, "zpx": 0x75, "abs": 0x6D, "absx": 0x7D, "absy": 0x79, "indy": 0x71},
    "AND": {"imm": 0x29, "zp": 0x25, "zpx": 0x35, "abs": 0x2D, "absx": 0x3D, "absy": 0x39},
    "ASL": {"imp": 0x0A, "zp": 0x06, "zpx": 0x16, "abs": 0x0E},
    "BCC": {"rel": 0x90},
    "BCS": {"rel": 0xB0},
    "BEQ": {"rel": 0xF0},
    "BIT": {"zp": 0x24, "abs": 0x2C},
    "BMI": {"rel": 0x30},
    "BNE": {"rel": 0xD0},
    "BPL": {"rel": 0x10},
    "CLC": {"imp": 0x18},
    "CLD": {"imp": 0xD8},
    "CMP": {"imm": 0xC9, "zp": 0xC5, "zpx": 0xD5, "abs": 0xCD, "absx": 0xDD, "absy": 0xD9},
    "CPX": {"imm": 0xE0, "zp": 0xE4},
    "CPY": {"imm": 0xC0, "zp": 0xC4},
    "DEC": {"zp": 0xC6, "zpx": 0xD6, "abs": 0xCE, "absx": 0xDE},
    "DEX": {"imp": 0xCA},
    "DEY": {"imp": 0x88},
    "EOR": {"imm": 0x49, "zp": 0x45, "zpx": 0x55, "abs": 0x4D, "absx": 0x5D},
    "INC": {"zp": 0xE6, "zpx": 0xF6, "abs": 0xEE, "absx": 0xFE},
    "INX": {"imp": 0xE8},
    "INY": {"imp": 0xC8},
    "JMP": {"abs": 0x4C},
    "JSR": {"abs": 0x20},
    "LDA": {"imm": 0xA9, "zp": 0xA5, "zpx": 0xB5, "abs": 0xAD, "absx": 0xBD, "absy": 0xB9, "indy": 0xB1},
    "LDX": {"imm": 0xA2, "zp": 0xA6, "abs": 0xAE, "absy": 0xBE},
    "LDY": {"imm": 0xA0, "zp": 0xA4, "zpx": 0xB4, "abs": 0xAC, "absx": 0xBC},
    "LSR": {"imp": 0x4A, "zp": 0x46, "zpx": 0x56, "abs": 0x4E},
    "NOP": {"imp": 0xEA},
    "ORA": {"imm": 0x09, "zp": 0x05, "zpx": 0x15, "abs": 0x0D, "absx": 0x1D},
    "PHA": {"imp": 0x48},
    "PLA": {"imp": 0x68},
    "ROL": {"imp": 0x2A, "zp": 0x26, "zpx": 0x36},
    "ROR": {"imp": 0x6A, "zp": 0x66},
    "RTI": {"imp": 0x40},
    "RTS": {"imp": 0x60},
    "SBC": {"imm": 0xE9, "zp": 0xE5, "zpx": 0xF5, "abs": 0xED, "absx": 0xFD},
    "SEC": {"imp": 0x38},
    "SEI": {"imp": 0x78},
    "STA": {"zp": 0x85, "zpx": 0x95, "abs": 0x8D, "absx": 0x9D, "absy": 0x99, "indy": 0x91},
    "STX": {"zp": 0x86, "abs": 0x8E},
    "STY": {"zp": 0x84, "zpx": 0x94, "abs": 0x8C},
    "TAX": {"imp": 0xAA},
    "TAY": {"imp": 0xA8},
    "TXA": {"imp": 0x8A},
    "TXS": {"imp": 0x9A},
    "TYA": {"imp": 0x98},
}

SIZES = {"imp": 1, "imm": 2, "rel": 2, "zp": 2, "zpx": 2, "indy": 2, "abs": 3, "absx": 3, "absy": 3}

LINE = re.compile(r"(?:(?P<label>\w+):)?\s*(?:(?P<word>\.?\w+)(?:\s+(?P<rest>.*))?)?")
CONSTANT = re.compile(r"(\w+)\s*=\s*(.+)")
TERM = re.compile(r"\s*([-+*]?)\s*([<>]?)\s*(\$[0-9A-Fa-f]+|%[01]+|\d+|'.'|\w+)\s*")

Symbols = dict[str, int]


class AssemblyError(ValueError):
    """A line that can't be assembled: its number and why."""


def evaluate(text: str, symbols: Symbols) -> int:
    """The value of an expression, from left to right; raises KeyError for an unknown name."""
    total, position = 0, 0
    while position < len(text):
        match = TERM.match(text, position)
        if match is None:
            raise ValueError(f"{text!r} is no expression")
        sign, half, term = match.groups()
        value = _term(term, symbols)
        value = value & 0xFF if half == "<" else value >> 8 if half == ">" else value
        total = total * value if sign == "*" else total - value if sign == "-" else total + value
        position = match.end()
    return total


def _term(text: str, symbols: Symbols) -> int:
    if text[0] == "$":
        return int(text[1:], 16)
    if text[0] == "%":
        return int(text[1:], 2)
    if text[0] == "'":
        return ord(text[1])
    return int(text) if text.isdigit() else symbols[text]


def _operand(word: str, rest: str, symbols: Symbols) -> tuple[str, str]:
    """The addressing mode and the expression of an operand; what isn't known yet isn't in the zero page."""
    modes = OPCODES[word]
    if not rest:
        return "imp", ""
    if rest.startswith("#"):
        return "imm", rest[1:]
    if "rel" in modes:
        return "rel", rest
    if rest.startswith("("):
        return "indy", rest[1 : rest.index(")")]
    expression, _, index = rest.partition(",")
    index = index.strip().lower()
    try:
        small = evaluate(expression, symbols) < 0x100
    except KeyError:
        small = False
    return ("zp" if small and f"zp{index}" in modes else "abs") + index, expression


def _strip(line: str) -> str:
    return re.sub(r";.*", "", line).strip()


def assemble(source: str) -> tuple[bytes, Symbols]:
    """Assemble in two passes; raises AssemblyError."""
    symbols: Symbols = {}
    _pass(source, symbols, final=False)
    return _pass(source, symbols, final=True), symbols


def _pass(source: str, symbols: Symbols, final: bool) -> bytes:
    memory: dict[int, int] = {}
    address = 0
    for number, line in enumerate(source.splitlines(), 1):
        try:
            for value in _line(_strip(line), symbols, address, final):
                if value is None:
                    address = symbols["."]
                    continue
                memory[address] = value
                address += 1
        except (KeyError, ValueError, IndexError) as error:
            raise AssemblyError(f"line {number}, {line.strip()!r}: {error}") from error
    first = min(memory)
    return bytes(memory.get(at, 0) for at in range(first, max(memory) + 1))


def _line(line: str, symbols: Symbols, address: int, final: bool) -> list[int | None]:
    """The bytes of one line; None says that `.` of the symbols is the new address."""
    if constant := CONSTANT.fullmatch(line):
        symbols[constant[1]] = evaluate(constant[2], symbols)
        return []
    match = LINE.fullmatch(line)
    if match is None:
        raise ValueError("it is neither a label nor an instruction")
    label, word, rest = match["label"], (match["word"] or "").upper(), (match["rest"] or "").strip()
    if label:
        symbols[label] = address
    if word == ".ORG":
        symbols["."] = evaluate(rest, symbols)
        return [None]
    if word in (".BYTE", ".WORD"):
        return _data(word, rest, symbols, final)
    return [] if not word else _instruction(word, rest, symbols, address, final)


def _data(word: str, rest: str, symbols: Symbols, final: bool) -> list[int | None]:
    found: list[int | None] = []
    for part in rest.split(","):
        value = evaluate(part, symbols) if final or word == ".BYTE" else 0
        found += [value & 0xFF] if word == ".BYTE" else [value & 0xFF, value >> 8]
    return found


def _instruction(word: str, rest: str, symbols: Symbols, address: int, final: bool) -> list[int | None]:
    if word not in OPCODES:
        raise ValueError(f"there is no instruction {word}")
    mode, expression = _operand(word, rest, symbols)
    if mode not in OPCODES[word]:
        raise ValueError(f"{word} has no addressing mode {mode}")
    size = SIZES[mode]
    if size == 1 or not final:
        return [OPCODES[word][mode], *[0] * (size - 1)]  # the second pass fills the operand in
    value = evaluate(expression, symbols)
    if mode == "rel":
        value -= address + 2
        if not -128 <= value <= 127:
            raise ValueError(f"the branch reaches over {value} bytes")
    code: list[int | None] = [OPCODES[word][mode], value & 0xFF, value >> 8]
    return code[:size]
