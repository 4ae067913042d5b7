"""``nodeagent config check``."""

import os
from pathlib import Path

import click

from nodeagent.cli.shared.errors import EXIT_FAILED
from nodeagent.cli.shared.options import Output, config_option, output_option
from nodeagent.cli.shared.output import problem_form, write, write_json
from nodeagent.config.load import DEFAULT_PATH, PATH_VARIABLE, ConfigError, load_config
from nodeagent.toml.problem import Problem


@click.group("config")
def command() -> None:
    """Check the configuration."""


@command.command("check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@config_option
@output_option
def check(path: Path | None, config_path: Path | None, output: Output) -> None:
    """Say everything that is wrong with the configuration at PATH.

    Without PATH it is the file the daemon would read. Exit status: 0 sound (warnings are allowed), 1 not.
    """
    path = path or config_path
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    try:
        warnings = load_config(path, os.environ).without_effect()
    except ConfigError as error:
        problems = error.problems
    if output == Output.JSON:
        shown = [problem_form(each) for each in problems]
        write_json({"ok": not problems, "file": _file(path), "problems": shown, "warnings": list(warnings)})
    else:
        for line in (*map(str, problems), *(f"warning: {warning}" for warning in warnings)):
            write(line)
        if not problems:
            write(f"{_file(path) or f'no {DEFAULT_PATH}, so every key has its default'}: ok")
    if problems:
        raise SystemExit(EXIT_FAILED)


def _file(path: Path | None) -> str:
    """The file that was read; "" where there is none and every key has its default."""
    if path is not None:
        return str(path)
    return os.environ.get(PATH_VARIABLE) or (str(DEFAULT_PATH) if DEFAULT_PATH.exists() else "")
