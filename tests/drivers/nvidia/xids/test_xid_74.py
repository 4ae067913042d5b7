"""Xid 74: what the bits of its registers say of a link, by NVIDIA's workflow, and NVML's number beside."""

from functools import cache
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent import wire
from nodeagent.core.model import Assertion, Signal
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.emulator.gpus import xid_line
from tests.drivers.nvidia.bench import Judge
from tests.shipped import shipped_catalog

PCI: Final = "0000:1b:00"

MEANINGS: Final[dict[str, dict[int, tuple[int, ...]]]] = {
    "harmless": {1: (0, 23, 30)},
    "threshold": {5: (20, 23, 26, 29)},
    "secondary": {1: (1, 20), 4: (16, 17, 18)},
    "parity": {1: (4, 5), 3: (0, 1, 2, 6), 5: (18, 19, 21, 22, 24, 25, 27, 28)},
    "hardware": {1: (8, 9, 12, 16, 17, 24, 28)},
    "signal": {1: (21, 22)},
    "": {1: (27, 29), 3: (13, 16, 17, 18, 19)},
}
"""Register and bits of each, as NVIDIA's workflow lists them; the last matter if they repeat."""
BITS: Final = [
    (meaning, register, bit)
    for meaning, registers in MEANINGS.items()
    for register, bits in registers.items()
    for bit in bits
]


@cache
def matcher() -> Matcher:
    return Matcher(wire.as_patterns(shipped_catalog().patterns))


def line(registers: dict[int, int], link: int = 14) -> str:
    values = ", ".join(f"{registers.get(number, 0):#x}" for number in range(1, 8))
    return xid_line(PCI, 74, f"NVLink: fatal error detected on link {link}({values})")


def code_of(text: str) -> str:
    (match,) = matcher().match([text])
    assert match is not None, text
    return match.code


def meaning_of(registers: dict[int, int]) -> str:
    """Bit by bit: the gravest, and what is mild only where nothing else is set."""
    known = {(register, bit): meaning for meaning, register, bit in BITS}
    bits = {(number, bit) for number, value in registers.items() for bit in range(32) if value >> bit & 1}
    found = {known.get(place, "") for place in bits}
    grave = next((each for each in ("parity", "hardware", "signal") if each in found), None)
    if grave is not None or not found or "" in found:
        return grave or ""
    return next(each for each in ("secondary", "threshold", "harmless") if each in found)


@pytest.mark.parametrize(("meaning", "register", "bit"), BITS)
def test_each_bit_alone_has_the_meaning_that_the_workflow_gives_it(
    meaning: str, register: int, bit: int
) -> None:
    assert code_of(line({register: 1 << bit})) == (f"XID_74.{meaning}" if meaning else "XID_74")


REGISTER: Final = st.one_of(
    st.just(0),
    st.sets(st.integers(0, 31), max_size=4).map(lambda bits: sum(1 << bit for bit in bits)),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=400)
@given(st.dictionaries(st.integers(1, 7), REGISTER))
def test_of_several_bits_the_gravest_counts(registers: dict[int, int]) -> None:
    meaning = meaning_of(registers)
    assert code_of(line(registers)) == (f"XID_74.{meaning}" if meaning else "XID_74")


def test_the_link_and_the_registers_are_evidence() -> None:
    (match,) = matcher().match([line({1: 0x10000}, link=6)])
    assert match is not None
    assert (match.device, match.groups["link"]) == ("0000:1b:00.0", "6")
    assert match.groups["registers"] == "0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"


@pytest.mark.parametrize(
    "text",
    ["NVLink: failed to train link 3 to remote PCI:0000:43:00", "NVLink: fatal error detected on link 2"],
)
def test_a_line_without_registers_is_an_error_of_a_link(text: str) -> None:
    assert code_of(xid_line(PCI, 74, text)) == "XID_74"


@pytest.mark.parametrize("nvml_first", [False, True])
@pytest.mark.parametrize(
    ("registers", "level"),
    [({5: 1 << 20}, "SubHealthFault"), ({1: 1 << 30}, "NotHandleFault"), ({1: 1 << 4}, "RestartNPU")],
)
def test_with_the_number_from_nvml_it_is_as_grave_as_the_line_says(
    judge: Judge, registers: dict[int, int], level: str, nvml_first: bool
) -> None:
    text = line(registers)
    device = matcher().match([text])[0]
    assert device is not None
    number = Signal(source="nvidia", device=device.device, code="XID_74", assertion=Assertion.ONCE)
    if nvml_first:
        judge.take(number)
        judge.kernel_line(text)
    else:
        judge.kernel_line(text)
        judge.take(number)
    assert {condition.level.value for condition in judge.engine.view().conditions} == {level}
