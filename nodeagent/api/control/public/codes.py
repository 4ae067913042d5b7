"""Which codes another system may report, and on what: the kind of a code's row has to fit the device.

Which level follows is the table's to say. Of what the daemon says of itself nobody else knows better.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from nodeagent.api.control.public.concerned import Concerned
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.catalog.catalog import Catalog, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import Kind

PUBLIC_LENGTH: Final = 9
"""Of MindCluster's codes."""

FITTING: Final[Mapping[Kind, Sequence[Kind]]] = {
    Kind.CHIP: (Kind.CHIP, Kind.PUBLIC),
    Kind.INSTANCE: (Kind.CHIP, Kind.PUBLIC),
    Kind.NODE: (Kind.NODE, Kind.HOST, Kind.PUBLIC),
    Kind.HOST: (Kind.HOST,),
    Kind.LINK: (Kind.LINK,),
    Kind.UNIFIEDBUS: (Kind.UNIFIEDBUS,),
}
"""Kinds of codes by the kind of the device."""

_CODE: Final = re.compile(r"[!-)+-~]{1,64}")
"""As in tables, but no family."""

_OWN_VENDOR: Final = "nodeagent"
_MOST_NAMED: Final = 20


def of_mindcluster(field: str, code: str, catalog: Catalog, _on: Sequence[Concerned]) -> str:
    """A code that nobody has described would isolate or hide at a sender's whim. Raises Refusal."""
    if len(code) != PUBLIC_LENGTH:
        raise _wrong(field, f"{PUBLIC_LENGTH} characters are needed, not {code[:40]!r}")
    row = catalog.row(code)
    if row is None or row.kind is not Kind.PUBLIC:
        known = sorted(row.code for row in catalog.rows.values() if row.kind is Kind.PUBLIC)
        named = ", ".join(known[:_MOST_NAMED])
        raise _wrong(field, f"{code!r} has no row of kind public; there are {len(known)}, such as {named}")
    return code


def well_formed(field: str, code: str, _catalog: Catalog, _on: Sequence[Concerned]) -> str:
    """Raises Refusal."""
    if not _CODE.fullmatch(code):
        wanted = '1 to 64 printable ASCII characters without blanks and "*" are needed'
        raise _wrong(field, f"{wanted}, not {code[:40]!r}")
    return code


def fitting(field: str, code: str, catalog: Catalog, on: Sequence[Concerned]) -> str:
    """A code of the tables that fits all of these devices, or one that no table has. Raises Refusal."""
    row = catalog.row(well_formed(field, code, catalog, on))
    if row is None:
        return code
    if row.vendor == _OWN_VENDOR:
        raise _wrong(field, f"{code!r} is what nodeagent says of itself; no other system reports it")
    for device in on:
        if row.kind not in FITTING[device.kind]:
            raise _wrong(field, _unfit(code, row, device))
    return code


def in_ids(code: str, catalog: Catalog) -> str:
    """The same for each way to write it."""
    row = catalog.row(code)
    return row.code if row is not None and canonical(row.code) == canonical(code) else code.upper()


def _unfit(code: str, row: Row, device: Concerned) -> str:
    takes = " or ".join(FITTING[device.kind])
    fits = ", ".join(kind for kind, kinds in FITTING.items() if row.kind in kinds)
    return (
        f"{code!r} is of kind {row.kind}, which fits devices of kind {fits};"
        f" {device.name} is of kind {device.kind} and takes codes of kind {takes}"
    )


def _wrong(field: str, problem: str) -> Refusal:
    return Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")
