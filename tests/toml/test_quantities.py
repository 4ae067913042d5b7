"""Durations and sizes as people write them."""

import pytest

from nodeagent.toml.values import parse_duration_ns, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0s", 0),
        ("500ms", 500_000_000),
        ("20s", 20_000_000_000),
        ("3m", 180_000_000_000),
        ("24h", 86_400_000_000_000),
        ("10d", 864_000_000_000_000),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "20", "s", "1.5h", "-1s", "20 s", "20S", "1h30m", "20s\n", "٣s", 20, None]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(
        ValueError, match='a whole number and one of ms, s, m, h, d, in quotes, such as "20s"'
    ):
        parse_duration_ns(text)


@pytest.mark.parametrize(("text", "size"), [("512B", 512), ("64MiB", 64 << 20), ("1GiB", 1 << 30)])
def test_a_size_is_a_number_and_a_binary_unit(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize("text", ["1GB", "1", "1 GiB", "-1B", 1024])
def test_anything_else_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="a whole number and one of B, KiB, MiB, GiB, TiB, in quotes"):
        parse_size_bytes(text)
