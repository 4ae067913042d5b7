"""Reads the rules and patterns of one file into catalog values, with the checks that need only the file."""

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from nodeagent.core.model import Kind
from nodeagent.tables.entry import Entry, Overlay, SourceAbove, is_removal, removal_is_sound
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule, RuleSection
from nodeagent.tables.rule_kinds.frequency import FrequencyForm
from nodeagent.tables.sections.schema import FileForm, RuleForm
from nodeagent.toml.fields import Report, missing_keys, read_form, read_given, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import ParsedFile


def read_rules(source: ParsedFile, defaults: FileForm, report: Report) -> list[Entry[Rule] | Overlay]:
    """Every sound rule and pattern, kind by kind in the order of the file; the others are reported.

    In a file above others a rule with an id that lacks other keys is an overlay.
    """
    entries = dict[str, Entry[Rule] | Overlay]()
    for key, section in RULE_SECTIONS.items():
        tables = source.data.get(key, [])
        if not isinstance(tables, list):
            report((key,), f"{shown(tables)} is given where tables under [[{key}]] are needed")
            continue
        for index, table in enumerate(tables):
            entry: Entry[Rule] | Overlay | None
            if isinstance(source, SourceAbove) and _is_overlay(table, section):
                entry = _read_overlay(source, section, table, (key, index), defaults, report)
            else:
                entry = _read_entry(source, section, table, (key, index), defaults, report)
            if entry is not None and (first := entries.setdefault(entry.key, entry)) is not entry:
                report(
                    (*entry.path, "id"), f'"{entry.key}" is defined already at {first.place}; each id once'
                )
    return list(entries.values())


def read_rule(overlay: Overlay, report: Report) -> Rule | None:
    """The overlay as a rule of its own, as which it lacks keys: they are reported."""
    section = RULE_SECTIONS[overlay.section]
    read = read_form(section.form, overlay.table, overlay.path, report)
    if read is None:
        return None
    return rule_of(section, read, overlay.source, overlay.path, overlay.defaults, report)


def _is_overlay(table: object, section: RuleSection) -> TypeGuard[Mapping[str, Any]]:
    return (
        isinstance(table, Mapping)
        and not is_removal(table)
        and isinstance(table.get("id"), str)
        and bool(missing_keys(section.form, table))
    )


def _read_overlay(
    source: ParsedFile,
    section: RuleSection,
    table: Mapping[str, Any],
    path: KeyPath,
    defaults: FileForm,
    report: Report,
) -> Overlay | None:
    values = read_given(section.form, table, path, report)
    if values is None:
        return None
    values.pop("enabled", None)
    return Overlay(values["id"], section.key, values, source, path, defaults)


def _read_entry(
    source: ParsedFile, section: RuleSection, table: object, path: KeyPath, defaults: FileForm, report: Report
) -> Entry[Rule] | None:
    if is_removal(table):
        identifier = table.get("id")
        if not removal_is_sound(section.form, table, path, report):
            return None
        if not isinstance(identifier, str):
            report((*path, "id"), "missing; it must be the id of what is to be taken away")
            return None
        return Entry(identifier, None, source, path)
    read = read_form(section.form, table, path, report)
    rule = None if read is None else rule_of(section, read, source, path, defaults, report)
    return None if rule is None else Entry(rule.id, rule, source, path)


def rule_of(
    section: RuleSection,
    form: RuleForm,
    source: ParsedFile,
    path: KeyPath,
    defaults: FileForm,
    report: Report,
) -> Rule | None:
    """The rule in the form; None after having reported what is wrong with it."""
    if isinstance(form, FrequencyForm):
        kind = form.kind or defaults.kind or Kind.CHIP
        form = msgspec.structs.replace(form, kind=kind, release_ns=form.release_ns or None)
    sound = True
    for key, reason in section.objections(form):
        report((*path, key), reason)
        sound = False
    if not sound:
        return None
    values = msgspec.structs.asdict(form)
    del values["enabled"]
    return section.rule(**values, file=source.place(path))
