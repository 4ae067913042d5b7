-- The whole store. Bodies are msgpack of the core's values (codec.py); times are nanoseconds.

-- One row: who the store is, how far it has come, and where a replay begins.
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
    base_ns INTEGER NOT NULL
);

-- Numbers are given by the daemon and never reused; a hole is a retained range that ended.
CREATE TABLE input (
    number INTEGER PRIMARY KEY,
    rule_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- The base of a replay: one live cell a row, as of state.base_input.
CREATE TABLE carried (
    ordinal INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE cursor (
    name TEXT PRIMARY KEY,
    boot_id TEXT NOT NULL,
    seq INTEGER NOT NULL
);

-- The row with the greatest ordinal is the last good one.
CREATE TABLE catalog (
    digest TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    reason TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE consumer (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    seq INTEGER NOT NULL,
    acked_wall_ns INTEGER NOT NULL
);

CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    target TEXT NOT NULL,
    result TEXT NOT NULL
);
