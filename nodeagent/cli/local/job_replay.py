"""``nodeagent job replay FILE``: what is found of hangs and slow ranks in a recorded run. ``nodeagent.job``
judges.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from operator import itemgetter
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.shared.errors import CommandFailure
from nodeagent.cli.shared.options import Output, output_option
from nodeagent.cli.shared.output import write, write_json
from nodeagent.job.codec import CodecError
from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.watch import ReplayFinding, replay
from nodeagent.job.model import HangMode, RunEvent
from nodeagent.job.series import SampleSeries, read
from nodeagent.job.session.values import HangStage, SlowStage
from nodeagent.job.slow.watch import SlowReplayFinding, replay_slow

_READS: Final[Mapping[str, Callable[[str], object]]] = {
    each.name: {"kind": str, "mode": HangMode}.get(each.name, float) for each in fields(HangSettings)
}


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"A setting in place of the file's; may be given again. Keys: {', '.join(_READS)}.",
)
@output_option
def command(file: Path, changes: tuple[str, ...], output: Output) -> None:
    """Show which hangs and slow ranks would have been found in a recorded run, and at which second.

    FILE has JSON lines, as a supervised run keeps them next to the evidence of a hang. The mode is restart,
    unless another one is set: so it shows which findings would have acted.
    Exit status: 0, also if nothing would be found; 1 if FILE cannot be read.
    """
    series = _series(file)
    settings = _settings(series, changes)
    hangs = [(each.t_s, _form(each), _line(each)) for each in replay(series.rows, settings)]
    slow = [
        (each.t_s, _slow_form(each), _slow_line(each)) for each in replay_slow(series.rows, settings.kind)
    ]
    for _, form, line in sorted([*hangs, *slow], key=itemgetter(0)):
        if output == Output.JSON:
            write_json(form)
        else:
            write(line)


def _series(file: Path) -> SampleSeries:
    try:
        with file.open(encoding="utf-8") as lines:
            return read(lines, str(file))
    except OSError as error:
        raise CommandFailure(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandFailure(f"{file}: not JSON lines in UTF-8: {error}") from error
    except CodecError as error:
        raise CommandFailure(str(error)) from error


def _settings(series: SampleSeries, changes: Iterable[str]) -> HangSettings:
    values: dict[str, object] = {
        "hang_time_s": series.header.T_min * 60,
        "period_s": series.header.period_s,
        "kind": series.header.kind,
        "mode": HangMode.RESTART,
    }
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator or key not in _READS:
            raise click.UsageError(f"--set {change}: KEY=VALUE, where KEY is one of {', '.join(_READS)}")
        try:
            values[key] = _READS[key](value)
        except ValueError:
            right = ", ".join(each.value for each in HangMode) if key == "mode" else "a number"
            raise click.UsageError(f"--set {change}: {key}: {right}, not {value!r}") from None
    try:
        return HangSettings(**values)  # type: ignore[arg-type]  # each was read by its key
    except ValueError as error:
        raise click.UsageError(f"{error}; set it with --set") from error


def _form(finding: ReplayFinding) -> dict[str, object]:
    hung = finding.hung
    return {
        "at_s": finding.t_s,
        "what": hung.what.value,
        "acts": hung.acts,
        "since_s": hung.since_s,
        "why": hung.why,
        "who": "",
        "evidence": {},
    }


def _line(finding: ReplayFinding) -> str:
    hung = finding.hung
    only = "" if hung.acts or hung.what is not HangStage.CONFIRMED else " (only reported)"
    return f"{finding.t_s:.0f} s: {hung.what.value}{only}, still for {hung.since_s:.0f} s: {hung.why}"


def _slow_form(finding: SlowReplayFinding) -> dict[str, object]:
    slow = finding.slow
    return {
        "at_s": finding.t_s,
        "what": _SLOW[slow.what].value,
        "acts": False,
        "since_s": float(slow.evidence.get("since_s", 0)),
        "why": slow.why,
        "who": slow.who,
        "evidence": dict(slow.evidence),
    }


def _slow_line(finding: SlowReplayFinding) -> str:
    return f"{finding.t_s:.0f} s: {_SLOW[finding.slow.what].value} (only reported): {finding.slow.why}"


_SLOW: Final = {SlowStage.FOUND: RunEvent.SLOW, SlowStage.ENDED: RunEvent.KEEPS_UP}
"""As a supervisor reports it."""
