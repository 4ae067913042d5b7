"""``nodeagent status``: everything that is open, and what it means for placing work."""

from pathlib import Path
from typing import Final

import click

from nodeagent.cli import door, forms, snapshot
from nodeagent.cli.lines import word
from nodeagent.cli.options import Output, output_option, public_socket, socket_option
from nodeagent.cli.output import coloured, write, write_continued, write_field, write_json, write_table
from nodeagent.cli.times import for_people, rfc3339
from nodeagent.core.model import NODE
from nodeagent.outlets import messages
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.outlets.pb import types_pb2

_HELD_SOMEHOW: Final = "held: {devices}"
_HELD: Final[dict[int, str]] = {
    types_pb2.HOLD_KIND_ISOLATION: "isolated: {devices}",
    types_pb2.HOLD_KIND_RESET_PENDING: "reset pending: {devices}",
    types_pb2.HOLD_KIND_QUIESCE: "quiesced",
}
_DUE: Final[dict[int, str]] = {
    types_pb2.RESET_STAGE_ANNOUNCED: "announced until",
    types_pb2.RESET_STAGE_ASKING: "refused unless approved before",
    types_pb2.RESET_STAGE_WAITING: "looked at again before",
}


@click.command("status")
@socket_option
@output_option
def command(socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Show verdicts, open conditions, holds and actions."""
    with door.opened(public_socket(socket, config_path)) as daemon:
        state = snapshot.take(daemon)
        node = daemon.call(pb.GetNodeRequest(), pb.GetNodeResponse)
    if output == Output.JSON:
        write_json(_form(state, node))
    else:
        _write(state, node)


def _form(state: pb.WatchResponse, node: pb.GetNodeResponse) -> forms.Form:
    told = state.snapshot
    return {
        "node": {
            "name": state.node.node_name,
            "id": state.node.node_id,
            "boot_id": state.node.boot_id,
            **{
                key: value
                for key, value in forms.device(_node_device(told)).items()
                if key not in ("name", "id", "attributes")
            },
        },
        "devices": [forms.device(each) for each in told.devices],
        "conditions": [forms.condition(each) for each in told.conditions],
        "promotions": [forms.promotion(each) for each in told.promotions],
        "holds": [forms.hold(each) for each in told.holds],
        "actions": [forms.action(each) for each in told.resets],
        "sources": [forms.source(each) for each in told.sources],
        "at": rfc3339(told.at),
        "seq": told.seq,
        "store_id": {"uuid": state.store_id.uuid, "epoch": state.store_id.epoch},
        "durable": state.durable,
        "catalog_digest": told.catalog_digest,
        "version": node.version,
        "started_at": rfc3339(node.started_at),
    }


def _node_device(told: pb.Snapshot) -> types_pb2.Device:
    return next((each for each in told.devices if each.name == NODE), types_pb2.Device(name=NODE))


def _write(state: pb.WatchResponse, node: pb.GetNodeResponse) -> None:
    told = state.snapshot
    write(f"{state.node.node_name}: {_stance(_node_device(told))}")
    write(
        f"nodeagent {node.version} since {for_people(node.started_at)}, {told.seq} events,"
        f" tables {told.catalog_digest[:8]}"
    )
    if not state.durable:
        write(coloured("UNKNOWN") + ": the store's disk fails; events are kept in memory only")
    _write_sources(told)
    _write_devices(told)
    _write_conditions(told)
    for promotion in told.promotions:
        waits = "" if promotion.effective else ", not yet in force"
        level = word(messages.LEVEL_OF, promotion.level)
        write(
            f"promoted: {promotion.device} by rule {promotion.rule} ({promotion.code}) to {level}"
            f" at {for_people(promotion.fired_at)}{waits}"
        )
    _write_holds(told)
    for reset in told.resets:
        _write_action(reset)


def _write_sources(told: pb.Snapshot) -> None:
    """Those that do not observe; the devices of one that are not observed for one reason together."""
    names = {device.id: device.name for device in told.devices}
    unobserved: dict[tuple[str, str], list[str]] = {}
    for source in told.sources:
        if not source.observing:
            device = names.get(source.device_id, source.device_id)
            unobserved.setdefault((source.name, source.reason), []).append(device)
    for (name, reason), devices in unobserved.items():
        which = "" if "" in devices else f" {', '.join(devices)}"
        write_continued(f"source {name} does not observe{which}:", reason)


def _write_holds(told: pb.Snapshot) -> None:
    """Those of a group's pending reset, and others that are alike, together."""
    alike: dict[tuple[int, str, str, str], list[str]] = {}
    for hold in told.holds:
        until = f" until {for_people(hold.until)}" if hold.HasField("until") else ""
        alike.setdefault((hold.kind, hold.owner, until, hold.reason), []).append(hold.device)
    for (kind, owner, until, reason), devices in alike.items():
        held = _HELD.get(kind, _HELD_SOMEHOW).format(devices=", ".join(devices))
        write_continued(f"{held} by {owner}{until}:", reason)


def _write_action(reset: types_pb2.Reset) -> None:
    stage = word(messages.RESET_STAGE_OF, reset.stage)
    mode = word(messages.RESET_MODE_OF, reset.mode)
    write()
    write(f"action {reset.id}")
    write_field(" is:", f"{stage}, mode {mode}, attempt {reset.attempt}")
    write_field(" resets:", ", ".join(reset.devices))
    write_field(" for:", f"{reset.who}: {reset.reason}" if reset.who else ", ".join(reset.codes))
    times = [f"proposed {for_people(reset.proposed_at)}"]
    if reset.HasField("started_at"):
        times.append(f"started {for_people(reset.started_at)}")
    if reset.HasField("ended_at"):
        times.append(f"ended {for_people(reset.ended_at)}")
    if reset.HasField("due_at"):
        times.append(f"{_DUE.get(reset.stage, 'at the latest')} {for_people(reset.due_at)}")
    write_field(" times:", ", ".join(times))
    for each in reset.hindered_by:
        write_field(" waited:" if reset.stage == types_pb2.RESET_STAGE_ENDED else " waits:", each)
    if reset.report:
        write_field(" report:", reset.report)
    if reset.result:
        write_field(" result:", reset.result)
    if reset.stage == types_pb2.RESET_STAGE_ASKING:
        write_field(" do:", f'nodeagent approve "{reset.id}"')


def _write_devices(told: pb.Snapshot) -> None:
    rows = [
        [
            device.name,
            word(messages.VERDICT_OF, device.verdict),
            word(messages.HANDLING_OF, device.handling),
            word(messages.LEVEL_OF, device.level) if device.reasons else "-",
        ]
        for device in told.devices
        if device.name != NODE
    ]
    if rows:
        write()
        write_table(["DEVICE", "VERDICT", "HANDLING", "LEVEL"], rows)


def _write_conditions(told: pb.Snapshot) -> None:
    write()
    if not told.conditions:
        write("no open conditions")
        return
    rows = [
        [
            condition.device,
            condition.code,
            word(messages.LEVEL_OF, condition.level),
            for_people(condition.opened_at),
            condition.name,
        ]
        for condition in told.conditions
    ]
    write_table(["DEVICE", "CODE", "LEVEL", "SINCE", "FAULT"], rows)


def _stance(device: types_pb2.Device) -> str:
    verdict = coloured(word(messages.VERDICT_OF, device.verdict))
    handling = word(messages.HANDLING_OF, device.handling)
    return verdict if handling in ("-", "NONE") else f"{verdict}, {handling}"
