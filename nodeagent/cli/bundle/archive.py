"""The archive of what was collected: its manifest, its bounds, and the file.

``tar.gz``, readable by its owner alone. It appears whole under its name or not at all, and replaces no file.
Equal content gives equal bytes.
"""

import errno
import gzip
import io
import json
import os
import tarfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from nodeagent.cli.bundle.collecting import Collected
from nodeagent.cli.bundle.redaction import MARK, redacted
from nodeagent.cli.bundle.sources import Absent

MANIFEST: Final = "manifest.json"
FOR_MANIFEST_BYTES: Final = 256 << 10
"""Room within the greatest size for the manifest."""

_PER_FILE_BYTES: Final = 1024
"""What tar adds to a file: its head, and what fills its last block up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile:
    """A file of the archive, without secrets; ``redactions``: how often something was replaced in it."""

    collected: Collected
    content: bytes
    redactions: int
    error: str
    truncated: bool

    def form(self) -> dict[str, Any]:
        """Its entry in the manifest."""
        part = self.collected.part
        return {
            "item": part.item,
            "file": part.file if self.content or not self.error else "",
            "source": part.source,
            "size_bytes": len(self.content),
            "truncated": self.truncated,
            "redactions": self.redactions,
            "seconds": round(self.collected.seconds, 2),
            "error": self.error,
            "remarks": self.collected.remarks,
        }


def entries(
    collected: Sequence[Collected], secrets: Collection[str], max_size_bytes: int
) -> Iterator[ArchivedFile]:
    """One for each, in their order, without secrets. What does not fit any more is cut."""
    room = max_size_bytes - FOR_MANIFEST_BYTES
    for each in collected:
        entry = _entry(each, secrets)
        room -= _PER_FILE_BYTES
        if len(entry.content) > room:
            kept = entry.content[: max(0, room)]
            entry = replace(entry, content=kept, truncated=True, error=entry.error or "cut to fit --max-size")
        room -= len(entry.content)
        yield entry


def _entry(collected: Collected, secrets: Collection[str]) -> ArchivedFile:
    safe = replace(
        collected,
        part=replace(collected.part, source=redacted(collected.part.source, secrets)),
        remarks=redacted(collected.remarks, secrets),
    )
    error = redacted(collected.error, secrets)
    content = collected.content
    if b"\0" in content:
        content, error = b"", error or "binary: secrets cannot be found in it"
    text = content.decode(errors="surrogateescape")
    clean = redacted(text, secrets)
    return ArchivedFile(
        collected=safe,
        content=clean.encode(errors="surrogateescape"),
        redactions=clean.count(MARK) - text.count(MARK),
        error=error,
        truncated=collected.truncated,
    )


def manifest(
    head: dict[str, Any], listed: Sequence[ArchivedFile], absent: Sequence[Absent], left_out: Sequence[str]
) -> bytes:
    """What the archive holds, what it lacks, and why."""
    shown = {
        **head,
        "files": [each.form() for each in listed],
        "absent": [{"item": each.item, "reason": each.reason} for each in absent],
        "left_out": list(left_out),
    }
    return json.dumps(shown, indent=1, ensure_ascii=True).encode() + b"\n"


def packed(name: str, described: bytes, listed: Sequence[ArchivedFile], at: datetime) -> bytes:
    """The bytes of the archive; all is in a folder of this name."""
    written = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=written, mtime=int(at.timestamp())) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        files = [
            (each.collected.part.file, each.content) for each in listed if each.content or not each.error
        ]
        for file, content in ((MANIFEST, described), *files):
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size, member.mode, member.mtime = len(content), 0o600, int(at.timestamp())
            member.uname = member.gname = "root"
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def check_place(path: Path) -> None:
    """Raises ``OSError`` where the archive could not be written."""
    if os.path.lexists(path):
        raise FileExistsError(f"{path} is there already, and is not replaced")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path.parent} is no folder")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path.parent} is not open to you for writing")


def write(path: Path, content: bytes) -> None:
    """The file gets its name when all of it is on the disk. Raises ``OSError``, and leaves nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        _name(partial, path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _name(partial: Path, path: Path) -> None:
    """A link, unlike a rename, replaces nothing; a file system such as FAT has none."""
    try:
        os.link(partial, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        check_place(path)
        partial.rename(path)
