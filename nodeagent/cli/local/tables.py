"""``nodeagent tables``: check the fault tables, import, compare and reload them.

``systemctl reload`` runs ``tables reload``: it returns when the outcome is known, and its exit status is that
of the reload.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from nodeagent.cli.shared.errors import EXIT_FAILED, CommandFailure
from nodeagent.cli.shared.options import (
    Output,
    config_option,
    configured_folders,
    control_socket,
    control_socket_option,
    output_option,
    read_config,
    shipped_folder,
)
from nodeagent.cli.shared.output import note, problem_form, write, write_json, write_lines, write_table
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.toml.problem import Problem

if TYPE_CHECKING:
    from nodeagent.config.config import Config
    from nodeagent.messages.pb import control_service_pb2 as pb
    from nodeagent.tables.compare import RowChange, RuleChange


RELOAD_LIMIT_S: Final = 45.0
"""Shorter than what the unit gives a reload, so that its outcome is still shown."""

_WHOLE_SET = "agent.toml"
"""The agent's own faults come only with a whole set of tables."""

_CODES_SHOWN = 8

Folder = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("tables")
def command() -> None:
    """Check, import, compare or reload the fault tables."""


@command.command("check")
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--alone", is_flag=True, help="Check the FOLDERs by themselves, without the shipped tables.")
@config_option
@output_option
def check_command(folders: tuple[Path, ...], alone: bool, config_path: Path | None, output: Output) -> None:
    """List every problem of the fault tables: file, line or key, and reason.

    Without FOLDER the configured folders are checked. FOLDERs are laid over the shipped tables in place of
    the site's own, later ones winning. Exit status: 0 valid (warnings are allowed), 1 not, or a FOLDER
    holds no table.
    """
    from nodeagent.tables.load import TablesError, load_catalog

    if alone and not folders:
        raise click.UsageError("--alone needs a FOLDER")
    config = read_config(config_path)
    base = () if alone else (shipped_folder(config),)
    chosen = (*base, *folders) if folders else configured_folders(config)
    problems = _missing(folders)
    catalog: Catalog | None = None
    warnings: tuple[str, ...] = ()
    try:
        if not problems:
            loaded = load_catalog(chosen, config.settings())
            catalog, warnings = loaded.catalog, loaded.warnings
    except TablesError as refused:
        problems = refused.problems
    if output == Output.JSON:
        write_json(
            {
                "ok": not problems,
                "folders": list(map(str, chosen)),
                "problems": [problem_form(each) for each in problems],
                "warnings": list(warnings),
                "codes": len(catalog.rows) if catalog else 0,
                "digest": catalog.digest if catalog else "",
            }
        )
    else:
        for line in (*map(str, problems), *(f"warning: {warning}" for warning in warnings)):
            write(line)
        if catalog:
            where = ", ".join(map(str, chosen))
            write(f"ok: {len(catalog.rows)} codes from {where}, digest {catalog.digest[:12]}")
    if problems:
        raise SystemExit(EXIT_FAILED)


def _missing(folders: Sequence[Path]) -> tuple[Problem, ...]:
    """A configured folder may be absent or empty; one that was named may not."""
    from nodeagent.tables.layers import table_files

    problems = list[Problem]()
    for folder in folders:
        if not folder.exists():
            problems.append(Problem(file=str(folder), line=None, key="", reason="no such folder"))
        elif not table_files(folder, problems.append) and not problems:
            reason = "holds no table: no file ends in .toml or .json"
            problems.append(Problem(file=str(folder), line=None, key="", reason=reason))
    return tuple(problems)


@command.command("diff")
@click.argument("before", metavar="A", type=Folder)
@click.argument("after", metavar="B", type=Folder)
@click.option("--alone", is_flag=True, help="Take both folders by themselves, without the shipped tables.")
@click.option("--texts", is_flag=True, help="Compare texts for people too, such as what to do.")
@config_option
@output_option
def diff_command(
    before: Path, after: Path, alone: bool, texts: bool, config_path: Path | None, output: Output
) -> None:
    """Show which codes and rules change from tables folder A to B, and which keys of them.

    A folder with an agent.toml is a whole set of tables; any other is laid over the shipped ones. Texts for
    people are compared only with --texts. Exit status: 0 compared, whatever was found; 1 tables that cannot
    be used.
    """
    from nodeagent.tables.compare import compare
    from nodeagent.tables.load import TablesError

    config = read_config(config_path)
    try:
        found = compare(_load(before, alone, config), _load(after, alone, config), texts=texts)
    except TablesError as refused:
        if output == Output.JSON:
            write_json({"ok": False, "problems": [problem_form(each) for each in refused.problems]})
        else:
            for problem in refused.problems:
                note(str(problem))
        raise SystemExit(EXIT_FAILED) from None
    if output == Output.JSON:
        write_json(
            {
                "ok": True,
                "problems": [],
                "codes": [_row_form(change) for change in found.rows],
                "rules": [_rule_form(change) for change in found.rules],
            }
        )
        return
    for row in found.rows:
        _write_row(row)
    for rule in found.rules:
        _write_rule(rule)
    if not found.rows and not found.rules:
        write("no difference")


