"""``nodeagent status``: everything that is open, and what it means for placing work."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.shared import connection, json_forms
from nodeagent.cli.shared.connection import take_snapshot
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import (
    on_terminal,
    write,
    write_continued,
    write_field,
    write_json,
    write_table,
    write_wrapped,
)
from nodeagent.cli.shared.texts import (
    counted,
    enum_text,
    for_people,
    headline,
    in_short,
    job_line,
    level_of,
    rfc3339,
)
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.model import NODE
from nodeagent.core.state.names import natural
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

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


_NO_SUPERVISOR: Final = (types_pb2.JOB_STAGE_UNSPECIFIED, types_pb2.JOB_STAGE_ENDED)

_REFUSALS: Final = ("configuration_rejected", "tables_rejected")
_DAMAGED: Final = "store_damaged"
_DAMAGES: Final = {"lost": "lost:", "restored": "put back:", "doubtful": "doubtful:", "kept_as": "kept as:"}
"""Evidence of a damaged store, and its label."""


@click.command("status")
@click.option("--all", "every", is_flag=True, help="Each device, also those that are well.")
@socket_option
@output_option
def command(every: bool, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Show which devices take work and which do not, and why: verdicts, holds, open conditions, actions."""
    with connection.opened(query_socket(socket, config_path)) as daemon:
        state = take_snapshot(daemon)
        node: pb.GetNodeResponse = daemon.call(pb.GetNodeRequest())
    if output == Output.JSON:
        write_json(_form(state, node))
    else:
        _write(state, node, every)


def _form(state: pb.WatchResponse, node: pb.GetNodeResponse) -> json_forms.Form:
    current = state.snapshot
    return {
        "node": {
            "name": state.node.node_name,
            "id": state.node.node_id,
            "boot_id": state.node.boot_id,
            **{
                key: value
                for key, value in json_forms.form(_node_device(current)).items()
                if key not in ("name", "id", "attributes")
            },
        },
        **json_forms.standing(current),
        "sources": [json_forms.form(each) for each in current.sources],
        "at": rfc3339(current.at),
        "seq": current.seq,
        "store_id": {"uuid": state.store_id.uuid, "epoch": state.store_id.epoch},
        "durable": state.durable,
        "catalog_digest": current.catalog_digest,
        "version": node.version,
        "started_at": rfc3339(node.started_at),
    }


def _node_device(current: pb.Snapshot) -> types_pb2.Device:
    return next((each for each in current.devices if each.name == NODE), types_pb2.Device(name=NODE))


def _write(state: pb.WatchResponse, node: pb.GetNodeResponse, every: bool) -> None:
    """Problems first, the worst before the others, so that the first screen has all that matters."""
    current = state.snapshot
    write_wrapped(f"{state.node.node_name}: {headline(_node_device(current), current.devices)}")
    if not state.durable:
        write("not durable: the store's disk fails; events and orders are kept in memory only")
    _write_refusals(current)
    _write_damages(current)
    _write_sources(current)
    _write_devices(current, every)
    _write_promotions(current)
    _write_holds(current)
    _write_conditions(current)
    for reset in current.resets:
        _write_action(reset)
    _write_jobs(current)
    write()
    write(
        f"nodeagent {node.version} since {for_people(node.started_at)}, {current.seq} events,"
        f" tables {current.catalog_digest[:8]}"
    )


def _write_jobs(current: pb.Snapshot) -> None:
    """Those that are supervised and have not ended; of the others, devices have the claims."""
    supervised = [job for job in current.jobs if job.stage not in _NO_SUPERVISOR]
    if supervised:
        write()
    for job in supervised:
        write_wrapped(job_line(job))


def _write_refusals(current: pb.Snapshot) -> None:
    """What the agent itself could not take, with file, line and key."""
    for condition in current.conditions:
        if condition.code in _REFUSALS and condition.source == "agent":
            write_continued(f"{condition.code}:", condition.evidence.get("reason", ""))


def _write_damages(current: pb.Snapshot) -> None:
    """What became of a damaged store. It may leave every verdict alone, and yet waits for a person."""
    for condition in current.conditions:
        if condition.code.partition(".")[0] == _DAMAGED and condition.source == "agent":
            write_continued(f"{condition.code}:", condition.evidence.get("reason", ""))
            for key, label in _DAMAGES.items():
                if text := condition.evidence.get(key):
                    write_field(f" {label}", text)
            write_field(" resets:", "none begins until a person has acknowledged this")
            write_field(" do:", 'nodeagent release node --reason "..."')


def _write_sources(current: pb.Snapshot) -> None:
    """Those that do not observe; the devices of one that are not observed for one reason together."""
    names = {device.id: device.name for device in current.devices}
    unobserved: dict[tuple[str, str], list[str]] = {}
    for source in current.sources:
        if not source.observing:
            device = names.get(source.device_id, source.device_id)
            unobserved.setdefault((source.name, source.reason), []).append(device)
    for (name, reason), devices in unobserved.items():
        which = "" if "" in devices else f" {_named(devices)}"
        write_continued(f"source {name} does not observe{which}:", reason)


