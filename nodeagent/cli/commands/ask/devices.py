"""``nodeagent devices``: the devices as they stand, the node itself first."""

from collections.abc import Sequence
from pathlib import Path

import click

from nodeagent.cli.shared import completion, connection, json_forms, unanswered
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import write, write_json, write_table
from nodeagent.cli.shared.text_lines import word
from nodeagent.cli.shared.unknown_names import unknown_devices
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


@click.command("devices")
@click.argument("devices", metavar="[DEVICE]...", nargs=-1, shell_complete=completion.devices)
@socket_option
@output_option
def command(devices: tuple[str, ...], socket: Path | None, config_path: Path | None, output: Output) -> None:
    """List the devices with verdict and handling: all, or those with these names or ids.

    Exit status 1 if one of them is unknown.
    """
    request = pb.ListDevicesRequest(devices=devices)
    with connection.opened(query_socket(socket, config_path)) as daemon:
        listed = daemon.call(request).devices
        unknown = unknown_devices(daemon, devices) if len(listed) < len(set(devices)) else []
    if output == Output.JSON:
        for device in listed:
            write_json(json_forms.form(device))
    elif listed:
        _write(listed)
    if unknown:
        raise Failure("\n".join(unknown))


def _write(listed: Sequence[types_pb2.Device]) -> None:
    rows = [
        [
            device.name,
            word(enums.KIND_OF, device.kind),
            device.vendor or "-",
            word(enums.VERDICT_OF, device.verdict),
            word(enums.HANDLING_OF, device.handling),
            "yes" if device.observed else "no",
            device.id,
        ]
        for device in listed
    ]
    write_table(["DEVICE", "KIND", "VENDOR", "VERDICT", "HANDLING", "OBSERVED", "ID"], rows)
    for line in filter(None, map(unanswered.line_of, listed)):
        write(line)
