"""``nodeagent tables import DIR|FILE...``: MindCluster's own files as a table of this project."""

import os
from pathlib import Path

import click

from nodeagent.cli.shared.errors import EXIT_FAILED, Failure
from nodeagent.cli.shared.options import Output, config_option, output_option, read_config
from nodeagent.cli.shared.output import note, problem_form, write, write_json, write_lines


@click.command("import")
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
def command(paths: tuple[Path, ...], out: Path | None, config_path: Path | None, output: Output) -> None:
    """Make a table from MindCluster's files; it decides as they do when they lie in a tables folder.

    Read are faultCode.json, faultCustomization.json, SwitchFaultCode.json, NodeDConfiguration.json and
    publicFaultConfiguration.json. What they do not say of a code is taken from the shipped tables. What
    is contradictory in them is written to standard error. Exit status: 0 made, 1 a file cannot be used.
    """
    from nodeagent.cli.shared.folders import shipped
    from nodeagent.tables.load import TablesError
    from nodeagent.tables.mindcluster.importing import import_files

    as_json = output == Output.JSON
    try:
        made = import_files(paths, shipped(read_config(config_path)))
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
        # Nobody's symlink is in its place: where there is anything of that name, this fails.
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(out)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise Failure(f"{out}: cannot be written: {error.strerror or error}", EXIT_FAILED) from error
