"""Compiled patterns are kept for the next start; whatever becomes of the files, the answers are the same."""

import os
import resource
from pathlib import Path

import pytest

from nodeagent.drivers.kmsg import compiled
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.system.directories import KEPT
from nodeagent.wire import Pattern


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("CACHE_DIRECTORY", str(folder))
    return folder


def matched(word: str) -> list[bool]:
    """What a pattern of the word says of a line that begins with it, and of another."""
    pattern = Pattern(id=word, regex=f"^{word} is lost", code="LOST", device="node")
    return [found is not None for found in Matcher([pattern]).match([f"{word} is lost", "all is well"])]


def test_the_next_start_compiles_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = matched("link")
    monkeypatch.setattr(compiled, "compile_anew", None)

    assert first == matched("link") == [True, False]


def test_other_patterns_are_compiled_anew(cache: Path) -> None:
    assert matched("link") == [True, False]
    assert matched("port") == [True, False]

    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"no database", None], ids=["empty", "foreign", "torn"])
def test_a_damaged_file_is_reported_and_written_again(
    cache: Path, capfd: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    matched("link")
    (file,) = cache.iterdir()
    sound = file.read_bytes()
    file.write_bytes(sound[:-8] if content is None else content)

    assert matched("link") == [True, False]

    assert f"{file} cannot be used, the compiled patterns are made again" in capfd.readouterr().err
    assert list(cache.iterdir()) == [file]
    assert file.read_bytes() == sound


def test_without_the_folder_patterns_are_compiled_and_the_reason_is_reported(
    cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache.rmdir()

    assert matched("link") == [True, False]

    assert "compiled patterns cannot be kept for the next start" in capfd.readouterr().err


def test_without_a_service_manager_nothing_is_kept(
    cache: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CACHE_DIRECTORY")

    assert matched("link") == [True, False]

    assert (list(cache.iterdir()), capfd.readouterr().err) == ([], "")


def test_the_files_used_last_are_kept(cache: Path) -> None:
    words = [f"part{number}" for number in range(KEPT)]
    of = {}
    for age, word in enumerate(words):
        before = set(cache.iterdir())
        matched(word)
        (of[word],) = set(cache.iterdir()) - before
        os.utime(of[word], ns=(age, age))
    matched(words[0])

    matched("another")

    assert [word for word in words if of[word].exists()] == [words[0], *words[2:]]
    assert len(list(cache.iterdir())) == KEPT


def test_a_full_disk_gathers_no_half_written_files(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ: the write fails as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        for _ in range(KEPT + 1):
            assert matched("link") == [True, False]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert len(list(cache.iterdir())) == KEPT
    assert "compiled patterns cannot be kept for the next start" in capsys.readouterr().err


def test_patterns_tried_alone_are_not_kept(cache: Path) -> None:
    too_many_for_hyperscan = "^lost (?:x{1,40000})y"
    patterns = [
        Pattern(id=str(number), regex=regex, code="LOST", device="node")
        for number, regex in enumerate(("^link is lost", too_many_for_hyperscan, "^port is lost"))
    ]

    first, second = Matcher(patterns).match(["lost xxy", "port is lost"])

    assert (first, second) != (None, None)
    assert len(list(cache.iterdir())) == 1
