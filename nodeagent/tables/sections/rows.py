"""Reads the ``[codes.X]`` tables of one file into catalog rows, with the checks that need only the file."""

import re
from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog.catalog import EACH_DETAIL, ClearOn, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import Kind, Level
from nodeagent.tables.entry import Entry, Overlay, SourceAbove, is_removal, removal_is_sound
from nodeagent.tables.levels import DEFAULT, KINDS_OF_CODES, objection
from nodeagent.tables.sections.schema import CODE_PATTERN, FileForm, RowForm
from nodeagent.toml.fields import Report, missing_keys, nearest, read_form, read_given, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import ParsedFile
from nodeagent.toml.values import parse_duration_ns

_CLEAR_CAUSES = ("recover", "reset", "reboot", "job_end", "operator")
_CODE = re.compile(CODE_PATTERN)
_PROSE = ("description", "action", "level_reason")


def read_rows(source: ParsedFile, defaults: FileForm, report: Report) -> list[Entry[Row] | Overlay]:
    """Every sound row; what is wrong with the others is reported.

    In a file above others a row without a name or a kind is an overlay.
    """
    tables = source.data.get("codes", {})
    if not isinstance(tables, Mapping):
        report(("codes",), f"{shown(tables)} is given where tables such as [codes.80E18005] are needed")
        return []
    first_of = dict[str, str]()
    entries = list[Entry[Row] | Overlay]()
    for code, table in tables.items():
        path, key = ("codes", code), canonical(code)
        if _CODE.fullmatch(code) is None:
            report(path, 'not a code: 1 to 64 characters without blanks, of which only the last may be "*"')
        elif (first := first_of.setdefault(key, code)) != code:
            report(path, f"the same code as {first} at {source.place(('codes', first))}; keep one")
        elif is_removal(table):
            if removal_is_sound(RowForm, table, path, report):
                entries.append(Entry(key, None, source, path))
        elif isinstance(source, SourceAbove) and isinstance(table, Mapping) and _lacks_keys(table, defaults):
            if (values := read_given(RowForm, table, path, report)) is not None:
                entries.append(Overlay(key, "codes", values, source, path, defaults))
        elif (row := _read_row(source, path, table, defaults, report)) is not None:
            entries.append(Entry(key, row, source, path, has_level="level" in table))
    return entries


def _lacks_keys(table: Mapping[str, object], defaults: FileForm) -> bool:
    """Keys without which it is no row by itself."""
    return bool(missing_keys(RowForm, table)) or (defaults.kind is None and "kind" not in table)


def read_row(overlay: Overlay, report: Report) -> Row | None:
    """The overlay as a row of its own, as which it lacks keys: they are reported."""
    return _read_row(overlay.source, overlay.path, overlay.table, overlay.defaults, report)


def changed_row(below: Row, overlay: Overlay, report: Report) -> Row | None:
    """``below`` with the keys of the overlay; None after having reported why it cannot be.

    If the level changes, who chose the level below no longer counts.
    """
    given, path, sound = dict(overlay.values), overlay.path, True
    given.pop("enabled", None)
    kind, level = given.get("kind", below.kind), given.get("level", below.level)
    if reason := objection(level, kind):
        report((*path, "level" if "level" in given else "kind"), reason)
        sound = False
    for detail, other in below.levels.items() if kind is not below.kind else ():
        if reason := objection(other, kind):
            report((*path, "kind"), f"levels.{detail}: {reason}")
            sound = False
    if "levels" in given:
        own = _read_levels(given["levels"], kind, (*path, "levels"), report)
        given["levels"] = None if own is None else {**below.levels, **own}
    if "clear_on" in given:
        given["clear_on"] = _read_clear_on(given["clear_on"], (*path, "clear_on"), report)
    if not sound or None in given.values():
        return None
    if level is not below.level:
        given = {"level_source": overlay.defaults.level_source or "", "level_reason": "", **given}
    texts = {key: value.strip() for key, value in given.items() if key in _PROSE}
    return replace(below, **{**given, **texts}, file=overlay.place)


def _read_row(
    source: ParsedFile, path: KeyPath, table: object, defaults: FileForm, report: Report
) -> Row | None:
    code = str(path[-1])
    form = read_form(RowForm, table, path, report)
    if form is None:
        return None
    clear_on = _read_clear_on(form.clear_on, (*path, "clear_on"), report)
    kind = form.kind or defaults.kind
    if kind is None:
        known = ", ".join(KINDS_OF_CODES)
        report((*path, "kind"), f"missing here and at the top of the file; it must be one of {known}")
        return None
    level = form.level or DEFAULT
    if reason := objection(level, kind):
        report((*path, "level"), reason if form.level else f"missing, and {reason}")
        return None
    levels = _read_levels(form.levels, kind, (*path, "levels"), report)
    if clear_on is None or levels is None:
        return None
    return Row(
        code=code,
        kind=kind,
        vendor=defaults.vendor if form.vendor is None else form.vendor,
        name=form.name,
        level=level,
        levels=levels,
        notice=form.notice,
        user_induced=form.user_induced,
        recovery=form.recovery or defaults.recovery,
        affects=form.affects or defaults.affects,
        clear_on=clear_on,
        description=form.description.strip(),
        action=form.action.strip(),
        level_source=form.level_source or defaults.level_source or "",
        level_reason=form.level_reason.strip(),
        file=source.place(path),
    )


def _read_levels(
    by_detail: Mapping[str, Level], kind: Kind, path: KeyPath, report: Report
) -> dict[str, Level] | None:
    """The levels by detail in capitals, as codes are compared."""
    sound = True
    for detail, level in by_detail.items():
        reason = objection(level, kind)
        if detail != EACH_DETAIL and not _is_detail(detail):
            reason = 'not a detail: what follows the last point of a code, without blanks; or "*" for each'
        if reason:
            report((*path, detail), reason)
            sound = False
    return {detail.upper(): level for detail, level in by_detail.items()} if sound else None


def _is_detail(text: str) -> bool:
    return "." not in text and not text.endswith("*") and _CODE.fullmatch(text) is not None


def _read_clear_on(causes: tuple[str, ...], path: KeyPath, report: Report) -> ClearOn | None:
    if not causes:
        report(path, "empty: nothing could ever close the fault")
        return None
    flags = {cause: True for cause in causes if cause in _CLEAR_CAUSES}
    quiet_times = [cause for cause in causes if cause not in _CLEAR_CAUSES]
    quiet_ns, sound = None, True
    for cause in quiet_times:
        try:
            quiet_ns = parse_duration_ns(cause)
        except ValueError:
            reason = f'neither a quiet time such as "10m" nor a known cause; {nearest(cause, _CLEAR_CAUSES)}'
            report(path, f"{shown(cause)}: {reason}")
            sound = False
    if sound and (len(quiet_times) > 1 or quiet_ns == 0):
        report(path, f"{shown(quiet_times[-1])}: there may be one quiet time, longer than zero")
        sound = False
    return ClearOn(**flags, quiet_ns=quiet_ns) if sound else None
