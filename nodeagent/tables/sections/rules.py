"""Reads the rules and patterns of one file into catalog values, with the checks that need only the file."""

import msgspec

from nodeagent.core.model import Kind
from nodeagent.tables.entry import Entry, is_removal, removal_is_sound
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule, RuleSection
from nodeagent.tables.rule_kinds.frequency import FrequencyForm
from nodeagent.tables.sections.schema import FileForm
from nodeagent.toml.fields import Report, read_form, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import Source


def read_rules(source: Source, defaults: FileForm, report: Report) -> list[Entry[Rule]]:
    """Every sound rule and pattern, kind by kind in the order of the file; the others are reported."""
    entries = dict[str, Entry[Rule]]()
    for key, section in RULE_SECTIONS.items():
        tables = source.data.get(key, [])
        if not isinstance(tables, list):
            report((key,), f"{shown(tables)} stands where tables under [[{key}]] are needed")
            continue
        for index, table in enumerate(tables):
            entry = _read_entry(source, section, table, (key, index), defaults, report)
            if entry is not None and (first := entries.setdefault(entry.key, entry)) is not entry:
                report((*entry.path, "id"), f'"{entry.key}" stands already at {first.place}; each id once')
    return list(entries.values())


def _read_entry(
    source: Source, section: RuleSection, table: object, path: KeyPath, defaults: FileForm, report: Report
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
    if read is None:
        return None
    if isinstance(read, FrequencyForm):
        kind = read.kind or defaults.kind or Kind.CHIP
        read = msgspec.structs.replace(read, kind=kind, release_ns=read.release_ns or None)
    sound = True
    for key, reason in section.objections(read):
        report((*path, key), reason)
        sound = False
    if not sound:
        return None
    values = msgspec.structs.asdict(read)
    del values["enabled"]
    return Entry(read.id, section.rule(**values, file=source.place(path)), source, path)
