"""Reads the rules and patterns of one file into catalog values, with the checks that need only the file."""

from collections.abc import Iterator, Mapping

import msgspec

from nodeagent.core.catalog import (
    SECOND_NS,
    CounterRule,
    DurationRule,
    FrequencyRule,
    Pattern,
    RaisingRule,
    RelationRule,
    ThresholdRule,
)
from nodeagent.core.model import CountedBy, Kind, Level
from nodeagent.tables.entry import Entry, is_removal, removal_is_sound
from nodeagent.tables.levels import objection
from nodeagent.tables.schema import (
    RULE_FORMS,
    CounterForm,
    DurationForm,
    FileForm,
    FrequencyForm,
    PatternForm,
    RelationForm,
    RuleForm,
    ThresholdForm,
)
from nodeagent.tables.templates import pattern_objections
from nodeagent.toml.fields import Report, read_form, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import Source

Rule = FrequencyRule | DurationRule | RaisingRule | RelationRule | Pattern
"""Whatever has an id."""

RELEASE_LEAST_NS = 60 * SECOND_NS

_RULE_OF_FORM: Mapping[type[RuleForm], type[Rule]] = {
    FrequencyForm: FrequencyRule,
    DurationForm: DurationRule,
    ThresholdForm: ThresholdRule,
    CounterForm: CounterRule,
    RelationForm: RelationRule,
    PatternForm: Pattern,
}


def read_rules(source: Source, defaults: FileForm, report: Report) -> list[Entry[Rule]]:
    """Every sound rule and pattern, sort by sort in the order of the file; the others are reported."""
    entries = dict[str, Entry[Rule]]()
    for sort, form in RULE_FORMS.items():
        tables = source.data.get(sort, [])
        if not isinstance(tables, list):
            report((sort,), f"{shown(tables)} stands where tables under [[{sort}]] are needed")
            continue
        for index, table in enumerate(tables):
            entry = _read_entry(source, form, table, (sort, index), defaults, report)
            if entry is not None and (first := entries.setdefault(entry.key, entry)) is not entry:
                report((*entry.path, "id"), f'"{entry.key}" stands already at {first.place}; each id once')
    return list(entries.values())


def _read_entry(
    source: Source, form: type[RuleForm], table: object, path: KeyPath, defaults: FileForm, report: Report
) -> Entry[Rule] | None:
    if is_removal(table):
        identifier = table.get("id")
        if not removal_is_sound(form, table, path, report):
            return None
        if not isinstance(identifier, str):
            report((*path, "id"), "missing; it must be the id of what is to be taken away")
            return None
        return Entry(identifier, None, source, path)
    read = read_form(form, table, path, report)
    if read is None:
        return None
    if isinstance(read, FrequencyForm):
        kind = read.kind or defaults.kind or Kind.CHIP
        read = msgspec.structs.replace(read, kind=kind, release_ns=read.release_ns or None)
    sound = True
    for key, reason in _objections(read):
        report((*path, key), reason)
        sound = False
    if not sound:
        return None
    values = msgspec.structs.asdict(read)
    del values["enabled"]
    return Entry(read.id, _RULE_OF_FORM[form](**values, file=source.place(path)), source, path)


def _objections(form: RuleForm) -> Iterator[tuple[str, str]]:
    """What its types cannot say is wrong with a rule: pairs of key and reason."""
    match form:
        case FrequencyForm():
            yield from _frequency_objections(form)
        case DurationForm():
            yield from _manual_separation(form.level)
            for code in form.codes:
                if code.endswith("*"):
                    yield "codes", f'"{code}": a duration rule must name its codes'
        case ThresholdForm() if form.clear_below > form.above:
            yield "clear_below", f"{form.clear_below}: must not exceed above, {form.above}"
        case RelationForm():
            if form.then == "level" and form.level is None:
                yield "level", 'missing; then = "level" needs one'
            if form.then != "level" and form.level is not None:
                yield "level", f'{form.level}: goes with then = "level" only'
            if form.then != "cancel" and not form.within_ns:
                yield "within", '"0s": only then = "cancel" may reach back however long'
            yield from _manual_separation(form.level)
        case PatternForm():
            yield from pattern_objections(form.code, form.regex, form.device, form.part)


def _frequency_objections(form: FrequencyForm) -> Iterator[tuple[str, str]]:
    kind = form.kind or Kind.CHIP
    if reason := objection(form.level, kind, by_frequency=True):
        yield "level", reason
    if form.at_least is not None and (reason := objection(form.at_least, kind)):
        yield "at_least", reason
    if form.release_ns is None and form.level is not Level.MANUALLY_SEPARATE_NPU:
        reason = "missing; where nobody but a person releases, the level must be ManuallySeparateNPU"
        yield "release_time_window", reason
    if form.release_ns is not None and form.release_ns < RELEASE_LEAST_NS:
        yield "release_time_window", 'must be "60s" or more, or "0s" for never'
    if form.counted_by is not CountedBy.DEVICE and kind is not Kind.CHIP:
        yield "counted_by", f'"{form.counted_by}": only chips have jobs; "device" is right for kind {kind}'
    if form.counted_by is CountedBy.PLACE and "*" in form.codes:
        yield "counted_by", '"place": name the codes whose patterns have a group "place", in place of "*"'
    for code in form.codes:
        if code.endswith("*") and code != "*":
            reason = f'"{code}": codes are counted one by one; name them, or say "*" for every one'
            yield "codes", reason


def _manual_separation(level: Level | None) -> Iterator[tuple[str, str]]:
    if level is Level.MANUALLY_SEPARATE_NPU:
        yield "level", f"{level} may be given by a frequency rule only"
