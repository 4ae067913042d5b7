"""Lays folders of tables over one another: within a folder the stricter row wins, a later folder wins always.

MindCluster's JSON files in a folder lie under its TOML. It reads the folders' files and does not ask whether
the result makes sense: that is ``check``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.catalog.codes import Decoding, canonical
from nodeagent.tables.entry import Entry, Overlay, SourceAbove
from nodeagent.tables.levels import is_stricter
from nodeagent.tables.mindcluster.files import VendorLayer, lay_over, read_vendor_files, warn_of_rules_left
from nodeagent.tables.overlays import lay_over_rows, lay_over_rules
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule
from nodeagent.tables.sections import decoding, sources
from nodeagent.tables.sections.rows import read_rows
from nodeagent.tables.sections.rules import read_rules
from nodeagent.tables.sections.schema import FileForm
from nodeagent.tables.sections.sources import Traits
from nodeagent.toml.fields import read_form, refuse_unknown_keys
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem
from nodeagent.toml.source import ParsedFile, files_of, read_source

FILES_PER_FOLDER = 256

_HEAD_KEYS = ("kind", "vendor", "affects", "recovery", "level_source")
_FILE_KEYS = (*_HEAD_KEYS, "codes", "decode", "sources", *RULE_SECTIONS)


@dataclass(slots=True)
class Layer:
    """The entries of all files of one folder. Rows by canonical code, rules by id, in the order read.

    ``overlays`` change single keys of what lies below, of this folder's too. ``vendor`` is what lies under
    them. ``refused`` are the codes whose rows were not sound; ``whole`` is false where a file could not be
    read.
    """

    rows: dict[str, Entry[Row]] = field(default_factory=dict)
    rules: dict[str, Entry[Rule]] = field(default_factory=dict)
    overlays: list[Overlay] = field(default_factory=list)
    decoding: Decoding = field(default_factory=Decoding)
    sources: Traits = field(default_factory=dict)
    vendor: VendorLayer = field(default_factory=VendorLayer)
    refused: set[str] = field(default_factory=set)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Merged:
    """All layers together. ``removed`` are the codes that a layer took away, with the place that does it.

    ``refused`` and ``whole`` as in the layers: what names a refused code is not wrong for that.
    """

    rows: Mapping[str, Entry[Row]]
    rules: tuple[Entry[Rule], ...]
    decoding: Decoding
    sources: Traits
    removed: Mapping[str, str]
    refused: frozenset[str]
    whole: bool


def read_layer(
    folder: Path,
    report: Callable[[Problem], None],
    warn: Callable[[str], None],
    *,
    over_others: bool = False,
) -> Layer:
    """Every ``*.toml`` file of the folder, in the order of their names, over MindCluster's ``*.json`` files.

    Dot files are no tables. ``over_others``: there are layers below, of which rows and rules may be changed.
    """
    paths = table_files(folder, report)
    vendor = read_vendor_files([path for path in paths if path.suffix == ".json"], report, warn)
    layer = Layer(vendor=vendor, whole=vendor.whole)
    for path in paths:
        if path.suffix != ".toml":
            continue
        if (source := read_source(path, report)) is not None:
            if over_others:
                source = SourceAbove(source.file, source.data, source.lines)
            _take_file(layer, source, report, warn)
        else:
            layer.whole = False
    return layer


def merge(layers: Sequence[Layer], report: Callable[[Problem], None], warn: Callable[[str], None]) -> Merged:
    """A later layer wins per row and per id. Its rules come first: the first that names a code counts.

    A rule that an overlay has changed stays in its place.
    """
    rows, removed = dict[str, Entry[Row]](), dict[str, str]()
    merged_decoding = decoding.merged([layer.decoding for layer in layers])
    for number, layer in enumerate(layers, start=1):
        lay_over(rows, layer.vendor, merged_decoding, warn)
        for key, entry in layer.rows.items():
            if entry.value is not None:
                rows[key] = _with_level(entry, entry.value, rows.get(key))
                removed.pop(key, None)
            elif rows.pop(key, None) is not None:
                removed[key] = entry.place
            else:
                warn(f"{entry.place}: {entry.path[-1]}: enabled = false, but there is no such row")
        of_rows = [overlay for overlay in layer.overlays if overlay.section == "codes"]
        layer.refused |= lay_over_rows(rows, of_rows, report, warn)
        below = [rules for each in layers[:number] for rules in (each.vendor.rules, each.rules)]
        lay_over_rules(below, [each for each in layer.overlays if each.section != "codes"], report, warn)
    latest = dict[str, Entry[Rule]]()
    for layer in reversed(layers):
        for key, rule in (*layer.rules.items(), *layer.vendor.rules.items()):
            latest.setdefault(key, rule)
    _warn_of_rules(layers, warn)
    return Merged(
        rows=rows,
        rules=tuple(rule for rule in latest.values() if rule.value is not None),
        decoding=merged_decoding,
        sources=sources.merged([layer.sources for layer in layers]),
        removed=removed,
        refused=frozenset().union(*(layer.refused for layer in layers)),
        whole=all(layer.whole for layer in layers),
    )


def _with_level(entry: Entry[Row], row: Row, below: Entry[Row] | None) -> Entry[Row]:
    """A row without a level changes none."""
    if entry.has_level or below is None or below.value is None or below.value.kind is not row.kind:
        return entry
    return replace(entry, value=replace(row, level=below.value.level))


def _warn_of_rules(layers: Sequence[Layer], warn: Callable[[str], None]) -> None:
    """Warn of rules that take away what is not there, and of those that a vendor's file leaves in force."""
    earlier = dict[str, Entry[Rule]]()
    for layer in layers:
        warn_of_rules_left(earlier.values(), layer.vendor, warn)
        earlier.update(layer.vendor.rules)
        for key, rule in layer.rules.items():
            if rule.value is None and key not in earlier:
                warn(f'{rule.place}: "{key}": enabled = false, but there is no such rule')
        earlier.update(layer.rules)


