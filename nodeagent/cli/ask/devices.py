"""``nodeagent devices``: what is measured of each device, and everything that is known of one."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from nodeagent.cli.ask.device_details import details, headline_of
from nodeagent.cli.ask.device_tables import device_tables, in_tables, now
from nodeagent.cli.ask.measured import Readings
from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.shared import completion, json_forms, texts
from nodeagent.cli.shared.connection import Reader, unknown_devices
from nodeagent.cli.shared.errors import CommandFailure
from nodeagent.cli.shared.options import Output, output_option, socket_option
from nodeagent.cli.shared.output import (
    coloured,
    on_one_screen,
    on_terminal,
    width,
    write,
    write_json,
    write_prose,
    write_table,
    write_wrapped,
)
from nodeagent.client import ClientError
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class Listed(NamedTuple):
    """``readings`` by the names of the devices. ``unknown``: a sentence for each name that no device has."""

    devices: Sequence[types_pb2.Device]
    readings: Mapping[str, Readings]
    unknown: Sequence[str]


@click.command("devices")
@click.argument("devices", metavar="[DEVICE]...", nargs=-1, shell_complete=completion.devices)
@click.option("--all", "every", is_flag=True, help="Also ports, switches and host parts that are well.")
@click.option(
    "--wide",
    is_flag=True,
    help="Also product, serial, slot, PCI address and versions; lines may be longer than the screen.",
)
@timeout_option
@socket_option
@output_option
def command(
    devices: tuple[str, ...],
    every: bool,
    wide: bool,
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show what is measured of each device, or all that is known of those with these names or ids.

    "-" is a value that is not known. ECC C/U counts memory errors, corrected and uncorrected; LINKS are the
    links between chips that are up, of all. Exit status 1 if one of the devices is unknown. If no daemon
    answers, its store is read, which has no measurements.
    """

    def ask(daemon: Reader) -> Listed:
        found = daemon.call(pb.ListDevicesRequest(devices=devices)).devices
        unknown = unknown_devices(daemon, devices) if len(found) < len(set(devices)) else []
        return Listed(found, readings_of(daemon, devices), unknown)

    def show(listed: Listed) -> None:
        if output == Output.JSON:
            for device in listed.devices:
                write_json(_form(device, listed.readings))
        else:
            with on_one_screen():
                if devices and not wide:
                    _write_details(listed)
                else:
                    _write_tables(listed, every=every or bool(devices), wide=wide)
        if listed.unknown:
            raise CommandFailure("\n".join(listed.unknown))

    read(socket, config_path, timeout_s, ask, show)


def readings_of(daemon: Reader, devices: Sequence[str] = ()) -> dict[str, Readings]:
    """The last readings by the names of the devices; none from a daemon that is too old to give them.

    What is no number is left out.
    """
    try:
        answer: pb.ListReadingsResponse = daemon.call(pb.ListReadingsRequest(devices=devices))
    except ClientError as error:
        if error.status != "UNIMPLEMENTED":
            raise
        return {}
    return {
        each.device: {name: value for name, value in each.values.items() if math.isfinite(value)}
        for each in answer.readings
    }


def _form(device: types_pb2.Device, readings: Mapping[str, Readings]) -> json_forms.Form:
    """``readings`` is null where nothing is measured."""
    of_device = readings.get(device.name)
    return {**json_forms.form(device), "readings": dict(sorted(of_device.items())) if of_device else None}


def _write_tables(listed: Listed, *, every: bool, wide: bool) -> None:
    shown, well = (listed.devices, []) if every else in_tables(listed.devices)
    room = width() if on_terminal() and not wide else None
    for place, table in enumerate(device_tables(shown, listed.readings, wide=wide, room=room)):
        if place:
            write()
        write_table(table.heads, table.rows, is_whole=wide)
        if table.left_out:
            write_wrapped(f"no room for {', '.join(table.left_out)}; they are in a wider terminal")
    if well:
        are = "is" if len(well) == 1 else "are"
        write_wrapped(f"{texts.named(each.name for each in well)} {are} well; --all shows each")
    for line in filter(None, map(texts.unanswered_line, shown)):
        write_wrapped(line)


def _write_details(listed: Listed) -> None:
    for place, device in enumerate(listed.devices):
        if place:
            write()
        name, verdict, rest = headline_of(device)
        write(name, coloured(verdict), rest)
        for label, text in details(now(device, listed.readings)):
            write_prose(label, text)
        for line in texts.unanswered_lines(device):
            write_prose("-", line)
