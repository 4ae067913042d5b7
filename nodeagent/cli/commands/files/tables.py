"""``nodeagent tables``: check here, the others in files of their own."""

from collections.abc import Sequence
from pathlib import Path

import click

from nodeagent.cli.commands.files import tables_diff, tables_import, tables_reload
from nodeagent.cli.shared.errors import EXIT_FAILED
from nodeagent.cli.shared.options import Output, config_option, output_option, read_config
from nodeagent.cli.shared.output import problem_form, write, write_json
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.toml.problem import Problem


@click.group("tables")
def command() -> None:
    """Check, import, compare or reload the fault tables."""


command.add_command(tables_import.command)
command.add_command(tables_diff.command)
command.add_command(tables_reload.command)


@command.command("check")
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--alone", is_flag=True, help="Check the FOLDERs by themselves, without the shipped tables.")
@config_option
@output_option
def check(folders: tuple[Path, ...], alone: bool, config_path: Path | None, output: Output) -> None:
    """Say everything that is wrong with the fault tables: file, line or key, and reason.

    Without FOLDER the configured folders are checked. FOLDERs are laid over the shipped tables in place of
    the site's own, later ones winning. Exit status: 0 sound (warnings are allowed), 1 not, or a FOLDER
    holds no table.
    """
    from nodeagent.cli.shared.folders import configured, shipped
    from nodeagent.tables.load import TablesError, load_catalog

    if alone and not folders:
        raise click.UsageError("--alone needs a FOLDER")
    config = read_config(config_path)
    base = () if alone else (shipped(config),)
    chosen = (*base, *folders) if folders else configured(config)
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
