"""``nodeagent why DEVICE``: the verdict of a device, its cause, what follows, and where all that comes from.

It goes from the verdict back to conditions, rules, rows of tables and what was seen.
"""

from pathlib import Path
from typing import Final

import click
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.overview import next_step, reset_lines, severity
from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.shared import completion, json_forms, texts
from nodeagent.cli.shared.connection import Reader, take_snapshot
from nodeagent.cli.shared.options import Output, output_option, socket_option
from nodeagent.cli.shared.output import (
    coloured,
    on_one_screen,
    write,
    write_field,
    write_json,
    write_prose,
)
from nodeagent.cli.shared.texts import enum_text, for_people, write_event
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


@click.command("why")
@click.argument("device", shell_complete=completion.devices)
@timeout_option
@socket_option
@output_option
def command(
    device: str, timeout_s: float | None, socket: Path | None, config_path: Path | None, output: Output
) -> None:
    """Explain why DEVICE has its verdict; "node" is the node itself.

    If no daemon answers, its store is read, and standard error shows of when it is.
    """

    def ask(daemon: Reader) -> tuple[pb.WhyDeviceResponse, pb.Snapshot]:
        return daemon.call(pb.WhyDeviceRequest(device=device)), take_snapshot(daemon).snapshot

    def show(answer: tuple[pb.WhyDeviceResponse, pb.Snapshot]) -> None:
        response, current = answer
        if output == Output.JSON:
            form = {
                "device": json_forms.form(response.device),
                "contributions": [json_forms.form(each) for each in response.contributions],
                "seq": response.seq,
            }
            write_json(form)
        else:
            with on_one_screen():
                write_why(response, current)

    read(socket, config_path, timeout_s, ask, show)


_PART: Final = ("product", "model", "serial", "slot", "pci", "firmware", "driver", "location", "label")
"""Attributes by which a person orders and finds the part: see docs/attributes.md."""


def write_why(response: pb.WhyDeviceResponse, current: pb.Snapshot) -> None:
    """What a person needs first, then where it comes from."""
    device = response.device
    verdict = coloured(f"{enum_text(enums.VERDICT_OF, device.verdict)},")
    write(f"{device.name}:", verdict, f"handling {enum_text(enums.HANDLING_OF, device.handling)}")
    for line in texts.unanswered_lines(device):
        write(line)
    worst = max(response.contributions, key=lambda each: severity(each.reason), default=None)
    if worst is None:
        write("nothing is open on it" + ("" if device.observed else "; it is not observed"))
    else:
        _write_cause(worst, device, current)
    resets = [line for reset, line in reset_lines(current) if device.name in reset.devices]
    for line in filter(None, resets or [next_step(device, current)]):
        write_prose("next:", line)
    part = [f"{key} {device.attributes[key]}" for key in _PART if key in device.attributes]
    if part:
        write_prose("part:", ", ".join(part))
    for contribution in response.contributions:
        write()
        _write_contribution(contribution, device, current.at)


def _period(condition: types_pb2.Condition, now: Timestamp) -> str:
    first, last = (for_people(each, now) for each in (condition.opened_at, condition.last_at))
    return first if first == last else f"{first} to {last}"


def _write_cause(contribution: pb.Contribution, device: types_pb2.Device, current: pb.Snapshot) -> None:
    reason = contribution.reason
    level = enums.LEVEL_OF.get(reason.level)
    of_level = ", ".join(filter(None, (reason.code, str(level) if level else "")))
    text = f"{reason.text}{_elsewhere(contribution, device)}"
    write_prose("cause:", f"{text} ({of_level})" if of_level else text)
    since = _since(contribution)
    if since is not None:
        write_prose("since:", for_people(since, current.at))
    if contribution.explanation.known:
        write_prose("means:", contribution.explanation.description)
        write_prose("do:", json_forms.advice(contribution))


def _since(contribution: pb.Contribution) -> Timestamp | None:
    if contribution.HasField("condition"):
        return contribution.condition.opened_at
    if contribution.HasField("promotion"):
        return contribution.promotion.fired_at
    return contribution.hold.since if contribution.HasField("hold") else None


def _elsewhere(contribution: pb.Contribution, device: types_pb2.Device) -> str:
    """Which other device it is open on: a fault of a port can keep work from its node."""
    records = (contribution.condition, contribution.promotion, contribution.hold)
    name = next((each.device for each in records if each.device), device.name)
    return f" on {name}" if name != device.name else ""


def _write_contribution(contribution: pb.Contribution, device: types_pb2.Device, now: Timestamp) -> None:
    reason = contribution.reason
    level = enums.LEVEL_OF.get(reason.level)
    kind = enum_text(enums.REASON_KIND_OF, reason.kind)
    what = " ".join(filter(None, (reason.code, reason.text)))
    write(f"{kind}: {what}{_elsewhere(contribution, device)}" + (f", {level}" if level else ""))
    if contribution.HasField("promotion"):
        promotion = contribution.promotion
        write(f"  rule: {promotion.rule}, fired at {for_people(promotion.fired_at, now)}")
        write_field("ends by:", f"nodeagent release {promotion.device} --reason WHY")
    if contribution.HasField("hold") and contribution.hold.set_by:
        hold = contribution.hold
        write(f"  set by {hold.set_by} at {for_people(hold.since, now)}")
    if contribution.HasField("condition"):
        condition = contribution.condition
        write(
            f"  from {condition.source}, {condition.count} signal{'s' if condition.count != 1 else ''},"
            f" {_period(condition, now)}"
        )
        for key, value in sorted(condition.evidence.items()):
            write_field(f"  {key}:", value)
    if contribution.explanation.known:
        explanation = contribution.explanation
        write_field("table:", explanation.file)
        write_field("rules:", ", ".join(explanation.rules) or "none")
    for event in contribution.events:
        write_event(event, time_text=for_people)
