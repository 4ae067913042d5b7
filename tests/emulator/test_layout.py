"""The list of fields that Python and C share: read exactly, and refused where it is none of its forms."""

import ctypes

import pytest

from nodeagent.emulator.layout import FIELDS, LAYOUT, LayoutError, read_layout


def test_fields_become_structures_in_their_order() -> None:
    text = FIELDS.read_text() + "\nLIMIT(MORE, 3)\nCHIP_ARRAY(uint64_t, added, MORE) /* last */\n"

    chip = read_layout(text).parts["CHIP"]

    assert (chip._fields_[-1][0], chip.added.size) == ("added", 24)
    assert ctypes.sizeof(chip) >= ctypes.sizeof(LAYOUT.parts["CHIP"]) + 24


@pytest.mark.parametrize(
    "line",
    ["CHIP_FIELD(float, warmth)", "CHIP_ARRAY(char, name, NO_SUCH_LIMIT)", "CHIP_FIELD(char)", "chips 5"],
)
def test_a_line_of_no_known_form_is_named(line: str) -> None:
    with pytest.raises(LayoutError) as refused:
        read_layout(line)

    assert line in str(refused.value)
