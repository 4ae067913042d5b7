"""MindCluster's own JSON files in a folder of tables: read as they are, contradictions settled as it does.

They lie over the rows below and under the folder's own TOML. They give levels and rules only; all
else that is known of a code stays as it was.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodeagent.core.catalog.catalog import ClearOn, DurationRule, FrequencyRule, Row
from nodeagent.core.catalog.codes import Decoding, canonical, is_hexadecimal
from nodeagent.core.model import Affects, Kind
from nodeagent.tables.entry import Entry
from nodeagent.tables.levels import LevelSource
from nodeagent.tables.mindcluster import customization
from nodeagent.tables.mindcluster.json_source import read_json
from nodeagent.tables.mindcluster.keys import RefusedKeys
from nodeagent.tables.mindcluster.levels import LEVEL_FILES, Given, read_levels
from nodeagent.tables.rule_kinds import Rule
from nodeagent.toml.problem import Problem

VENDOR = "ascend"
FILES = (*LEVEL_FILES, customization.FILE)

_CLEAR_ON = {
    Kind.CHIP: ClearOn(recover=True, reset=True, reboot=True),
    Kind.UNIFIEDBUS: ClearOn(recover=True, reboot=True),
    Kind.NODE: ClearOn(recover=True, reboot=True),
    Kind.PUBLIC: ClearOn(recover=True, operator=True),
}
_WORDS = {
    Kind.CHIP: "Ascend fault",
    Kind.UNIFIEDBUS: "UnifiedBus switch fault",
    Kind.NODE: "Node event",
    Kind.PUBLIC: "Public fault",
}


@dataclass(slots=True)
class VendorLayer:
    """The levels, by canonical code, and the rules, by id, of all files of one folder.

    ``files`` are the files that were taken, by the kind whose codes they list; ``rule_file`` is the one with
    rules. ``whole`` is false where one was refused.
    """

    levels: dict[str, Given] = field(default_factory=dict)
    rules: dict[str, Entry[Rule]] = field(default_factory=dict)
    files: dict[Kind, str] = field(default_factory=dict)
    rule_file: str = ""
    whole: bool = True


def read_vendor_files(
    paths: Iterable[Path], report: Callable[[Problem], None], warn: Callable[[str], None]
) -> VendorLayer:
    """Every file of ``paths``, known by its name; another ``*.json`` file is warned of and left alone."""
    layer = VendorLayer()
    for path in sorted(paths, key=_order):
        if path.name not in FILES:
            warn(f"{path}: not one of MindCluster's files, which are {', '.join(FILES)}; ignored")
            continue
        source = read_json(path, report, warn)
        if source is None:
            layer.whole = False
            continue
        try:
            if path.name == customization.FILE:
                layer.rules = customization.read_rules(source, warn)
                layer.rule_file = source.file
            elif (given := read_levels(source, LEVEL_FILES[path.name], warn)) is not None:
                _take_levels(layer, given, warn)
                layer.files[LEVEL_FILES[path.name].kind] = source.file
        except RefusedKeys as refused:
            report(source.problem(refused.path, str(refused)))
            layer.whole = False
    return layer


def _order(path: Path) -> tuple[int, str]:
    return (FILES.index(path.name) if path.name in FILES else len(FILES), path.name)


def _take_levels(layer: VendorLayer, given: Mapping[str, Given], warn: Callable[[str], None]) -> None:
    for key, found in given.items():
        first = layer.levels.setdefault(key, found)
        if first is not found:
            where = f"has the same value as {first.code} at {first.source.place(first.path)}, which counts"
            warn(str(found.source.problem(found.path, where)))


def lay_over(
    rows: dict[str, Entry[Row]], layer: VendorLayer, decoding: Decoding, warn: Callable[[str], None]
) -> None:
    """Gives the rows the levels of the layer, and codes without a row one.

    Rules of the layer lose the codes that are no chip's.
    """
    _warn_of_codes_left(rows, layer, warn)
    for key, given in layer.levels.items():
        below = rows.get(key)
        row = below.value if below is not None else None
        if row is not None and row.kind is not given.kind:
            reason = f"{row.code} is of kind {row.kind} at {row.file}; this level is not taken"
            warn(str(given.source.problem(given.path, reason)))
            continue
        made = _new_row(given, decoding) if row is None else row
        if made.level is not given.level:
            made = replace(made, level=given.level, level_source=LevelSource.MINDCLUSTER, level_reason="")
        made = replace(made, file=given.source.place(given.path))
        rows[key] = Entry(key, made, given.source, given.path, strict=False)
    layer.rules = {
        key: kept
        for key, entry in layer.rules.items()
        if (kept := _about_chips(entry, rows, decoding, warn)) is not None
    }


def _warn_of_codes_left(
    rows: Mapping[str, Entry[Row]], layer: VendorLayer, warn: Callable[[str], None]
) -> None:
    """Warn of codes that such a file lists; codes of the kernel log are not MindCluster's."""
    forms = {form.kind: form for form in LEVEL_FILES.values()}
    for kind, file in layer.files.items():
        left = sum(
            1
            for key, entry in rows.items()
            if (row := entry.value) is not None
            and (row.kind, row.vendor) == (kind, VENDOR)
            and not forms[kind].objection(row.code)
            and key not in layer.levels
        )
        if left:
            warn(f"{file}: codes of kind {kind} that are not in it and keep their level: {left}")