def _write_holds(current: pb.Snapshot) -> None:
    """Those of a group's pending reset, and others that are alike, together."""
    alike: dict[tuple[int, str, str, str], list[str]] = {}
    for hold in current.holds:
        until = f" until {for_people(hold.until)}" if hold.HasField("until") else ""
        alike.setdefault((hold.kind, hold.owner, until, hold.reason), []).append(hold.device)
    for (kind, owner, until, reason), devices in alike.items():
        held = _HELD.get(kind, _HELD_SOMEHOW).format(devices=_named(devices))
        write_continued(f"{held} by {owner}{until}:", reason)


def _write_action(reset: types_pb2.Reset) -> None:
    stage = enum_text(enums.RESET_STAGE_OF, reset.stage)
    mode = enum_text(enums.RESET_MODE_OF, reset.mode)
    write()
    write(f"action {reset.id}")
    once = ", once" if reset.once else ""
    write_field(" is:", f"{stage}, mode {mode}{once}, attempt {reset.attempt}")
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
    for each in reset.blocked_by:
        write_field(" waited:" if reset.stage == types_pb2.RESET_STAGE_ENDED else " waits:", each)
    if reset.report:
        write_field(" report:", reset.report)
    if reset.result:
        write_field(" result:", reset.result)
    if reset.stage == types_pb2.RESET_STAGE_ASKING:
        write_field(" do:", f'nodeagent approve "{reset.id}"')
    elif reset.mode == types_pb2.RESET_MODE_DRY_RUN and reset.stage != types_pb2.RESET_STAGE_ENDED:
        write_field(
            " do:", f'nothing is reset; nodeagent reset {reset.devices[0]} --once --reason "..." has it done'
        )


def _write_devices(current: pb.Snapshot, every: bool) -> None:
    """Those that take no work or have a strategy of their own, the worst first; the others are counted."""
    devices = [device for device in current.devices if device.name != NODE]
    shown = [device for device in devices if every or not _is_well(device)]
    unobserved = {each.id for each in current.conditions if _is_the_agents(each)}
    rows = [
        [
            device.name,
            enum_text(enums.VERDICT_OF, device.verdict),
            enum_text(enums.HANDLING_OF, device.handling),
            level_of(device, unobserved),
        ]
        for device in sorted(shown, key=_worst_first)
    ]
    if rows:
        write()
        write_table(["DEVICE", "VERDICT", "HANDLING", "LEVEL"], rows)
        if others := len(devices) - len(shown):
            verb = "is" if others == 1 else "are"
            write(f"{counted(others, 'other device')} {verb} well; --all shows each")


def _is_the_agents(condition: types_pb2.Condition) -> bool:
    """Not a fault of the device, but that the agent cannot see it."""
    return condition.source == "agent" and condition.level == types_pb2.LEVEL_NOT_HANDLE_FAULT


def _is_well(device: types_pb2.Device) -> bool:
    return device.verdict == types_pb2.VERDICT_ALLOW and device.handling == types_pb2.HANDLING_NONE


def _worst_first(device: types_pb2.Device) -> tuple[int, int, object]:
    return -device.verdict, -device.handling, natural(device.name)


def _write_promotions(current: pb.Snapshot) -> None:
    for promotion in sorted(current.promotions, key=lambda each: natural(each.device)):
        waits = "" if promotion.effective else ", not yet in force"
        level = enum_text(enums.LEVEL_OF, promotion.level)
        write_continued(
            f"promoted: {promotion.device} by rule {promotion.rule} ({promotion.code}) to {level}",
            f"at {for_people(promotion.fired_at)}{waits}",
        )


def _write_conditions(current: pb.Snapshot) -> None:
    write()
    if not current.conditions:
        write("no open conditions")
        return
    rows = [
        [
            condition.device,
            condition.code,
            enum_text(enums.LEVEL_OF, condition.level),
            in_short(condition.opened_at, current.at) if on_terminal() else for_people(condition.opened_at),
            condition.name,
        ]
        for condition in sorted(current.conditions, key=_highest_first)
    ]
    write_table(["DEVICE", "CODE", "LEVEL", "SINCE UTC" if on_terminal() else "SINCE", "FAULT"], rows)


def _highest_first(condition: types_pb2.Condition) -> tuple[int, object, int]:
    level = enums.LEVEL_OF.get(condition.level)
    return (
        -PRECEDENCE[level] if level else -len(PRECEDENCE),
        natural(condition.device),
        condition.opened_at.seconds,
    )


def _named(devices: Iterable[str]) -> str:
    return ", ".join(sorted(devices, key=natural))