def table_files(folder: Path, report: Callable[[Problem], None]) -> list[Path]:
    """Those of the folder that are read, in the order of their names; none after having reported why."""
    return files_of(folder, (".toml", ".json"), FILES_PER_FOLDER, "tables", report)


def _take_file(
    layer: Layer, source: ParsedFile, report: Callable[[Problem], None], warn: Callable[[str], None]
) -> None:
    def report_key(path: KeyPath, reason: str) -> None:
        report(source.problem(path, reason))

    refuse_unknown_keys(source.data, _FILE_KEYS, (), report_key)
    head = {key: source.data[key] for key in _HEAD_KEYS if key in source.data}
    defaults = read_form(FileForm, head, (), report_key) or FileForm()
    rows = read_rows(source, defaults, report_key)
    layer.decoding = decoding.merged([layer.decoding, decoding.read_decoding(source, report_key)])
    layer.sources = sources.merged([layer.sources, sources.read_sources(source, report_key)])
    if isinstance(tables := source.data.get("codes"), Mapping):
        layer.refused.update(map(canonical, tables))
        layer.refused.difference_update(row.key for row in rows)
    for row in rows:
        if isinstance(row, Overlay):
            _take_overlay(layer, row, report_key)
            continue
        first_row = layer.rows.setdefault(row.key, row)
        if first_row is not row:
            layer.rows[row.key] = _stricter(first_row, row, warn)
    for rule in read_rules(source, defaults, report_key):
        if isinstance(rule, Overlay):
            _take_overlay(layer, rule, report_key)
        elif (first := layer.rules.setdefault(rule.key, rule)) is not rule:
            report_key((*rule.path, "id"), f'"{rule.key}" is defined already at {first.place}; each id once')


def _take_overlay(layer: Layer, overlay: Overlay, report: Callable[[KeyPath, str], None]) -> None:
    """Files of a folder may change different keys of one row."""
    for other in layer.overlays:
        if (other.section, other.key) == (overlay.section, overlay.key):
            for key in overlay.table.keys() & other.table.keys() - {"id"}:
                place = other.source.place((*other.path, key))
                report((*overlay.path, key), f"is set already at {place}; each key once in a folder")
    layer.overlays.append(overlay)


def _stricter(first: Entry[Row], second: Entry[Row], warn: Callable[[str], None]) -> Entry[Row]:
    if first.value is None or second.value is None:
        wins = second if first.value is None else first
    else:
        wins = second if is_stricter(second.value.level, first.value.level) else first
    loses = first if wins is second else second
    warn(
        f"{loses.place}: {loses.path[-1]} is defined also at {wins.place}; the stricter counts:"
        f" {_level(wins)}, not {_level(loses)}"
    )
    return wins


def _level(entry: Entry[Row]) -> str:
    return "enabled = false" if entry.value is None else str(entry.value.level)
