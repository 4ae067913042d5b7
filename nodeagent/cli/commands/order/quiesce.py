"""``nodeagent quiesce``: hold off all actions, for instance while the driver is upgraded."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.durations import length_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import write, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb.fault_service_pb2 import Snapshot
    from nodeagent.messages.pb.types_pb2 import Reset


@click.command("quiesce")
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@length_option("How long, such as 2h; else until you resume.")
@owner_option
@control_socket_option
@output_option
def command(
    reason: str,
    length: timedelta | None,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Let no action begin on this node until you resume, or for a while.

    It outlives the daemon and a reboot. Another person can end it only by its id or with --force. A reset
    that has begun is called off if the vendor's library has not been asked yet. It is named: wait for its end
    before you touch the driver.
    """
    from nodeagent.cli.shared import connection, json_forms, snapshot
    from nodeagent.cli.shared.orders import durability
    from nodeagent.cli.shared.time_texts import for_people
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.QuiesceRequest(reason=reason, owner=owner)
    if length is not None:
        request.duration.FromTimedelta(length)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.QuiesceResponse = daemon.call(request)
        under_way = _under_way(snapshot.take(daemon).snapshot)
    hold = response.hold
    if output == Output.JSON:
        write_json(
            {
                **json_forms.form(hold),
                "under_way": [each.id for each in under_way],
                "durable": response.durable,
            }
        )
        return
    end = f"until {for_people(hold.until)}" if hold.HasField("until") else "until resumed"
    write(f"quiesced for {hold.owner}, {end}: {hold.reason}")
    for each in under_way:
        write(f"reset {each.id} of {', '.join(each.devices)} is still in progress: wait for its end")
    durability.warn(response)


def _under_way(current: "Snapshot") -> list["Reset"]:
    """Resets that have begun, in earnest."""
    from nodeagent.messages.pb import types_pb2

    begun = (types_pb2.RESET_STAGE_RUNNING, types_pb2.RESET_STAGE_VERIFYING)
    resets = (each for each in current.resets if each.mode != types_pb2.RESET_MODE_DRY_RUN)
    return [each for each in resets if each.stage in begun]