def _about_chips(
    entry: Entry[Rule], rows: Mapping[str, Entry[Row]], decoding: Decoding, warn: Callable[[str], None]
) -> Entry[Rule] | None:
    """The rule without the codes of other kinds and those of which nothing at all is known."""
    rule = entry.value
    if not isinstance(rule, FrequencyRule | DurationRule):
        return entry
    codes = list[str]()
    for code in rule.codes:
        row = below.value if (below := rows.get(canonical(code))) is not None else None
        known = row.kind is Kind.CHIP if row is not None else decoding.name(code) is not None
        if known:
            codes.append(code)
        else:
            reason = "no row has this code" if row is None else f"the code is of kind {row.kind}"
            warn(f"{entry.place}: {rule.id} names {code}: {reason}; skipped")
    if not codes:
        return None
    return replace(entry, value=replace(rule, codes=tuple(codes)))


def _new_row(given: Given, decoding: Decoding) -> Row:
    """A row for a code that only the site's file knows."""
    code = given.code if given.kind is Kind.UNIFIEDBUS else given.code.upper()
    decoded = decoding.name(code) if given.kind is Kind.CHIP else None
    return Row(
        code=code,
        kind=given.kind,
        vendor=VENDOR,
        name=decoded or f"{_WORDS[given.kind]} {code}",
        level=given.level,
        affects=Affects.NODE if given.kind is Kind.UNIFIEDBUS else Affects.SELF,
        clear_on=_CLEAR_ON[given.kind],
        description="This site's MindCluster files give the code a level; nothing else is known of it here.",
        action="Look it up in the vendor's documents.",
        level_source=LevelSource.MINDCLUSTER,
    )


def warn_of_rules_left(below: Iterable[Entry[Rule]], layer: VendorLayer, warn: Callable[[str], None]) -> None:
    """A rule that the file does not repeat stays, for the codes that the file's own rules do not name.

    One that counts only what comes in use has no like in such a file, so none leaves it out.
    """
    if not layer.rule_file:
        return
    below = [entry for entry in below if not (isinstance(entry.value, FrequencyRule) and entry.value.in_use)]
    lower, own = [entry.value for entry in below], [entry.value for entry in layer.rules.values()]
    for kind, left in (
        ("frequency", _named(lower, FrequencyRule) - _named(own, FrequencyRule)),
        ("duration", _named(lower, DurationRule) - _named(own, DurationRule)),
    ):
        if left:
            warn(f"{layer.rule_file}: codes that keep a {kind} rule which is not in it: {len(left)}")


def _named(rules: Iterable[Rule | None], section: type[FrequencyRule | DurationRule]) -> set[str]:
    """The codes of chips, which are numbers, that rules of this kind name."""
    return {
        canonical(code)
        for rule in rules
        if isinstance(rule, section)
        for code in rule.codes
        if is_hexadecimal(code)
    }
