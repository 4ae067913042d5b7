"""The tables of the store, column by column, the checksum of each row, and the migrations from earlier
schemas.

``schema.sql`` makes the tables; code that writes, reads or salvages rows takes their order from here. A row
with its checksum proves itself: wherever in the file it is found, it is a row of that table as it was
written.

A store outlives the version that wrote it. So no migration ever changes, and none takes time that grows with
the history: long tables stay as they are, and their rows have NULL where a column came later.
"""

import logging
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Final

import msgspec

from nodeagent.store.errors import StoreDamagedError

SqlValue = int | str | bytes | None
Row = tuple[SqlValue, ...]

SCHEMA_VERSION: Final = 3
"""Of the tables, and of the kinds of values in them (``tags``). A version that does not know a kind would
take its rows for damage; by the number it knows that it must leave the file as it is. Raised once between two
releases that differ in either, with an entry in ``MIGRATIONS`` and in packaging/scripts/preinst.sh.
"""

SAME_TABLES_SINCE: Final = 2
"""The first schema whose tables can be read as they are."""

_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``columns`` in their order, without the checksum that follows them; the first is the key of a row.

    ``types`` has a letter a column: i, t, b for an integer, text, bytes; a capital one may be NULL.
    ``is_rowid``: SQLite keeps the key as the row's number, and NULL in its place. ``label`` goes into the
    checksum; ``former_labels`` are those of schemas with the same tables.
    """

    name: str
    columns: tuple[str, ...]
    types: str
    label: str
    is_rowid: bool = True
    former_labels: tuple[str, ...] = ()

    @property
    def insert(self) -> str:
        """Takes ``sealed`` rows."""
        return f"INSERT INTO {self._places}"

    @property
    def replace(self) -> str:
        """As ``insert``; a row with the same key goes."""
        return f"INSERT OR REPLACE INTO {self._places}"

    @property
    def insert_if_new(self) -> str:
        """As ``insert``; a row with the same key stays."""
        return f"INSERT OR IGNORE INTO {self._places}"

    @property
    def select(self) -> str:
        """Gives ``sealed`` rows."""
        return f"SELECT {', '.join(self.columns)}, checksum FROM {self.name}"

    @property
    def _places(self) -> str:
        marks = ", ".join("?" * (len(self.columns) + 1))
        return f"{self.name} ({', '.join(self.columns)}, checksum) VALUES ({marks})"

    def sealed(self, row: Row) -> Row:
        """The row with its checksum."""
        return (*row, checksum(self.label, *row))

    def opened(self, sealed: Row) -> Row:
        """The row without it; one without a checksum was written before there were any. A checksum that was
        made since, of a row from before, proves no types.

        Raises StoreDamagedError where it is not as it was written.
        """
        row = sealed[:-1]
        if sealed[-1] is not None and not self.is_sealed(sealed):
            raise StoreDamagedError(f"{self.name} {row[0]!r} is not as it was written")
        if not self.fits(row):
            raise StoreDamagedError(f"{self.name} {row[0]!r} holds values of other types")
        return row

    def is_sealed(self, sealed: Row) -> bool:
        """Whether it is as it was written."""
        row, written = sealed[:-1], sealed[-1]
        return written == checksum(self.label, *row) or any(
            written == checksum(label, *row) for label in self.former_labels
        )

    def fits(self, row: Sequence[SqlValue]) -> bool:
        """Whether each value is of its column's type."""
        return len(row) == len(self.types) and all(map(_is_of, row, self.types))


def checksum(label: str, *row: SqlValue) -> int:
    """CRC-32 of the table's label and the row's values. It shows damage, not forgery."""
    return zlib.crc32(_encoder.encode((label, *row)))


def _is_of(value: SqlValue, kind: str) -> bool:
    return isinstance(value, _TYPES[kind])


_TYPES: Final[Mapping[str, type | UnionType]] = {
    "i": int,
    "t": str,
    "b": bytes,
    "I": int | None,
    "T": str | None,
}

