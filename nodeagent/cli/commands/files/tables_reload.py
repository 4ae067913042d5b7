"""``nodeagent tables reload``: tables and configuration anew, or what that would change of what is open now.

``systemctl reload`` runs it: it returns when the outcome is known, and its exit status is that of the reload.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from nodeagent.cli.shared.errors import EXIT_FAILED
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import note, write, write_json, write_table

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb


RELOAD_LIMIT_S: Final = 45.0
"""Shorter than what the unit gives a reload, so that its outcome is still shown."""


@click.command("reload")
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would change of what is open.")
@control_socket_option
@output_option
def command(dry_run: bool, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Let the daemon load its tables and its configuration again, and say what that changes of what is open.

    "systemctl reload nodeagent" does the same. What is refused stays visible as a condition of the node until
    a good reload. Exit status: 0 in force (or sound, in a dry run), 1 refused and nothing changed.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ReloadTablesRequest(dry_run=dry_run)
    try:
        with connection.opened(control_socket(socket, config_path), RELOAD_LIMIT_S) as daemon:
            response: pb.ReloadTablesResponse = daemon.call(request)
    except connection.Refused as refused:
        if output != Output.JSON:
            raise
        write_json({"ok": False, "dry_run": dry_run, "problems": refused.message.splitlines()})
        raise SystemExit(EXIT_FAILED) from None
    if output == Output.JSON:
        write_json(_form(response, dry_run))
    else:
        _show(response, dry_run)


def _form(response: "pb.ReloadTablesResponse", dry_run: bool) -> dict[str, Any]:
    from nodeagent.cli.shared import json_forms

    return {
        "ok": True,
        "dry_run": dry_run,
        "problems": [],
        "warnings": list(response.warnings),
        "digest": response.catalog_digest,
        "levels": [json_forms.form(change) for change in response.levels],
        "devices": [json_forms.form(change) for change in response.devices],
    }


def _show(response: "pb.ReloadTablesResponse", dry_run: bool) -> None:
    from nodeagent.cli.shared import json_forms

    for warning in response.warnings:
        note(f"warning: {warning}")
    write(f"{'sound' if dry_run else 'in force'}: tables {response.catalog_digest[:12]}")
    levels = [json_forms.form(change) for change in response.levels]
    devices = [json_forms.form(change) for change in response.devices]
    if not levels and not devices:
        write("nothing that is open " + ("would change" if dry_run else "changed"))
    if levels:
        write()
        columns = ("DEVICE", "CODE", "LEVEL NOW" if dry_run else "LEVEL BEFORE", "THEN" if dry_run else "NOW")
        rows = [(each["device"], each["code"], each["before"], each["after"] or "ends") for each in levels]
        write_table(columns, rows)
    if devices:
        write()
        write_table(
            ("DEVICE", "NOW" if dry_run else "BEFORE", "THEN" if dry_run else "NOW"),
            [
                (
                    each["device"],
                    f"{each['verdict_before']}, {each['handling_before']}",
                    f"{each['verdict']}, {each['handling']}",
                )
                for each in devices
            ],
        )
