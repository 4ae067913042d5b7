"""``nodeagent tables diff A B``: what would be decided differently under other tables."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodeagent.cli.shared.errors import EXIT_FAILED
from nodeagent.cli.shared.options import Output, config_option, output_option, read_config
from nodeagent.cli.shared.output import note, problem_form, write, write_json

if TYPE_CHECKING:
    from nodeagent.config.config import Config
    from nodeagent.core.catalog.catalog import Catalog
    from nodeagent.tables.compare import RowChange, RuleChange

_WHOLE_SET = "agent.toml"
"""The agent's own faults come only with a whole set of tables."""

_CODES_SHOWN = 8

Folder = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("diff")
@click.argument("before", metavar="A", type=Folder)
@click.argument("after", metavar="B", type=Folder)
@click.option("--alone", is_flag=True, help="Take both folders by themselves, without the shipped tables.")
@click.option("--texts", is_flag=True, help="Compare texts for people too, such as what to do.")
@config_option
@output_option
def command(
    before: Path, after: Path, alone: bool, texts: bool, config_path: Path | None, output: Output
) -> None:
    """Say which codes and rules change from tables folder A to B, and which keys of them.

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
    from nodeagent.cli.shared.folders import shipped
    from nodeagent.tables.load import load_catalog

    is_whole = alone or (folder / _WHOLE_SET).exists()
    return load_catalog([folder] if is_whole else [shipped(config), folder], config.settings()).catalog


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

    said = f"{change.kind} rule {change.id}"
    if not change.before or not change.after:
        said += ": new" if not change.before else ": gone"
        fields = change.after or change.before
        write(said + "".join(f", {key} {_shown(value)}" for key, value in fields.items() if key != "id"))
        return
    changes = changed_fields(change.before, change.after)
    write(
        f"{said}: "
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
