"""``nodeagent devices`` and ``nodeagent why DEVICE``: verdicts, and where each comes from.

``why`` goes from the verdict back to conditions, rules, rows of tables and what was seen.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from nodeagent.cli.shared import completion, connection, json_forms, texts
from nodeagent.cli.shared.connection import unknown_devices
from nodeagent.cli.shared.errors import CommandFailure
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import coloured, write, write_field, write_json, write_prose, write_table
from nodeagent.cli.shared.texts import enum_text, for_people, write_event
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


@click.command("devices")
@click.argument("devices", metavar="[DEVICE]...", nargs=-1, shell_complete=completion.devices)
@socket_option
@output_option
def devices_command(
    devices: tuple[str, ...], socket: Path | None, config_path: Path | None, output: Output
) -> None:
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
        _write_devices(listed)
    if unknown:
        raise CommandFailure("\n".join(unknown))


def _write_devices(listed: Sequence[types_pb2.Device]) -> None:
    rows = [
        [
            device.name,
            enum_text(enums.KIND_OF, device.kind),
            device.vendor or "-",
            enum_text(enums.VERDICT_OF, device.verdict),
            enum_text(enums.HANDLING_OF, device.handling),
            "yes" if device.observed else "no",
            device.id,
        ]
        for device in listed
    ]
    write_table(["DEVICE", "KIND", "VENDOR", "VERDICT", "HANDLING", "OBSERVED", "ID"], rows)
    for line in filter(None, map(texts.unanswered_line, listed)):
        write(line)


@click.command("why")
@click.argument("device", shell_complete=completion.devices)
@socket_option
@output_option
def why_command(device: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Explain why DEVICE has its verdict; "node" is the node itself."""
    with connection.opened(query_socket(socket, config_path)) as daemon:
        response: pb.WhyDeviceResponse = daemon.call(pb.WhyDeviceRequest(device=device))
    if output == Output.JSON:
        write_json(
            {
                "device": json_forms.form(response.device),
                "contributions": [json_forms.form(each) for each in response.contributions],
                "seq": response.seq,
            }
        )
    else:
        _write_why(response)


def _write_why(response: pb.WhyDeviceResponse) -> None:
    device = response.device
    verdict = coloured(f"{enum_text(enums.VERDICT_OF, device.verdict)},")
    write(f"{device.name}:", verdict, f"handling {enum_text(enums.HANDLING_OF, device.handling)}")
    for line in texts.unanswered_lines(device):
        write(line)
    if not response.contributions:
        write("nothing is open on it" + ("" if device.observed else "; it is not observed"))
    for contribution in response.contributions:
        write()
        _write_contribution(contribution)


def _write_contribution(contribution: pb.Contribution) -> None:
    reason = contribution.reason
    level = enums.LEVEL_OF.get(reason.level)
    kind = enum_text(enums.REASON_KIND_OF, reason.kind)
    write(f"because of the {kind} {reason.id}" + (f" at {level}" if level else ""))
    write(f"  {' '.join(filter(None, (reason.code, reason.text)))}")
    if contribution.HasField("promotion"):
        promotion = contribution.promotion
        write(f"  rule: {promotion.rule}, fired at {for_people(promotion.fired_at)}")
        write_field("ends by:", f"nodeagent release {promotion.device} --reason WHY")
    if contribution.HasField("hold") and contribution.hold.set_by:
        hold = contribution.hold
        write(f"  set by {hold.set_by} at {for_people(hold.since)}")
    if contribution.HasField("condition"):
        condition = contribution.condition
        write(
            f"  from {condition.source}, {condition.count} signal{'s' if condition.count != 1 else ''},"
            f" {for_people(condition.opened_at)}"
            f" to {for_people(condition.last_at)}"
        )
        for key, value in sorted(condition.evidence.items()):
            write_field(f"  {key}:", value)
    if contribution.explanation.known:
        explanation = contribution.explanation
        write_field("table:", explanation.file)
        write_field("rules:", ", ".join(explanation.rules) or "none")
        write_prose("means:", explanation.description)
        write_prose("do:", json_forms.advice(contribution))
    for event in contribution.events:
        write_event(event)
