"""From each schema that there was to the next: the statements, in order.

A store outlives the version that wrote it. None of these ever changes again, and none may take time that
grows with the history: long tables stay as they are, and their rows say what they do not have.
"""

from collections.abc import Mapping, Sequence
from typing import Final

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
}
"""By the version of the schema that they begin with."""