STATE: Final = Table(
    name="state",
    # A state of a later schema is none of ours, whatever version the file's header has.
    label=f"state {SCHEMA_VERSION}",
    former_labels=tuple(f"state {former}" for former in range(SAME_TABLES_SINCE, SCHEMA_VERSION)),
    columns=(
        *("only", "uuid", "epoch", "machine_id", "opened_wall_ns"),
        *("last_seq", "last_input", "last_audit", "oldest_seq", "engine_now_ns"),
        *("anchor_boot_id", "anchor_boottime_ns", "anchor_rule_ns", "anchor_wall_ns"),
        *("base_input", "base_seq", "base_ns", "base_cells"),
    ),
    types="ititi" + "iiiii" + "TIII" + "iiiI",
)
INPUT: Final = Table(
    name="input", label="input", columns=("number", "rule_ns", "wall_ns", "kind", "body"), types="iiitb"
)
EVENT: Final = Table(name="event", label="event", columns=("seq", "wall_ns", "body"), types="iib")
CARRIED: Final = Table(
    name="carried", label="carried", columns=("ordinal", "kind", "body", "base_input"), types="itbI"
)
CURSOR: Final = Table(
    name="cursor", label="cursor", columns=("name", "boot_id", "seq"), types="tti", is_rowid=False
)
CATALOG: Final = Table(
    name="catalog",
    label="catalog",
    columns=("digest", "ordinal", "reason", "body"),
    types="titb",
    is_rowid=False,
)
CONSUMER: Final = Table(
    name="consumer",
    label="consumer",
    columns=("name", "owner", "seq", "acked_wall_ns"),
    types="ttii",
    is_rowid=False,
)
AUDIT: Final = Table(
    name="audit",
    label="audit",
    columns=("number", "wall_ns", "who", "what", "target", "result"),
    types="iitttt",
)
DAMAGE: Final = Table(
    name="damage",
    label="damage",
    columns=("number", "why", "aside", "lost", "is_whole", "doubtful"),
    types="itttib",
)

EMPTIED: Final = b""
"""The body of an event that has made way, so that its number is not missing. Such an entry of the audit log
has no texts.
"""

TABLES: Final = (STATE, INPUT, EVENT, CARRIED, CURSOR, CATALOG, CONSUMER, AUDIT, DAMAGE)

SEAL_STATE: Final = f"UPDATE state SET checksum = row_checksum('{STATE.label}', {', '.join(STATE.columns)})"
"""The last statement of each transaction. ``row_checksum`` is ``checksum``, made known to the connection."""

_log = logging.getLogger(__name__)

MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {
    # Each row carries its checksum from now on. What decides gets one at once, history as it is written.
    1: (
        *(
            f"ALTER TABLE {table} ADD COLUMN {column} INTEGER"
            for table, columns in {
                "state": ("base_cells", "checksum"),
                "carried": ("base_input", "checksum"),
                **dict.fromkeys(("input", "event", "cursor", "catalog", "consumer", "audit"), ("checksum",)),
            }.items()
            for column in columns
        ),
        (
            "CREATE TABLE damage (number INTEGER PRIMARY KEY, why TEXT NOT NULL, aside TEXT NOT NULL,"
            " lost TEXT NOT NULL, is_whole INTEGER NOT NULL, doubtful BLOB NOT NULL, checksum INTEGER)"
        ),
        "UPDATE state SET base_cells = (SELECT COUNT(*) FROM carried)",
        "UPDATE carried SET base_input = (SELECT base_input FROM state)",
        "UPDATE carried SET checksum = row_checksum('carried', ordinal, kind, body, base_input)",
        (
            "UPDATE input SET checksum = row_checksum('input', number, rule_ns, wall_ns, kind, body)"
            " WHERE number > (SELECT base_input FROM state)"
        ),
        "UPDATE cursor SET checksum = row_checksum('cursor', name, boot_id, seq)",
        "UPDATE catalog SET checksum = row_checksum('catalog', digest, ordinal, reason, body)",
        "UPDATE consumer SET checksum = row_checksum('consumer', name, owner, seq, acked_wall_ns)",
    ),
    # The same tables. From now on there may be kinds of inputs and cells in them that versions before do not
    # know, and rows that have made way.
    2: (),
}
"""The statements for each version of the schema that they begin with."""

# The short tables that decide: a migration gives each of their rows a checksum.
_CHECKED_AT_MIGRATION = (STATE, CARRIED, CURSOR, CATALOG, CONSUMER)


def migrate(connection: sqlite3.Connection) -> bool:
    """Step by step to the schema of this version, in one transaction. Gives whether there was anything to do.

    Raises StoreDamagedError where a row that decides has values of other types: then nothing has changed. The
    inputs since the base are looked at when they are read.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA_VERSION:
        return False
    if version not in MIGRATIONS:
        raise StoreDamagedError(f"its header names schema {version}, which there never was")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, SCHEMA_VERSION):
            for statement in MIGRATIONS[step]:
                connection.execute(statement)
        connection.execute(SEAL_STATE)
        for table in _CHECKED_AT_MIGRATION:
            for row in connection.execute(table.select):
                table.opened(row)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except (sqlite3.Error, StoreDamagedError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    _log.warning("store: migrated from schema %d to %d", version, SCHEMA_VERSION)
    return True
