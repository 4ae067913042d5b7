"""Changes single keys of a row or a rule of the tables below: a key that an overlay does not set stays as it
was.

An overlay that lies over nothing is read as a row or a rule of its own, and refused for what it lacks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from nodeagent.core.catalog.catalog import Row
from nodeagent.tables.entry import Entry, Overlay
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule, sort_of
from nodeagent.tables.sections.rows import changed_row, read_row
from nodeagent.tables.sections.rules import read_rule, rule_of
from nodeagent.tables.similar import nearest
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem

Report = Callable[[Problem], None]
Warn = Callable[[str], None]
Rules = dict[str, Entry[Rule]]


def lay_over_rows(
    rows: dict[str, Entry[Row]], overlays: Sequence[Overlay], report: Report, warn: Warn
) -> set[str]:
    """Puts the changed rows in place of those below; the codes of overlays that were refused."""
    refused = set[str]()
    for overlay in overlays:
        _warn_of_nothing(overlay, warn)
        below = rows.get(overlay.key)
        if below is None or below.value is None:
            near = nearest(str(overlay.path[-1]), (entry.key for entry in rows.values()))
            read_row(
                overlay, _reporting(overlay, report, f"no table below has a row of this code{_near(near)}")
            )
            refused.add(overlay.key)
        elif (row := changed_row(below.value, overlay, _reporting(overlay, report))) is not None:
            rows[overlay.key] = Entry(overlay.key, row, overlay.source, overlay.path)
    return refused


def lay_over_rules(layers: Sequence[Rules], overlays: Sequence[Overlay], report: Report, warn: Warn) -> None:
    """Puts each changed rule in the place of that of its id in the last of the layers that has one."""
    for overlay in overlays:
        _warn_of_nothing(overlay, warn)
        layer = next((rules for rules in reversed(layers) if overlay.key in rules), None)
        below = None if layer is None else layer[overlay.key]
        if layer is None or below is None or below.value is None:
            near = nearest(overlay.key, _ids(layers, overlay.section))
            read_rule(
                overlay, _reporting(overlay, report, f"no table below has a rule of this id{_near(near)}")
            )
        elif (kind := sort_of(below.value)) is not RULE_SECTIONS[overlay.section]:
            reason = (
                f'"{overlay.key}": is a [[{kind.key}]] at {below.place}; write its keys under [[{kind.key}]]'
            )
            report(overlay.source.problem((*overlay.path, "id"), reason))
        elif (rule := _changed_rule(below.value, overlay, report)) is not None:
            layer[overlay.key] = replace(below, value=rule, source=overlay.source, path=overlay.path)


def _changed_rule(below: Rule, overlay: Overlay, report: Report) -> Rule | None:
    section = RULE_SECTIONS[overlay.section]
    values = {
        field.name: getattr(below, field.name)
        for field in structs.fields(section.form)
        if field.name != "enabled"
    }
    form = section.form(**{**values, **overlay.values})
    return rule_of(section, form, overlay.source, overlay.path, overlay.defaults, _reporting(overlay, report))


def _warn_of_nothing(overlay: Overlay, warn: Warn) -> None:
    if not overlay.values.keys() - {"id", "enabled"}:
        warn(f"{overlay.place}: {overlay.key} sets no key, and changes nothing")


def _reporting(overlay: Overlay, report: Report, why: str = "") -> Callable[[KeyPath, str], None]:
    suffix = f" ({why})" if why else ""
    return lambda path, reason: report(overlay.source.problem(path, reason + suffix))


def _ids(layers: Sequence[Mapping[str, Entry[Rule]]], section: str) -> list[str]:
    kind = RULE_SECTIONS[section].rule
    return [key for rules in layers for key, entry in rules.items() if isinstance(entry.value, kind)]


def _near(found: Sequence[str]) -> str:
    return f"; the nearest is {found[0]}" if found else ""
