"""Reads the files in which MindCluster lists codes by level, and settles what is contradictory as it does.

It gives the level of a code and nothing else; the rows have the rest.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from nodeagent.core.catalog.codes import canonical, is_hexadecimal
from nodeagent.core.model import Kind, Level
from nodeagent.tables.levels import is_stricter
from nodeagent.tables.mindcluster.keys import RefusedKeys, entries, fields
from nodeagent.tables.sections.sources import NETWORK_CODES
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import ParsedFile

_RESTARTS = frozenset(
    (Level.RESTART_REQUEST, Level.RESTART_BUSINESS, Level.FREE_RESTART_NPU, Level.RESTART_NPU)
)
"""No reset mends a network port, so no such level is allowed for its faults."""

_SWITCH_CODE_LENGTH = 50
_NODE_CODE = re.compile(r"[0-9A-Za-z]{8}")
_PUBLIC_CODE = re.compile(r"[0-9A-Za-z]{9}")
_SWITCH_CODE = re.compile(r"\[[!-)+~\-./0-Z^-z]*(?:,[!-)+~\-./0-Z^-z]*){3}\]")

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Given:
    """The level that a file gives to a code."""

    code: str
    kind: Kind
    level: Level
    source: ParsedFile
    path: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFile:
    """One of MindCluster's files: where its lists are, the level of each, and what a code must look like.

    ``other_keys``: keys that are known and give no levels. ``one_level``: the file is taken whole or
    not at all. ``unusable``: lists whose level this kind does not have here.
    """

    kind: Kind
    lists: Mapping[str, Level]
    objection: Callable[[str], str]
    within: str = ""
    other_keys: frozenset[str] = frozenset()
    unusable: frozenset[str] = frozenset()
    one_level: bool = False


def _chip(code: str) -> str:
    return "" if is_hexadecimal(code) else "not a code of eight or nine hexadecimal digits"


def _switch(code: str) -> str:
    sound = len(code) <= _SWITCH_CODE_LENGTH and _SWITCH_CODE.fullmatch(code) is not None
    return "" if sound else "not a switch code such as [0x08520003,na,L2,na], of at most 50 characters"


def _node(code: str) -> str:
    return "" if _NODE_CODE.fullmatch(code) else "not a code of eight letters and digits"


def _public(code: str) -> str:
    return "" if _PUBLIC_CODE.fullmatch(code) else "not a code of nine letters and digits"


LEVEL_FILES: Mapping[str, LevelFile] = {
    "faultCode.json": LevelFile(
        kind=Kind.CHIP,
        lists={
            "NotHandleFaultCodes": Level.NOT_HANDLE,
            "SubHealthFaultCodes": Level.SUB_HEALTH,
            "RestartRequestCodes": Level.RESTART_REQUEST,
            "RestartBusinessCodes": Level.RESTART_BUSINESS,
            "FreeRestartNPUCodes": Level.FREE_RESTART_NPU,
            "RestartNPUCodes": Level.RESTART_NPU,
            "PreSeparateNPUCodes": Level.PRE_SEPARATE_NPU,
            "SeparateNPUCodes": Level.SEPARATE_NPU,
            "NotHandleFaultNetworkCodes": Level.NOT_HANDLE,
            "SubHealthFaultNetworkCodes": Level.SUB_HEALTH,
            "PreSeparateNPUNetworkCodes": Level.PRE_SEPARATE_NPU,
            "SeparateNPUNetworkCodes": Level.SEPARATE_NPU,
        },
        objection=_chip,
    ),
    "SwitchFaultCode.json": LevelFile(
        kind=Kind.UNIFIEDBUS,
        lists={
            "NotHandleFaultCodes": Level.NOT_HANDLE,
            "SubHealthFaultCodes": Level.SUB_HEALTH,
            "RestartRequestFaultCodes": Level.RESTART_REQUEST_FAULT,
            "ResetFaultCodes": Level.RESET_FAULT,
            "SeparateFaultCodes": Level.SEPARATE_FAULT,
        },
        unusable=frozenset(("PreSeparateFaultCodes",)),
        objection=_switch,
    ),
    "NodeDConfiguration.json": LevelFile(
        kind=Kind.NODE,
        lists={
            "NotHandleFaultCodes": Level.NOT_HANDLE,
            "PreSeparateFaultCodes": Level.PRE_SEPARATE_FAULT,
            "SeparateFaultCodes": Level.SEPARATE_FAULT,
        },
        within="FaultTypeCode",
        objection=_node,
        one_level=True,
    ),
    "publicFaultConfiguration.json": LevelFile(
        kind=Kind.PUBLIC,
        lists={
            "NotHandleFaultCodes": Level.NOT_HANDLE,
            "SubHealthFaultCodes": Level.SUB_HEALTH,
            "PreSeparateNPUCodes": Level.PRE_SEPARATE_NPU,
            "SeparateNPUCodes": Level.SEPARATE_NPU,
        },
        within="publicFaultCode",
        other_keys=frozenset(("publicFaultResource",)),
        objection=_public,
    ),
}


def read_levels(source: ParsedFile, form: LevelFile, warn: Warn) -> dict[str, Given] | None:
    """The level of each code, by canonical code; None where the vendor would not take the file.

    Raises Refused where it is not in the vendor's form at all.
    """
    given = dict[str, Given]()
    sound = True
    for found in _listed(source, form, warn):
        key = canonical(found.code)
        if reason := form.objection(found.code):
            warn(str(source.problem(found.path, f"{reason}; skipped")))
            sound = False
            continue
        first = given.setdefault(key, found)
        if first is found:
            continue
        if first.level == found.level:
            warn(str(source.problem(found.path, f"is listed already in {first.path[-2]}; once is enough")))
            continue
        sound = False
        given[key] = stricter = found if is_stricter(found.level, first.level) else first
        if not form.one_level:
            where = f"is listed also in {first.path[-2]}; the stricter counts: {stricter.level}"
            warn(str(source.problem(found.path, where)))
        else:
            warn(str(source.problem(found.path, f"is listed also in {first.path[-2]}")))
    if form.one_level and not sound:
        warn(f"{source.file}: not taken for that, as the vendor does; its codes keep their levels")
        return None
    return given


def _listed(source: ParsedFile, form: LevelFile, warn: Warn) -> Iterator[Given]:
    """Every code of every list, in the order of the lists, with the level that the list gives here."""
    path: KeyPath = ()
    table = fields(source.data, path)
    if form.within:
        if (outer := table.pop(form.within.lower(), None)) is None:
            raise RefusedKeys(path, f"{form.within} is missing, which must hold its lists")
        _warn_of_unknown(source, table, path, form.other_keys, warn)
        path = (outer[0],)
        table = fields(outer[1], path)
    for name, level in form.lists.items():
        name_in_file, value = table.pop(name.lower(), (name, None))
        for code in entries(value, (*path, name_in_file)):
            at = (*path, name_in_file, code)
            found = Given(code.strip(), form.kind, level, source, at)
            if form.kind is not Kind.CHIP:
                yield found
            elif (allowed := _in_its_class(found, name.endswith("NetworkCodes"), warn)) is not None:
                yield allowed
    _warn_of_unknown(source, table, path, form.other_keys, warn, form.unusable)


def _in_its_class(found: Given, network_list: bool, warn: Warn) -> Given | None:
    """Network codes cannot have every level, and only they may be in the lists for network codes."""
    is_network = canonical(found.code) in NETWORK_CODES
    if network_list and not is_network:
        warn(str(found.source.problem(found.path, "not a code of the network ports; not taken from here")))
        return None
    if not is_network or found.level not in _RESTARTS:
        return found
    reason = f"a fault of a network port cannot have {found.level}: {Level.NOT_HANDLE} counts"
    warn(str(found.source.problem(found.path, reason)))
    return Given(found.code, found.kind, Level.NOT_HANDLE, found.source, found.path)


def _warn_of_unknown(
    source: ParsedFile,
    rest: Mapping[str, tuple[str, object]],
    path: KeyPath,
    other_keys: frozenset[str],
    warn: Warn,
    unusable: frozenset[str] = frozenset(),
) -> None:
    for key, value in rest.values():
        if key in unusable and value:
            warn(str(source.problem((*path, key), "not a level of this kind here; its codes are not taken")))
        elif key not in other_keys | unusable:
            warn(str(source.problem((*path, key), "not a key of this file; ignored")))
