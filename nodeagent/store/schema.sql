-- The whole store, as of SCHEMA_VERSION (layout.py). Bodies are msgpack of the core's values (codec.py); times are
-- nanoseconds. checksum is that of the row's other columns; NULL in a row from before there were any.

-- One row: the identity of the store, how far it has come, and where a replay begins.
CREATE TABLE state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    uuid TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    machine_id TEXT NOT NULL,
    opened_wall_ns INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_input INTEGER NOT NULL,
    last_audit INTEGER NOT NULL,
    oldest_seq INTEGER NOT NULL,
    engine_now_ns INTEGER NOT NULL,
    anchor_boot_id TEXT,
    anchor_boottime_ns INTEGER,
    anchor_rule_ns INTEGER,
    anchor_wall_ns INTEGER,
    base_input INTEGER NOT NULL,
    base_seq INTEGER NOT NULL,
    base_ns INTEGER NOT NULL,
    base_cells INTEGER,
    checksum INTEGER
);

-- Numbers are given by the daemon and never reused; a hole is a retained range that ended.
CREATE TABLE input (
    number INTEGER PRIMARY KEY,
    rule_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER
);

-- An empty body: an event about a job that has made way for others.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER
);

-- The base of a replay: one live cell a row, state.base_cells of them, as of state.base_input.
CREATE TABLE carried (
    ordinal INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    base_input INTEGER,
    checksum INTEGER
);

CREATE TABLE cursor (
    name TEXT PRIMARY KEY,
    boot_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    checksum INTEGER
);

-- The row with the greatest ordinal is the last good one.
CREATE TABLE catalog (
    digest TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    reason TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER
);

CREATE TABLE consumer (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    seq INTEGER NOT NULL,
    acked_wall_ns INTEGER NOT NULL,
    checksum INTEGER
);

-- An empty ``what``: an entry that has made way for others.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    target TEXT NOT NULL,
    result TEXT NOT NULL,
    checksum INTEGER
);

-- What was found damaged and could not be read any more, until the daemon has reported it (records.Damage).
CREATE TABLE damage (
    number INTEGER PRIMARY KEY,
    why TEXT NOT NULL,
    aside TEXT NOT NULL,
    lost TEXT NOT NULL,
    is_whole INTEGER NOT NULL,
    doubtful BLOB NOT NULL,
    checksum INTEGER
);
