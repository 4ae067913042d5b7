"""``nodeagent report``: faults that another system found, one by options or many from a file."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import note, write, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb

_OPERATOR: Final = "operator"
"""The sender of what a person reports."""

_PUBLIC_LENGTH: Final = 9
_TYPE_OF_DIGIT: Final = {"0": "npu", "1": "node", "2": "network", "3": "storage"}
"""The type of a fault, by the first digit of its public code."""

_MOST_BYTES: Final = 1 << 20


@click.command("report")
@click.argument("code", required=False, shell_complete=completion.codes)
@click.argument("devices", nargs=-1, shell_complete=completion.devices)
@click.option("--file", metavar="PATH", help='A message in MindCluster\'s JSON form; "-": standard input.')
@click.option("--sender", help=f"Which system found it, such as pingmesh.  [default: {_OPERATOR}]")
@click.option("--fault-id", help="One fault of all DEVICES. Default: one of each, by the code and its id.")
@click.option("--recover", is_flag=True, help="The fault is over.")
@click.option("--once", is_flag=True, help="The fault ends by itself.")
@click.option("--began", metavar="TIME", help="When it began, as in 2026-01-02T03:04:05Z. Default: now.")
@click.option("--description", default="", help="What was found.")
@click.option("--location", multiple=True, metavar="KEY=VALUE", help="Where it is. May be repeated.")
@control_socket_option
@output_option
def command(
    code: str | None,
    devices: tuple[str, ...],
    file: str | None,
    sender: str | None,
    fault_id: str | None,
    recover: bool,
    once: bool,
    began: str | None,
    description: str,
    location: tuple[str, ...],
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Report the fault CODE of DEVICES, or all faults of a --file.

    DEVICES are names (gpu3, gpu3/gi5, npu0, ib0, dimm:A1, ub0, node), PCI addresses, ids or UUIDs. CODE is
    one of the tables whose kind fits them, or one of your own, which is SubHealthFault.

    Report it again while it lasts: it expires if it is not repeated in time (expire_after in [public] of the
    configuration). End it with --recover, the same --sender, and the same devices or the same --fault-id.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.connection import unknown_codes, warn_not_durable
    from nodeagent.messages import enums

    if recover and once:
        raise click.UsageError("--recover and --once exclude each other")
    if file is not None:
        if any((code, devices, sender, fault_id, recover, once, began, description, location)):
            raise click.UsageError("--file holds all that is reported: leave out the other options")
        request = _of_file(file)
    elif code and devices:
        assertion = "recover" if recover else "once" if once else "occur"
        faults = [
            _fault_of(code, names, fault_id, assertion, began)
            for names in ([devices] if fault_id else [[each] for each in dict.fromkeys(devices)])
        ]
        for fault in faults:
            fault.description = description
            fault.location.update(_pair(each) for each in location)
        request = _message(sender or _OPERATOR, faults)
    else:
        raise click.UsageError("name CODE and DEVICES, or a --file")
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ReportPublicFaultResponse = daemon.call(request)
        unknown = unknown_codes(daemon, _opened_codes(request))
    outcomes = enums.NAMES["PublicFaultOutcome"]
    results = [{"fault_id": each.fault_id, "outcome": outcomes[each.outcome]} for each in response.results]
    if output == Output.JSON:
        write_json({"sender": request.sender, "results": results, "durable": response.durable})
        return
    for result in results:
        write(f"{result['fault_id']}: {result['outcome'].replace('_', ' ')}")
    for each in unknown:
        note(f"nodeagent: {each}, so it is SubHealthFault; a row in your tables can give it another level")
    if any(result["outcome"] == "outdated" for result in results):
        note(f"nodeagent: outdated: a newer message arrived before it; check the clock of {request.sender}")
    warn_not_durable(response)


def _message(sender: str, faults: "Sequence[pb.PublicFault]") -> "pb.ReportPublicFaultRequest":
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ReportPublicFaultRequest(id=uuid.uuid4().hex, version="1.0", sender=sender, faults=faults)
    request.sent_at.FromNanoseconds(time.time_ns())
    return request


def _fault_of(
    code: str, devices: Sequence[str], fault_id: str | None, assertion: str, began: str | None
) -> "pb.PublicFault":
    from nodeagent.core.model import Assertion
    from nodeagent.messages import enums
    from nodeagent.messages.pb import control_service_pb2 as pb

    fault = pb.PublicFault(
        fault_id=fault_id or "",
        code=code,
        assertion=enums.ASSERTIONS[Assertion(assertion)],
        influence=[pb.PublicFaultInfluence(devices=devices)],
    )
    if len(code) == _PUBLIC_LENGTH and (fault_type := _TYPE_OF_DIGIT.get(code[0])):
        fault.fault_type = enums.PUBLIC_FAULT_TYPES[fault_type]
    if began is not None:
        fault.began_at.FromNanoseconds(_time_ns(began))
    return fault


def _opened_codes(request: "pb.ReportPublicFaultRequest") -> list[str]:
    from nodeagent.messages.pb import types_pb2

    opened = (each for each in request.faults if each.assertion != types_pb2.ASSERTION_RECOVER)
    return list(dict.fromkeys(each.code for each in opened))


def _of_file(name: str) -> "pb.ReportPublicFaultRequest":
    from nodeagent.cli.order.public_fault_file import request_of
    from nodeagent.cli.shared.errors import CommandFailure

    try:
        with click.open_file(name, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CommandFailure(f"{name}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise CommandFailure(f"{name}: longer than {_MOST_BYTES >> 20} MiB")
    try:
        return request_of(text)
    except ValueError as error:
        raise CommandFailure(f"{name}: {error}") from error


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--location")
    return key, value


def _time_ns(text: str) -> int:
    from nodeagent.replay.log import rfc3339_ns

    try:
        return rfc3339_ns(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--began") from error
