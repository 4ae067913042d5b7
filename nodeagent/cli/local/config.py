"""``nodeagent config``: check and show."""

import os
from pathlib import Path

import click

from nodeagent.cli.shared.errors import EXIT_CONFIG, EXIT_FAILED, CommandFailure
from nodeagent.cli.shared.options import Output, config_option, output_option
from nodeagent.cli.shared.output import problem_form, write, write_json, write_table
from nodeagent.config.load import DEFAULT_PATH, ConfigError, config_files, read_config
from nodeagent.toml.problem import Problem
from nodeagent.toml.writing import value_text


@click.group("config")
def command() -> None:
    """Check and show the configuration."""


@command.command("check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@config_option
@output_option
def check(path: Path | None, config_path: Path | None, output: Output) -> None:
    """List every problem of the configuration at PATH and its drop-ins.

    Without PATH it is the file the daemon would read. The drop-ins of nodeagent.toml are nodeagent.d/*.toml
    next to it. Exit status: 0 valid (warnings are allowed), 1 not.
    """
    path = path or config_path
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    try:
        warnings = read_config(path, os.environ).config.without_effect()
    except ConfigError as error:
        problems = error.problems
    files = _files(path)
    if output == Output.JSON:
        shown = [problem_form(each) for each in problems]
        write_json(
            {
                "ok": not problems,
                "file": files[0] if files else "",
                "files": files,
                "problems": shown,
                "warnings": list(warnings),
            }
        )
    else:
        for line in (*map(str, problems), *(f"warning: {warning}" for warning in warnings)):
            write(line)
        if not problems:
            for line in files or [f"no {DEFAULT_PATH}, so every key has its default"]:
                write(f"{line}: ok")
    if problems:
        raise SystemExit(EXIT_FAILED)


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@config_option
@output_option
def show(path: Path | None, config_path: Path | None, output: Output) -> None:
    """Show each key that the configuration sets, and the file and line that its value comes from.

    Without PATH it is the configuration that the daemon would read. A key that is not shown has its default.
    """
    try:
        layers = read_config(path or config_path, os.environ).layers
    except ConfigError as error:
        raise CommandFailure(str(error), EXIT_CONFIG) from error
    settings = list(layers.settings())
    if output == Output.JSON:
        write_json(
            {
                "files": [source.file for source in layers.sources],
                "settings": [
                    {"key": each.key, "value": each.value, "file": each.file, "line": each.line}
                    for each in settings
                ],
            }
        )
    elif settings:
        rows = [
            (each.key, " ".join(value_text(each.value).split("\n")), f"{each.file}:{each.line}")
            for each in settings
        ]
        write_table(("KEY", "VALUE", "FROM"), rows)
    else:
        write("every key has its default")


def _files(path: Path | None) -> list[str]:
    """Those that were read; none where there is none and every key has its default."""
    return [str(file) for file in config_files(path, os.environ, lambda _reported_as_it_is_read: None)]
