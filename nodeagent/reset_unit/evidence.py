"""What is kept of devices before their reset destroys it: a folder for each attempt, bounded in every way.

The daemon gives its last readings and events; what the devices say of themselves, the kernel's last lines
and what the vendor's own tool reports are taken here. What cannot be had is left out and said; no reset
fails for it.
"""

import os
import shutil
from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from nodeagent.core.catalog.codes import root
from nodeagent.drivers.shared.resetting import in_root
from nodeagent.reset_unit.command import CommandFailed, run
from nodeagent.reset_unit.exchange.request import Request
from nodeagent.vendors import RESETS
from nodeagent.wire import Device

MAX_FOLDERS: Final = 20
MAX_FILE_BYTES: Final = 1 << 20
KERNEL_LINES: Final = 1000
MAX_RECORD_BYTES: Final = 8192
REPORT_LIMIT_S: Final = 20.0


def collect(
    folder: Path, request: Request, devices: Iterable[Device], kernel_log: Path, driver_root: str = ""
) -> list[str]:
    """Fill the folder; what could not be had, in words. ``driver_root`` is as in the configuration."""
    try:
        _make(folder)
        (folder / "request.json").write_bytes(msgspec.json.encode(request))
        (folder / "devices.json").write_bytes(msgspec.json.encode(tuple(devices)))
        (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in request.events))
    except OSError as error:
        return [f"no evidence: {error}"]
    missing: list[str] = []
    for what, take in (
        ("kernel lines", partial(_kernel_lines, kernel_log)),
        ("report", partial(_report, request, driver_root)),
    ):
        try:
            take(folder)
        except (OSError, CommandFailed) as error:
            missing.append(f"no {what}: {error}")
    return missing


def _make(folder: Path) -> None:
    """The oldest go, so that there are never more than so many."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = sorted(
        (path for path in folder.parent.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime_ns
    )
    for old in kept[: max(0, len(kept) - MAX_FOLDERS + 1)]:
        shutil.rmtree(old)
    folder.mkdir(exist_ok=True)


def _kernel_lines(kernel_log: Path, folder: Path) -> None:
    """As /dev/kmsg has them, one record at each read; another process may read it as well."""
    lines: deque[bytes] = deque(maxlen=KERNEL_LINES)
    descriptor = os.open(kernel_log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while record := _record(descriptor):
            lines.append(record)
    finally:
        os.close(descriptor)
    (folder / "kernel.log").write_bytes(b"".join(lines)[-MAX_FILE_BYTES:])


def _record(descriptor: int) -> bytes:
    """b"" at the end of what there is now."""
    while True:
        try:
            return os.read(descriptor, MAX_RECORD_BYTES)
        except BlockingIOError:
            return b""
        except BrokenPipeError:
            # Overwritten before it was read; the next one is there.
            continue


def _report(request: Request, driver_root: str, folder: Path) -> None:
    traits = RESETS.get(request.vendor)
    if traits is None:
        return
    command = in_root(driver_root, traits.report)
    if shutil.which(command[0]) is None:
        return
    if unfit := traits.no_report_for & set(map(root, request.reasons)):
        raise CommandFailed(f"{' '.join(command)} may hang with {', '.join(sorted(unfit))}")
    report = folder / "report.txt"
    try:
        with report.open("w+b") as output:
            run(command, REPORT_LIMIT_S, output=output)
    finally:
        os.truncate(report, min(report.stat().st_size, MAX_FILE_BYTES))
