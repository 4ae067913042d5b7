"""``nodeagent explain CODE...``: from the daemon's tables in force, else from those on disk."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from nodeagent.cli.ask.reading import asked, patience_s, timeout_option
from nodeagent.cli.shared import completion, json_forms
from nodeagent.cli.shared.errors import EXIT_CONFIG, EXIT_FAILED, CommandFailure
from nodeagent.cli.shared.options import Output, output_option, query_socket, read_config, socket_option
from nodeagent.cli.shared.output import note, write, write_field, write_json, write_prose
from nodeagent.cli.shared.texts import enum_text
from nodeagent.core.catalog.levels import JOB_LEVELS
from nodeagent.core.catalog.settings import Mode
from nodeagent.core.model import CHIP_KINDS, Handling, Recovery
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.tables.levels import SOURCE_NAMES

Explain = Callable[[Sequence[str]], list[pb.CodeExplanation]]

_CODES_AT_ONCE = 100
"""As many as the daemon answers at a time."""

_CLOSED_BY = {
    "recover": "the driver reports its end",
    "reset": "a reset that was seen to help",
    "reboot": "a reboot after which it is gone",
    "job_end": "the end of the processes that held the device",
    "operator": "a person",
}


@click.command("explain")
@click.argument("codes", metavar="CODE...", nargs=-1, required=True, shell_complete=completion.codes)
@timeout_option
@socket_option
@output_option
def command(
    codes: tuple[str, ...],
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Explain what fault codes mean, how they are handled, and what to do.

    Hexadecimal codes compare by value. A number that several codes begin with, such as 0x00f103b0, means all
    of them. Without a daemon the configured tables are read. Exit status 1 where a code is in no table.
    """
    from nodeagent.cli.shared import connection

    try:
        explanations = _explained(
            codes, partial(_ask, query_socket(socket, config_path), patience_s(timeout_s))
        )
    except connection.Unreachable:
        note("nodeagent: no daemon answers; these are the tables on disk")
        explanations = _explained(codes, partial(_look_up, config_path))
    for number, explanation in enumerate(explanations):
        if output == Output.JSON:
            write_json(json_forms.form(explanation))
        else:
            if number:
                write()
            _write(explanation)
    if not all(explanation.known for explanation in explanations):
        raise SystemExit(EXIT_FAILED)


def _explained(codes: Sequence[str], explain: Explain) -> list[pb.CodeExplanation]:
    """Of each code, in their order; a number is replaced by all codes that begin with it."""
    answers = explain(codes)
    numbered = [code for answer in answers for code in answer.same_number]
    rows = {answer.code: answer for answer in explain(numbered)} if numbered else {}
    return [
        each
        for answer in answers
        for each in [rows[code] for code in answer.same_number if code in rows] or [answer]
    ]


def _ask(socket: Path, limit_s: float, codes: Sequence[str]) -> list[pb.CodeExplanation]:
    """Raises ``connection.Unreachable``."""
    explanations = list[pb.CodeExplanation]()
    with asked(socket, limit_s) as daemon:
        for begin in range(0, len(codes), _CODES_AT_ONCE):
            request = pb.ExplainCodeRequest(codes=codes[begin : begin + _CODES_AT_ONCE])
            explanations += daemon.call(request).explanations
    return explanations


def _look_up(config_path: Path | None, codes: Sequence[str]) -> list[pb.CodeExplanation]:
    from nodeagent.api.faults.explain import explanations
    from nodeagent.cli.shared.options import configured_folders
    from nodeagent.core.catalog.lookup import Lookup
    from nodeagent.tables.load import TablesError, load_catalog

    config = read_config(config_path)
    try:
        catalog = load_catalog(configured_folders(config), config.settings()).catalog
    except TablesError as refused:
        raise CommandFailure(str(refused), EXIT_CONFIG) from refused
    return explanations(Lookup(catalog), codes)


def _write(explained: pb.CodeExplanation) -> None:
    if not explained.known:
        write(f"{explained.code}: in no table{', ' if explained.name else ''}{explained.name}")
        if explained.nearest:
            write_field("near     ", ", ".join(explained.nearest))
        return
    induced = ", of the application: the device is not blamed" if explained.user_induced else ""
    family = f" (as {explained.family}: it has no row of its own)" if explained.family else ""
    write(f"{explained.code}: {explained.name}{family}")
    write_field("level    ", f"{enum_text(enums.LEVEL_OF, explained.level)}{induced}")
    if explained.level_source:
        write_field("level by ", SOURCE_NAMES.get(explained.level_source, explained.level_source))
    if explained.level_reason:
        write_prose("why      ", explained.level_reason)
    affects = "" if explained.affects == "self" else f", affects {explained.affects.replace('_', ' ')}"
    write_field("kind     ", f"{enum_text(enums.KIND_OF, explained.kind)}, {explained.vendor}{affects}")
    write_prose("means    ", explained.description)
    write_prose("do       ", explained.action)
    of_a_job = explained.user_induced and enums.KIND_OF.get(explained.kind) in CHIP_KINDS
    again = ", from the third in 24h RESCHEDULE" if of_a_job else ""
    for mode in explained.modes:
        here = " (in force)" if mode.in_force else ""
        write_field("mode     ", f"{mode.mode}{here}: {_phases(mode)}{again}")
    _write_training(explained)
    if explained.recovery == Recovery.VENDOR and enums.LEVEL_OF.get(explained.level) in JOB_LEVELS:
        write_field("driver   ", "where it reports that the chip needs no recovery: ALLOW, RESTART_JOB")
    write_field(
        "closed by", ", or ".join(_CLOSED_BY.get(each, f"{each} of quiet") for each in explained.clear_on)
    )
    for rule in explained.rule_details:
        write_field("rule     ", f"{rule.id} ({rule.kind}): {rule.text} [{rule.file}]")
    if not explained.rule_details:
        write_field("rule     ", "none")
    write_field("table    ", explained.file)


def _write_training(explained: pb.CodeExplanation) -> None:
    """Training makes no requests that could be made again."""
    with_requests = [
        mode.mode for mode in explained.modes if any(_is_of_requests(each) for each in mode.phases)
    ]
    if with_requests:
        at_once = ", in mode rescheduling what follows it" if Mode.RESCHEDULING in with_requests else ""
        write_field("training ", f"in place of RERUN_REQUEST in mode graceful RESTART_JOB{at_once}, at once")


def _is_of_requests(phase: pb.Phase) -> bool:
    return enums.HANDLING_OF.get(phase.handling) is Handling.RERUN_REQUEST


def _phases(mode: pb.ModePhases) -> str:
    phases = []
    for phase in mode.phases:
        lasts = f" for {phase.duration.ToNanoseconds() / 1e9:g}s" if phase.HasField("duration") else ""
        verdict, handling = (
            enum_text(enums.VERDICT_OF, phase.verdict),
            enum_text(enums.HANDLING_OF, phase.handling),
        )
        phases.append(f"{verdict}, {handling}{lasts}")
    return "; then ".join(phases)
