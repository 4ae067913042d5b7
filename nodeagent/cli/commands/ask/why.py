"""``nodeagent why DEVICE``: from the verdict back to conditions, rules, table rows and what was seen."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion, connection, json_forms, unanswered
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import coloured, write, write_field, write_json, write_prose
from nodeagent.cli.shared.text_lines import word, write_event
from nodeagent.cli.shared.time_texts import for_people
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb


@click.command("why")
@click.argument("device", shell_complete=completion.devices)
@socket_option
@output_option
def command(device: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Say why DEVICE has its verdict; "node" is the node itself."""
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
        _write(response)


def _write(response: pb.WhyDeviceResponse) -> None:
    device = response.device
    verdict = coloured(f"{word(enums.VERDICT_OF, device.verdict)},")
    write(f"{device.name}:", verdict, f"handling {word(enums.HANDLING_OF, device.handling)}")
    for line in unanswered.lines_of(device):
        write(line)
    if not response.contributions:
        write("nothing is open on it" + ("" if device.observed else "; it is not observed"))
    for contribution in response.contributions:
        write()
        _write_contribution(contribution)


def _write_contribution(contribution: pb.Contribution) -> None:
    reason = contribution.reason
    level = enums.LEVEL_OF.get(reason.level)
    kind = word(enums.REASON_KIND_OF, reason.kind)
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
