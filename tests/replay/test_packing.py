"""A log is read however it is packed and encoded."""

import bz2
import gzip
import io
import lzma
import subprocess
from collections.abc import Callable

import pytest

from nodeagent.replay.reading import PACKING_ERRORS, PackedError, unpacked

TEXT = b"".join(b"[%5d.000000] text\n" % number for number in range(50_000))


def by_program(name: str) -> Callable[[bytes], bytes]:
    return lambda text: subprocess.run([name, "-qc"], input=text, capture_output=True, check=True).stdout


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "not": bytes,
    "gzip": gzip.compress,
    "gzip in pieces, as nvidia-bug-report.sh": lambda text: (
        gzip.compress(text[:99]) + gzip.compress(text[99:])
    ),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": by_program("zstd"),
    "gzip twice": lambda text: gzip.compress(gzip.compress(text)),
    "zstd of gzip": lambda text: by_program("zstd")(gzip.compress(text)),
    "with a mark of UTF-8": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16 of Windows": lambda text: ("\ufeff" + text.decode()).encode("utf-16-le"),
    "UTF-16, great end first": lambda text: ("\ufeff" + text.decode()).encode("utf-16-be"),
    "UTF-16, packed": lambda text: gzip.compress(("\ufeff" + text.decode()).encode("utf-16-le")),
}


def read(packed: bytes) -> bytes:
    with unpacked(io.BytesIO(packed)) as text:
        return b"".join(iter(lambda: text.read(65_536), b""))


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_a_text_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    assert read(pack(TEXT)) == TEXT


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_an_empty_text_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    assert read(pack(b"")) == b""


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd", "zstd of gzip"])
def test_what_is_cut_off_is_told(kind: str) -> None:
    with pytest.raises(PACKING_ERRORS):
        read(PACKED[kind](TEXT)[:-20])


@pytest.mark.parametrize("kind", ["zstd", "gzip", "not"])
def test_only_the_beginning_may_be_read(kind: str) -> None:
    with unpacked(io.BytesIO(PACKED[kind](TEXT * 20))) as text:
        assert text.read(10) == TEXT[:10]


def test_what_no_program_here_unpacks_is_told_with_what_would_help() -> None:
    with pytest.raises(PackedError, match="packed by 7z: unpack it first"):
        read(b"7z\xbc\xaf\x27\x1c" + bytes(100))
