"""The file of an archive: whole or not there, bounded, never in place of another."""

import gzip
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.cli.bundle import archive
from nodeagent.cli.bundle.collecting import Collected, Part
from nodeagent.cli.bundle.sources import Absent, open_regular

AT = datetime(2026, 11, 28, tzinfo=UTC)
MIB = 1 << 20


def collected(file: str, content: bytes, error: str = "") -> Collected:
    part = Part(item="test", file=file, source=file, run=lambda: 0)
    return Collected(part=part, content=content, error=error)


def files_of(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as opened:
        return {each.name: opened.extractfile(each).read() for each in opened}  # type: ignore[union-attr]


def test_the_manifest_names_what_is_there_what_is_not_and_why() -> None:
    listed = list(
        archive.entries(
            [collected("a.txt", b"password=hidden1"), collected("b.txt", b"", "exit status 1")], (), 2 * MIB
        )
    )
    described = archive.manifest(
        {"node": "n"}, listed, [Absent("ascend", "npu-smi is not installed")], ["jobs"]
    )
    shown = json.loads(described)
    assert [(each["file"], each["error"], each["redactions"]) for each in shown["files"]] == [
        ("a.txt", "", 1),
        ("", "exit status 1", 0),
    ]
    assert (shown["absent"], shown["left_out"]) == (
        [{"item": "ascend", "reason": "npu-smi is not installed"}],
        ["jobs"],
    )
    assert files_of(archive.packed("n", described, listed, AT)) == {
        "n/manifest.json": described,
        "n/a.txt": b"password=[redacted]",
    }
    assert archive.packed("n", described, listed, AT) == archive.packed("n", described, listed, AT)


def test_what_does_not_fit_is_cut_and_that_is_named() -> None:
    sources = [collected("a", os.urandom(MIB).replace(b"\0", b"a")), collected("b", b"b" * MIB)]
    first, second = archive.entries(sources, (), 3 * MIB // 2)
    assert (first.error, second.error, second.truncated) == ("", "cut to fit --max-size", True)
    assert len(archive.packed("n", b"", [first, second], AT)) < 3 * MIB // 2


def test_a_binary_text_is_left_out() -> None:
    (entry,) = archive.entries([collected("a", b"\0\1")], (), MIB)
    assert (entry.content, entry.error) == (b"", "binary: secrets cannot be found in it")


def test_it_is_for_its_owner_alone_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    archive.write(path, b"first")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        archive.write(path, b"second")
    assert (path.read_bytes(), list(tmp_path.glob("*.gz*"))) == (b"first", [path])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.root
def test_on_a_full_disk_nothing_is_left(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        archive.write(small_disk / "a.tar.gz", bytes(MIB))
    assert list(small_disk.iterdir()) == []


def test_a_link_is_followed_only_within_its_folder(tmp_path: Path) -> None:
    """Kubernetes mounts a ConfigMap as links within one folder."""
    (tmp_path / "secret").write_text("root's")
    folder = tmp_path / "etc"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "a.toml").write_text("a")
    (folder / "a.toml").symlink_to("data/a.toml")
    (folder / "b.toml").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    descriptor = open_regular(folder / "a.toml")
    assert os.read(descriptor, 9) == b"a"
    os.close(descriptor)
    with pytest.raises(OSError, match="is a symbolic link out of its folder"):
        open_regular(folder / "b.toml")
    with pytest.raises(OSError, match="is not a regular file"):
        open_regular(folder / "pipe")
