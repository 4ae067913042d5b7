"""``nodeagent scan``: one answer, in the exit status, for health check programs.

Fit for Slurm's HealthCheckProgram and for node-problem-detector's custom plug-ins.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from nodeagent.cli import door, forms, snapshot
from nodeagent.cli.failure import Failure
from nodeagent.cli.lines import word
from nodeagent.cli.options import Output, output_option, public_socket, read_config, socket_option
from nodeagent.cli.output import write, write_json
from nodeagent.outlets import messages
from nodeagent.outlets.pb import types_pb2

GOOD: Final = 0
FAULTY: Final = 1
COULD_NOT_TELL: Final = 2

_WORDS: Final = {GOOD: "good", FAULTY: "faulty", COULD_NOT_TELL: "unknown"}
_FAULTY: Final = (types_pb2.VERDICT_ISOLATE, types_pb2.VERDICT_NO_NEW_JOBS)


@dataclass(frozen=True, slots=True)
class Answer:
    """``by`` says who looked: the daemon, or a probe of our own. ``reasons`` say why it could not tell."""

    by: str
    devices: Sequence[types_pb2.Device]
    reasons: Sequence[str]

    @property
    def faulty(self) -> list[types_pb2.Device]:
        return [device for device in self.devices if device.verdict in _FAULTY]

    @property
    def status(self) -> int:
        if self.faulty:
            return FAULTY
        unknown = any(device.verdict == types_pb2.VERDICT_UNKNOWN for device in self.devices)
        return COULD_NOT_TELL if unknown or self.reasons or not self.devices else GOOD


@click.command("scan")
@socket_option
@output_option
def command(socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Answer with the exit status whether this node is good: 0 good, 1 faulty, 2 could not tell.

    Faulty is a device, or the node, that may get no new work. The daemon is asked; where none answers, the
    sources are read once without it.
    """
    try:
        answer = _look(socket, config_path)
    except Failure as failure:
        answer = Answer("nobody", (), failure.message.splitlines())
    if output == Output.JSON:
        write_json(
            {
                "result": _WORDS[answer.status],
                "by": answer.by,
                "faulty": [forms.device(each) for each in answer.faulty],
                "devices": [forms.device(each) for each in answer.devices],
                "reasons": list(answer.reasons),
            }
        )
    else:
        _write(answer)
    raise SystemExit(answer.status)


def _look(socket: Path | None, config_path: Path | None) -> Answer:
    try:
        with door.opened(public_socket(socket, config_path)) as daemon:
            told = snapshot.take(daemon).snapshot
            return Answer("daemon", told.devices, [*_unread(told.sources)])
    except door.Unreachable:
        return _look_without_daemon(config_path)


def _unread(sources: Iterable[types_pb2.Source]) -> Iterator[str]:
    """Of sources that are lost as a whole: what they would show was maybe never seen."""
    for source in sources:
        if not source.observing and not source.device_id:
            yield f"{source.name}: {source.reason}"


def _look_without_daemon(config_path: Path | None) -> Answer:
    from nodeagent.cli.folders import configured
    from nodeagent.cli.self_check import look
    from nodeagent.tables.load import TablesError

    config = read_config(config_path)
    try:
        findings = look(config, configured(config))
    except TablesError as refused:
        raise Failure(str(refused)) from refused
    return Answer("probe", findings.devices, findings.unread)


def _write(answer: Answer) -> None:
    for device in answer.faulty:
        why = "; ".join(dict.fromkeys(f"{reason.code} {reason.text}".strip() for reason in device.reasons))
        write(f"faulty: {device.name} {word(messages.VERDICT_OF, device.verdict)}: {why}")
    if answer.status == COULD_NOT_TELL:
        unknown = [each for each in answer.devices if each.verdict == types_pb2.VERDICT_UNKNOWN]
        reasons = [f"{each.name}: {'; '.join(reason.text for reason in each.reasons)}" for each in unknown]
        for reason in (*answer.reasons, *reasons) or ("no device is known",):
            write(f"could not tell: {reason}")
    elif answer.status == GOOD:
        write(f"good: {len(answer.devices)} devices")
