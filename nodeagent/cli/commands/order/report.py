"""``nodeagent report``: faults that another system found, one by options or many from a file."""

import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb

_CHIP: Final = re.compile(r"npu([0-9]|[12][0-9]|3[01])")
_NODE: Final = "node"
_TYPE_OF_DIGIT: Final = {"0": "npu", "1": "node", "2": "network", "3": "storage"}
"""What the first digit of a public code says."""

_MOST_BYTES: Final = 1 << 20


@click.command("report")
@click.argument("code", required=False)
@click.argument("devices", nargs=-1)
@click.option("--file", metavar="PATH", help='A message in MindCluster\'s JSON form; "-": standard input.')
@click.option("--sender", help='Which system found it, such as "pingmesh".')
@click.option("--fault-id", help="Which fault it is. Default: the code and the devices.")
@click.option("--recover", is_flag=True, help="It is over, on all devices.")
@click.option("--once", is_flag=True, help="It ends by itself.")
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
    """Report the fault CODE of DEVICES (npu0 to npu31, or "node"), or all faults of a --file.

    Report it again while it lasts: it expires if it is not repeated in time (expire_after in [public] of the
    configuration). End it with --recover and the same devices, or the same --fault-id.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages import enums

    if recover and once:
        raise click.UsageError("--recover and --once exclude each other")
    if file is not None:
        if any((code, devices, sender, fault_id, recover, once, began, description, location)):
            raise click.UsageError("--file has all that is reported: leave the rest out")
        request = _of_file(file)
    elif code and devices and sender:
        assertion = "recover" if recover else "once" if once else "occur"
        fault = _fault(code, devices, fault_id, assertion, began)
        fault.description = description
        fault.location.update(_pair(each) for each in location)
        request = _message(sender, fault)
    else:
        raise click.UsageError("name CODE, DEVICES and --sender, or a --file")
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ReportPublicFaultResponse = daemon.call(request)
    words = enums.WORDS["PublicFaultOutcome"]
    results = [{"fault_id": each.fault_id, "outcome": words[each.outcome]} for each in response.results]
    if output == Output.JSON:
        write_json({"sender": request.sender, "results": results, "durable": response.durable})
        return
    for result in results:
        write(f"{result['fault_id']}: {result['outcome'].replace('_', ' ')}")
    durability.warn(response)


def _message(sender: str, fault: "pb.PublicFault") -> "pb.ReportPublicFaultRequest":
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ReportPublicFaultRequest(id=uuid.uuid4().hex, version="1.0", sender=sender, faults=[fault])
    request.sent_at.FromNanoseconds(time.time_ns())
    return request


def _fault(
    code: str, devices: Sequence[str], fault_id: str | None, assertion: str, began: str | None
) -> "pb.PublicFault":
    from nodeagent.core.model import Assertion
    from nodeagent.messages import enums
    from nodeagent.messages.pb import control_service_pb2 as pb

    fault = pb.PublicFault(
        fault_id=fault_id or ".".join((code, *devices))[:128],
        fault_type=enums.PUBLIC_FAULT_TYPES[_TYPE_OF_DIGIT.get(code[0], "npu")],
        code=code,
        assertion=enums.ASSERTIONS[Assertion(assertion)],
        influence=_influence(devices),
    )
    fault.began_at.FromNanoseconds(_time_ns(began))
    return fault


def _of_file(name: str) -> "pb.ReportPublicFaultRequest":
    from nodeagent.cli.shared.errors import Failure
    from nodeagent.cli.shared.orders.public_fault_file import request_of

    try:
        with click.open_file(name, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise Failure(f"{name}: longer than {_MOST_BYTES >> 20} MiB")
    try:
        return request_of(text)
    except ValueError as error:
        raise Failure(f"{name}: {error}") from error


def _influence(devices: Sequence[str]) -> "list[pb.PublicFaultInfluence]":
    from nodeagent.messages.pb import control_service_pb2 as pb

    chips = []
    for name in devices:
        chip = _CHIP.fullmatch(name)
        if chip is not None:
            chips.append(int(chip[1]))
        elif name != _NODE:
            raise click.BadParameter(f"{name!r} is neither npu0 to npu31 nor node", param_hint="DEVICES")
    influence = [pb.PublicFaultInfluence()] if _NODE in devices else []
    return [*influence, pb.PublicFaultInfluence(device_ids=chips)] if chips else influence


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--location")
    return key, value


def _time_ns(text: str | None) -> int:
    from nodeagent.replay.stamps import rfc3339_ns

    if text is None:
        return time.time_ns()
    try:
        return rfc3339_ns(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--began") from error
