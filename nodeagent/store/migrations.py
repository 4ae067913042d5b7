"""From each schema that there was to the next: the statements, in order, and the step that takes them.

A store outlives the version that wrote it. None of these ever changes again, and none may take time that
grows with the history: long tables stay as they are, and their rows say what they do not have.
"""

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import CARRIED, CATALOG, CONSUMER, CURSOR, SCHEMA_VERSION, SEAL_STATE, STATE

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
_DECIDING = (STATE, CARRIED, CURSOR, CATALOG, CONSUMER)


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
        for table in _DECIDING:
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
