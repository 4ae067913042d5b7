"""``nodeagent isolate``: take a device, or the whole node, out of service."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.durations import length_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import note, write, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb
    from nodeagent.messages.pb import types_pb2

_CLOCKS_DIFFER_NS: Final = 10**9


@click.command("isolate")
@click.argument("device", shell_complete=completion.devices)
@click.option("--reason", required=True, help="Why. Everybody who sees the verdict sees this.")
@length_option("How long, such as 2h; else until released.")
@owner_option
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    length: timedelta | None,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Isolate DEVICE ("node": the whole node) until you release it, or for a while.

    The hold is yours. Another person can end it only by its id or with --force. Another reason makes another
    hold. Isolating again for the same reason can only make it longer; to shorten it, release it first.
    """
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.orders import durability
    from nodeagent.cli.shared.time_texts import for_people
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.IsolateDeviceRequest(device=device, reason=reason, owner=owner)
    if length is not None:
        request.until.FromDatetime(datetime.now(UTC) + length)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.IsolateDeviceResponse = daemon.call(request)
    hold = response.hold
    if output == Output.JSON:
        write_json({**json_forms.form(hold), "durable": response.durable})
        return
    end = f"until {for_people(hold.until)}" if hold.HasField("until") else "until it is released"
    write(f"isolated {hold.device} for {hold.owner}, {end}: {hold.reason}")
    if length is not None and _is_longer(hold, request):
        note(f"nodeagent: {hold.owner} held it for longer already, and still does; to shorten it, release it")
    durability.warn(response)


def _is_longer(hold: "types_pb2.Hold", request: "pb.IsolateDeviceRequest") -> bool:
    """Whether it lasts longer than asked, by more than the clocks may differ."""
    ends_ns, asked_ns = hold.until.ToNanoseconds(), request.until.ToNanoseconds()
    return not hold.HasField("until") or ends_ns - asked_ns > _CLOCKS_DIFFER_NS
