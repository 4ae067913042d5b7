"""``nodeagent scan``: whether the node is good, in the exit status, for programs that ask.

For node-problem-detector's custom plug-ins, and for a site's own script. It is not for Slurm's
HealthCheckProgram: slurmd looks at nothing but its time-out. ``nodeagent slurm health`` is made for that.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.ask.reading import asked, patience_s, timeout_option
from nodeagent.cli.shared import connection, json_forms
from nodeagent.cli.shared.connection import take_snapshot
from nodeagent.cli.shared.errors import EXIT_NOT_ALLOWED, CommandFailure
from nodeagent.cli.shared.options import Output, output_option, query_socket, read_config, socket_option
from nodeagent.cli.shared.output import note, write, write_json
from nodeagent.cli.shared.texts import counted, enum_text, noun
from nodeagent.core.model import NODE
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

GOOD: Final = 0
FAULTY: Final = 1
UNKNOWN: Final = 2

_WORDS: Final = {GOOD: "good", FAULTY: "faulty", UNKNOWN: "unknown"}
_FAULTY: Final = (types_pb2.VERDICT_ISOLATE, types_pb2.VERDICT_NO_NEW_JOBS)


@dataclass(frozen=True, slots=True)
class ScanResult:
    """``by`` is "daemon", or "probe" without one. ``unread`` is what could not be read and is shown on no
    device.
    """

    by: str
    devices: Sequence[types_pb2.Device]
    unread: Sequence[str] = ()

    @property
    def reasons(self) -> list[str]:
        """Why it is unknown: what could not be read, and the sources that do not observe the node."""
        node = next((device for device in self.devices if device.name == NODE), None)
        if node is None or node.verdict == types_pb2.VERDICT_ALLOW:
            return [*self.unread]
        sources = (each.text for each in node.reasons if each.kind == types_pb2.REASON_KIND_SOURCE)
        return [*self.unread, *sources]

    @property
    def faulty(self) -> list[types_pb2.Device]:
        return [device for device in self.devices if device.verdict in _FAULTY]

    @property
    def status(self) -> int:
        if self.faulty:
            return FAULTY
        unknown = any(device.verdict == types_pb2.VERDICT_UNKNOWN for device in self.devices)
        return UNKNOWN if unknown or self.unread or not self.devices else GOOD


@click.command("scan")
@timeout_option
@socket_option
@output_option
def command(timeout_s: float | None, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Report by the exit status whether this node is good: 0 good, 1 faulty, 2 unknown.

    A device, or the node, is faulty if it may get no new work. If no daemon answers, its store and the
    sources are read once without it; a device that was isolated stays isolated. scan waits up to a minute for
    a driver that is slow to open. Without permission to ask the daemon the exit status is 2.
    """
    try:
        answer = look(socket, config_path, timeout_s)
    except CommandFailure as failure:
        answer = ScanResult("nobody", (), failure.message.splitlines())
    if output == Output.JSON:
        write_json(
            {
                "result": _WORDS[answer.status],
                "by": answer.by,
                "faulty": [json_forms.form(each) for each in answer.faulty],
                "devices": [json_forms.form(each) for each in answer.devices],
                "reasons": list(answer.reasons),
            }
        )
    else:
        _write(answer)
    raise SystemExit(answer.status)


def look(socket: Path | None, config_path: Path | None, timeout_s: float | None = None) -> ScanResult:
    """Without a daemon the store and the sources are read. Raises ``CommandFailure``."""
    try:
        limit_s = patience_s(timeout_s)
        with asked(query_socket(socket, config_path), limit_s) as daemon:
            return ScanResult("daemon", take_snapshot(daemon, limit_s).snapshot.devices)
    except connection.Unreachable as error:
        if error.exit_code == EXIT_NOT_ALLOWED:
            raise
        return _look_without_daemon(config_path)


def _look_without_daemon(config_path: Path | None) -> ScanResult:
    from nodeagent.cli.ask.self_check import look
    from nodeagent.cli.shared.options import configured_folders
    from nodeagent.tables.load import TablesError

    config = read_config(config_path)
    logging.getLogger("nodeagent").addHandler(logging.NullHandler())  # all of it is in the answer
    try:
        findings = look(config, configured_folders(config), note)
    except TablesError as refused:
        raise CommandFailure(str(refused)) from refused
    return ScanResult("probe", findings.devices, findings.unread)


def _write(answer: ScanResult) -> None:
    for device in answer.faulty:
        why = "; ".join(dict.fromkeys(f"{reason.code} {reason.text}".strip() for reason in device.reasons))
        write(f"faulty: {device.name} {enum_text(enums.VERDICT_OF, device.verdict)}: {why}")
    for reason in (*answer.reasons, *_unknown(answer)):
        write(f"unknown: {reason}")
    if answer.status == GOOD:
        write(f"good: {_all_of(answer.devices)}")
    elif not answer.devices and not answer.reasons:
        write("unknown: no device was found")


def _unknown(answer: ScanResult) -> Iterator[str]:
    """Each unknown device with the reasons that are not shown already. All reasons of the node are."""
    shown = answer.reasons
    for device in answer.devices:
        if device.verdict == types_pb2.VERDICT_UNKNOWN and device.name != NODE:
            texts = [reason.text for reason in device.reasons if reason.text not in shown]
            yield f"{device.name}: {'; '.join(texts) or 'unknown for that reason'}"


def _all_of(devices: Sequence[types_pb2.Device]) -> str:
    """``8 GPUs and the node``."""
    chips = Counter(noun(device) for device in devices if device.kind == types_pb2.KIND_CHIP)
    others = len(devices) - chips.total() - 1
    parts = [counted(number, what) for what, number in chips.items()]
    parts += [counted(others, "other device")] if others > 0 else []
    return " and ".join((", ".join(parts), "the node")) if parts else "the node"
