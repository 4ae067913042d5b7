"""``nodeagent reset``: order the reset of a device and its group, or see what that would do."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write, write_field, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb


@click.command("reset")
@click.argument("device", shell_complete=completion.devices)
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would happen.")
@click.option(
    "--once", is_flag=True, help="Also where resets are switched off (mode off or dry-run): this one alone."
)
@click.option("--reason", default="", help="Why; for the audit log and the events. A dry run needs none.")
@control_socket_option
@output_option
def command(
    device: str,
    dry_run: bool,
    once: bool,
    reason: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Reset DEVICE, with all that are reset together with it, once nobody uses them.

    The reset is announced first. It begins when no process holds and no job claims any of them. Follow it
    with "nodeagent status" and "nodeagent events --follow".

    Where resets are switched off, --once has this one done; all other checks hold. The do-not-touch file
    forbids it too.
    """
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    if not reason and not dry_run:
        raise click.UsageError("--reason is needed, but for a --dry-run")
    request = pb.ResetDeviceRequest(device=device, reason=reason, dry_run=dry_run, once=once)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ResetDeviceResponse = daemon.call(request)
    if output == Output.JSON:
        form = {"device": device, "dry_run": dry_run, "action_id": response.action_id}
        action = json_forms.form(response.reset) if response.HasField("reset") else None
        durable = None if dry_run else response.durable
        plan = json_forms.form(response.plan)
        write_json({**form, "action": action, "plan": plan, "durable": durable})
        return
    if response.action_id:
        write(f"proposed {response.action_id}")
    _write(response.plan)
    durability.warn(response)


def _write(plan: "pb.ResetPlan") -> None:
    from nodeagent.cli.shared.text_lines import word
    from nodeagent.messages import enums

    write(f"reset together: {', '.join(plan.devices)}")
    once = ", once, though resets are switched off" if plan.once else ""
    write(f"mode: {word(enums.RESET_MODE_OF, plan.mode)}{once}")
    hours = plan.window.ToNanoseconds() / 3.6e12
    if plan.used:
        used = ", ".join(f"{each.device} {each.resets} of {each.limit}" for each in plan.used)
        write(f"resets in {hours:g} h:")
        write_field(" ", used)
    if plan.refused:
        write("it would be refused:")
        write_field(" ", plan.refused)
        return
    write("blocked by:" if plan.blocked_by else "blocked by: nothing")
    for each in plan.blocked_by:
        write_field(" ", each)
    write("steps:")
    for step in plan.steps:
        after = f"after {step.after.seconds} s:" if step.HasField("after") else "then:"
        write_field(f"{after:<12}", step.what)
