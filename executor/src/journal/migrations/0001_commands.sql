CREATE TABLE commands (
    id           TEXT PRIMARY KEY,
    sequence     INTEGER NOT NULL,
    command      TEXT NOT NULL,
    sha256       TEXT,
    status       TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    finished_at  TEXT,
    result       TEXT,
    acknowledged INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE platform (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE pending (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE jobs_done (
    install_id TEXT NOT NULL,
    job        TEXT NOT NULL,
    PRIMARY KEY (install_id, job)
) STRICT;
