"""Words for the fields of event codes that are not sound, and what is said of them."""

import pytest

from tests.tables.conftest import Refusals


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("decode = 7", "t.toml:1: decode: 7 is given where the tables parts and sensors are needed"),
        ("[decode]\npart = 1", 't.toml:2: decode.part: unknown key; the nearest known is "parts"'),
        ("[decode]\nparts = 1", "t.toml:2: decode.parts: 1 is given where a table is needed"),
        (
            '[decode.parts]\n07f = "HBM"',
            (
                "t.toml:2: decode.parts.07f: not a number of parts: it must be"
                " three hexadecimal digits up to 7FF, in capitals"
            ),
        ),
        ("[decode.parts]\n070 = 1", "t.toml:2: decode.parts.070.name: 1: must be a short text in quotes"),
        (
            "[decode.sensors.C0]\nstates = []",
            "t.toml:1: decode.sensors.C0.name: missing; it must be a short text in quotes",
        ),
    ],
)
def test_words_of_decoded_codes_that_are_not_sound(refusals: Refusals, text: str, reason: str) -> None:
    assert reason in refusals(text)