def _load(folder: Path, alone: bool, config: "Config") -> "Catalog":
    from nodeagent.tables.load import load_catalog

    is_whole = alone or (folder / _WHOLE_SET).exists()
    return load_catalog([folder] if is_whole else [shipped_folder(config), folder], config.settings()).catalog


def _row_form(change: "RowChange") -> dict[str, object]:
    return {
        "code": change.code,
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "fields": {key: list(values) for key, values in change.fields.items()},
    }


def _rule_form(change: "RuleChange") -> dict[str, object]:
    return {
        "kind": change.kind,
        "id": change.id,
        "before": dict(change.before) or None,
        "after": dict(change.after) or None,
    }


def _write_row(change: "RowChange") -> None:
    if change.before is None:
        write(f"{change.code}: new, {change.after} ({change.name})")
        return
    if change.after is None:
        write(f"{change.code}: gone, was {change.before} ({change.name})")
        return
    changes = [f"{key} {_shown(old)} -> {_shown(new)}" for key, (old, new) in change.fields.items()]
    if change.before != change.after:
        changes.insert(0, f"{change.before} -> {change.after}")
    write(f"{change.code}: {'; '.join(changes)} ({change.name})")


def _write_rule(change: "RuleChange") -> None:
    from nodeagent.tables.compare import changed_fields

    named = f"{change.kind} rule {change.id}"
    if not change.before or not change.after:
        named += ": new" if not change.before else ": gone"
        fields = change.after or change.before
        write(named + "".join(f", {key} {_shown(value)}" for key, value in fields.items() if key != "id"))
        return
    changes = changed_fields(change.before, change.after)
    write(
        f"{named}: "
        + "; ".join(f"{key} {_shown(old)} -> {_shown(new)}" for key, (old, new) in changes.items())
    )


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            more = f" and {len(value) - _CODES_SHOWN} more" if len(value) > _CODES_SHOWN else ""
            return "[" + ", ".join(map(str, value[:_CODES_SHOWN])) + more + "]"
        case _:
            return str(value)


@command.command("import")
@click.argument(
    "paths", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the table there instead of to standard output.",
)
@config_option
@output_option
def import_command(
    paths: tuple[Path, ...], out: Path | None, config_path: Path | None, output: Output
) -> None:
    """Make a table from MindCluster's files; it decides as they do when they lie in a tables folder.

    Read are faultCode.json, faultCustomization.json, SwitchFaultCode.json, NodeDConfiguration.json and
    publicFaultConfiguration.json. What they lack of a code is taken from the shipped tables.
    Contradictions in them are written to standard error. Exit status: 0 made, 1 a file cannot be used.
    """
    from nodeagent.tables.load import TablesError
    from nodeagent.tables.mindcluster.importing import import_files

    as_json = output == Output.JSON
    try:
        made = import_files(paths, shipped_folder(read_config(config_path)))
    except TablesError as refused:
        if as_json:
            write_json({"ok": False, "problems": [problem_form(each) for each in refused.problems]})
        else:
            for problem in refused.problems:
                note(str(problem))
        raise SystemExit(EXIT_FAILED) from None
    if out is not None:
        _replace(out, made.text)
    if as_json:
        write_json(
            {
                "ok": True,
                "problems": [],
                "warnings": list(made.warnings),
                "codes": made.codes,
                "rules": made.rules,
                "file": "" if out is None else str(out),
                "toml": made.text if out is None else "",
            }
        )
        return
    for warning in made.warnings:
        note(f"warning: {warning}")
    if out is None:
        write_lines(made.text)
    else:
        write(f"ok: {made.codes} codes and {made.rules} rules in {out}")


def _replace(out: Path, text: str) -> None:
    """Whole or not at all: a daemon may load its tables at any moment, and passes over dot files."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        # No symlink can be in its place: where there is anything of that name, this fails.
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(out)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CommandFailure(f"{out}: cannot be written: {error.strerror or error}", EXIT_FAILED) from error


@command.command("reload")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change of what is open.")
@control_socket_option
@output_option
def reload_command(dry_run: bool, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Let the daemon load its tables and its configuration again, and show what that changes of what is open.

    "systemctl reload nodeagent" does the same. What is refused stays visible as a condition of the node until
    a good reload. Exit status: 0 in force (or valid, in a dry run), 1 refused and nothing changed.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ReloadTablesRequest(dry_run=dry_run)
    try:
        with connection.opened(control_socket(socket, config_path), RELOAD_LIMIT_S) as daemon:
            response: pb.ReloadTablesResponse = daemon.call(request)
    except connection.DaemonRefused as refused:
        if output != Output.JSON:
            raise
        write_json({"ok": False, "dry_run": dry_run, "problems": refused.message.splitlines()})
        raise SystemExit(EXIT_FAILED) from None
    if output == Output.JSON:
        write_json(_reload_form(response, dry_run))
    else:
        _write_reload(response, dry_run)


def _reload_form(response: "pb.ReloadTablesResponse", dry_run: bool) -> dict[str, Any]:
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


def _write_reload(response: "pb.ReloadTablesResponse", dry_run: bool) -> None:
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
