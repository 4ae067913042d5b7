"""Checks what no entry can show alone: codes without a row, wrong levels, rows that nothing closes."""

from collections.abc import Callable, Iterable

from nodeagent.core.catalog.catalog import Catalog, CommonCauseRule, FrequencyRule, Pattern, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import Assertion, CountedBy, Kind, Level
from nodeagent.core.rules.windows import PLACE
from nodeagent.tables.entry import Entry
from nodeagent.tables.layers import Merged
from nodeagent.tables.levels import is_stricter, objection
from nodeagent.tables.patterns.templates import produces
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule, RuleSection, sort_of
from nodeagent.toml.problem import Problem

_CODES_NAMED = 4
_OF_THE_NODE = (Kind.HOST, Kind.NODE)

Report = Callable[[Problem], None]
Warn = Callable[[str], None]


def check(merged: Merged, catalog: Catalog, report: Report, warn: Warn) -> None:
    """Reports what makes the tables unfit, and warns of what is allowed but unlikely to be intended."""
    for rule in merged.rules:
        _check_codes(rule, merged, catalog, report, warn)
        _check_places(rule, catalog, report)
        _check_levels(rule, catalog, report)
        _check_of_the_node(rule, catalog, report)
    for section in RULE_SECTIONS.values():
        if section.first_counts:
            _warn_of_shared_codes(merged, section, warn)
    for row in merged.rows.values():
        _check_closing(row, catalog, report, warn)


def _check_codes(rule: Entry[Rule], merged: Merged, catalog: Catalog, report: Report, warn: Warn) -> None:
    for key, code in _named_codes(rule.value):
        key_of_code = canonical(code)
        if code.endswith("*") or key_of_code in merged.refused or catalog.row(code) is not None:
            continue
        if (place := merged.removed.get(key_of_code)) is not None:
            warn(f"{rule.place}: {rule.key} names {code}, which {place} takes away")
        elif (name := catalog.decoding.name(code)) is not None:
            warn(f"{rule.place}: {rule.key} names {code} ({name}), which has no row")
        else:
            report(rule.source.problem((*rule.path, key), f'"{code}": no row has this code'))
    if isinstance(rule.value, Pattern):
        for key, template in zip(("code", "unnamed"), rule.value.codes, strict=False):
            _check_template(rule, key, template, merged, catalog, report, warn)


def _check_template(
    rule: Entry[Rule], key: str, template: str, merged: Merged, catalog: Catalog, report: Report, warn: Warn
) -> None:
    """Some row must have a code that the pattern's template can produce."""
    if catalog.row(template) is not None:
        return
    codes = (*(row.code for row in catalog.rows.values()), *merged.refused)
    if any(produces(template, code) for code in codes):
        return
    if any(produces(template, code) for code in merged.removed):
        warn(f"{rule.place}: {rule.key} produces only codes that are taken away")
    else:
        reason = f'"{template}": no row has a code that this could produce'
        report(rule.source.problem((*rule.path, key), reason))


def _check_places(rule: Entry[Rule], catalog: Catalog, report: Report) -> None:
    """A rule that counts by place needs lines that name one."""
    value = rule.value
    if not isinstance(value, FrequencyRule) or value.counted_by is not CountedBy.PLACE:
        return
    naming = [pattern for pattern in catalog.patterns if f"(?P<{PLACE}>" in pattern.regex + pattern.find]
    for code in value.codes:
        if not any(produces(template, code) for pattern in naming for template in pattern.codes):
            reason = f'"place": no pattern of {code} has a group "{PLACE}", so that nothing would be counted'
            report(rule.source.problem((*rule.path, "counted_by"), reason))


def _named_codes(rule: Rule | None) -> Iterable[tuple[str, str]]:
    """Pairs of the key and a code it names."""
    return () if rule is None else sort_of(rule).codes(rule)


def _check_levels(rule: Entry[Rule], catalog: Catalog, report: Report) -> None:
    """The level of a rule must be one that each code it names may have."""
    value = rule.value
    level = getattr(value, "level", None)
    if level is None:
        return
    codes = [code for key, code in _named_codes(value) if key != "with"]
    kinds = {row.kind: code for code in codes if code != "*" and (row := catalog.row(code)) is not None}
    for kind, code in kinds.items():
        if reason := objection(level, kind, by_frequency=isinstance(value, FrequencyRule)):
            report(rule.source.problem((*rule.path, "level"), f"{reason} ({code} is of that kind)"))


def _check_of_the_node(rule: Entry[Rule], catalog: Catalog, report: Report) -> None:
    """What a common cause raises is a fault of the node, not of one of its chips."""
    value = rule.value
    row = catalog.row(value.code) if isinstance(value, CommonCauseRule) else None
    if row is not None and row.kind not in _OF_THE_NODE:
        kinds = " or ".join(_OF_THE_NODE)
        reason = f"{row.code} is of kind {row.kind}; what several devices share is the node's: {kinds}"
        report(rule.source.problem((*rule.path, "code"), reason))


def _warn_of_shared_codes(merged: Merged, section: RuleSection, warn: Warn) -> None:
    """The first rule that names a code counts; a later one is dead for it.

    That a vendor's file of the site replaces shipped rules is its purpose, and is not warned of.
    """
    first_of = dict[str, Entry[Rule]]()
    for rule in merged.rules:
        if not isinstance(rule.value, section.rule):
            continue
        shared = dict[str, list[str]]()
        for _, code in _named_codes(rule.value):
            first = first_of.setdefault(canonical(code), rule)
            replaced = rule.strict and not first.strict
            if first is not rule and code != "*" and not replaced:
                shared.setdefault(f"{first.key} at {first.place}", []).append(code)
        for counts, codes in shared.items():
            message = f"{section.key} rule {rule.key} names {_some(codes)}, but {counts} counts for it"
            warn(f"{rule.place}: {message}")


def _some(codes: list[str]) -> str:
    more = f" and {len(codes) - _CODES_NAMED} more" if len(codes) > _CODES_NAMED else ""
    return ", ".join(codes[:_CODES_NAMED]) + more


def _check_closing(entry: Entry[Row], catalog: Catalog, report: Report, warn: Warn) -> None:
    """A fault that kernel lines open recovers only if a pattern names the line that reports it."""
    row = entry.value
    if row is None or row.notice:
        return
    clear_on = row.clear_on
    may_reset = row.kind is Kind.CHIP and (clear_on.reset or clear_on.job_end)
    by_quiet = clear_on.quiet_ns is not None and not row.levels
    if clear_on.reboot or clear_on.operator or by_quiet or may_reset:
        return
    patterns = [
        rule for rule in catalog.patterns if any(produces(template, row.code) for template in rule.codes)
    ]
    by_pattern = next((rule.id for rule in patterns if rule.assertion is not Assertion.RECOVER), None)
    recovers = by_pattern is None or any(rule.assertion is Assertion.RECOVER for rule in patterns)
    if clear_on.recover and recovers:
        return
    if clear_on.recover:
        reason = f"nothing could close it: kernel lines ({by_pattern}) never report a recovery"
    else:
        reason = f"nothing could close it: kind {row.kind} has no reset and no jobs"
    problem = entry.source.problem(
        (*entry.path, "clear_on"), f"{reason}; add reboot, operator or a quiet time"
    )
    if any(is_stricter(level, Level.SUB_HEALTH) for level in (row.level, *row.levels.values())):
        report(problem)
    else:
        warn(str(problem))
