"""Reads MindCluster's ``faultCustomization.json`` into rules: one that is not sound is skipped as a whole.

Its grace times are not read: how long work is given is this daemon's own configuration.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.core.catalog.catalog import DurationRule, FrequencyRule
from nodeagent.core.catalog.codes import canonical, is_hexadecimal
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Kind, Level
from nodeagent.tables.entry import Entry
from nodeagent.tables.levels import LEVELS_OF_KIND
from nodeagent.tables.mindcluster.keys import RefusedKeys, entries, fields
from nodeagent.tables.rule_kinds import Rule
from nodeagent.toml.fields import shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import ParsedFile

FILE = "faultCustomization.json"
RULES_LIMIT = 4096

_NEVER_S = 4_294_967_296
_GRACE_S = {"waitprocessreadcmtime": 30, "waitdeviceresettime": 150, "waitfaultselfhealingtime": 15}
_SECTIONS = ("gracetolerance", "faultfrequency", "faultduration")

Warn = Callable[[str], None]


class _Skipped(Exception):
    """The rule is not sound. ``key`` is the field, str() what is wrong."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


def read_rules(source: ParsedFile, warn: Warn) -> dict[str, Entry[Rule]]:
    """The rules by id. Raises Refused where the file is not in the vendor's form at all."""
    top = fields(source.data, ())
    for lower, (key, _) in top.items():
        if lower not in _SECTIONS:
            warn(str(source.problem((key,), "not a key of this file; ignored")))
    _look_at_grace(source, *top.get("gracetolerance", ("GraceTolerance", None)), warn)
    read = dict[str, Entry[Rule]]()
    for lower, name, build in (
        ("faultfrequency", "frequency", _frequency),
        ("faultduration", "duration", _duration),
    ):
        section, tables = top.get(lower, (lower, None))
        taken = dict[str, int]()
        for index, table in enumerate(_tables(tables, (section,))):
            path: KeyPath = (section, index)
            try:
                given = fields(table, path)
                codes = _codes(source, given, path, taken, warn)
                identifier = f"mindcluster-{name}-{index + 1}"
                rule = build(identifier, codes, given, source.place(path))
            except (_Skipped, RefusedKeys) as error:
                at = error.path if isinstance(error, RefusedKeys) else (*path, error.key)
                warn(str(source.problem(at, f"{error}; the whole rule is skipped")))
                continue
            for code in codes:
                taken[canonical(code)] = index
            read[rule.id] = Entry(rule.id, rule, source, path, strict=False)
    return read


def _tables(value: object, path: KeyPath) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > RULES_LIMIT:
        raise RefusedKeys(path, f"{shown(value)} is given where a list of rules is needed")
    return value


def _codes(
    source: ParsedFile,
    given: Mapping[str, tuple[str, Any]],
    path: KeyPath,
    taken: Mapping[str, int],
    warn: Warn,
) -> tuple[str, ...]:
    """The codes that no earlier rule has: the first that names a code counts."""
    key, value = given.get("eventid", ("EventId", None))
    codes = dict[str, str]()
    for written in entries(value, (*path, key)):
        code = written.strip().upper()
        at = (*path, key, written)
        if not is_hexadecimal(code):
            warn(str(source.problem(at, "not a code of eight or nine hexadecimal digits; skipped")))
        elif (earlier := taken.get(canonical(code))) is not None:
            warn(str(source.problem(at, f"rule {earlier} names it already, and the first counts")))
        elif canonical(code) in codes:
            warn(str(source.problem(at, "appears twice in this rule; once is enough")))
        else:
            codes[canonical(code)] = code
    if not codes:
        raise _Skipped(key, "names no code")
    return tuple(codes.values())


def _frequency(
    identifier: str, codes: tuple[str, ...], given: Mapping[str, tuple[str, Any]], place: str
) -> Rule:
    level = _level(given, (*LEVELS_OF_KIND[Kind.CHIP], Level.MANUALLY_SEPARATE_NPU))
    release_s = _whole(given, "ReleaseTimeWindow", 0, _NEVER_S)
    if 0 < release_s < 60:
        raise _Skipped("ReleaseTimeWindow", f"{release_s}: must be 0 or from 60 to {_NEVER_S} seconds")
    if release_s in (0, _NEVER_S) and level is not Level.MANUALLY_SEPARATE_NPU:
        raise _Skipped("ReleaseTimeWindow", f"missing; {level} must be released some time")
    return FrequencyRule(
        id=identifier,
        codes=codes,
        times=_whole(given, "Times", 1, 100),
        time_window_ns=_whole(given, "TimeWindow", 60, 864_000) * SECOND_NS,
        level=level,
        release_ns=None if release_s in (0, _NEVER_S) else release_s * SECOND_NS,
        file=place,
    )


def _duration(
    identifier: str, codes: tuple[str, ...], given: Mapping[str, tuple[str, Any]], place: str
) -> Rule:
    return DurationRule(
        id=identifier,
        codes=codes,
        fault_timeout_ns=_whole(given, "FaultTimeout", 0, 600) * SECOND_NS,
        recover_timeout_ns=_whole(given, "RecoverTimeout", 0, 86_400) * SECOND_NS,
        level=_level(given, LEVELS_OF_KIND[Kind.CHIP]),
        file=place,
    )


def _whole(given: Mapping[str, tuple[str, Any]], name: str, least: int, most: int) -> int:
    """A field that is absent is 0, as for the vendor, which may be out of range."""
    key, value = given.get(name.lower(), (name, 0))
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _Skipped(key, f"{shown(value)}: must be a whole number from {least} to {most}")
    return value


def _level(given: Mapping[str, tuple[str, Any]], allowed: tuple[Level, ...]) -> Level:
    key, value = given.get("faulthandling", ("FaultHandling", ""))
    for level in allowed:
        if level == value:
            return level
    raise _Skipped(key, f"{shown(value)}: must be one of {', '.join(allowed)}")


def _look_at_grace(source: ParsedFile, key: str, value: object, warn: Warn) -> None:
    if value is None:
        return
    given = {lower: item for lower, (_, item) in fields(value, (key,)).items()}
    if given != _GRACE_S:
        reason = "grace times are not read from here: nodeagent's own configuration has them"
        warn(str(source.problem((key,), reason)))
