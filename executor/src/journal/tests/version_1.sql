-- A journal as the first version left it: one command that ended and is told, one that runs, one that waits; a Job that is done.
PRAGMA journal_mode = WAL;

CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES (1, 'commands', '2026-11-30 10:00:00', TRUE,
    x'b82625297d29d5d2e63c57a9d379f38fae96bf0aaf719e9d8d3ec5cf42667df0d6b9a79545a5cab8184e8509a0fa8d4e', 1000);

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
INSERT INTO commands VALUES
    ('00000000-0000-0000-0000-000000000001', 1,
     '{"id":"00000000-0000-0000-0000-000000000001","sequence":1,"action":"sync_platform","target":"platform","payload":null}',
     'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'failed', '2026-11-30T10:00:00Z', '2026-11-30T10:00:01Z',
     '{"id":"00000000-0000-0000-0000-000000000001","status":"failed","result":"no","objects":[]}', 1),
    ('00000000-0000-0000-0000-000000000002', 2,
     '{"id":"00000000-0000-0000-0000-000000000002","sequence":2,"action":"sync_platform","target":"platform","payload":{"sha256":"","manifest":""}}',
     NULL, 'running', '2026-11-30T10:00:02Z', NULL, NULL, 0),
    ('00000000-0000-0000-0000-000000000003', 3,
     '{"id":"00000000-0000-0000-0000-000000000003","sequence":3,"action":"sync_platform","target":"platform","payload":{}}',
     NULL, 'pending', '2026-11-30T10:00:03Z', NULL, NULL, 0);

CREATE TABLE platform (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body TEXT NOT NULL
) STRICT;
INSERT INTO platform VALUES
    (1, '{"last_sequence":3,"pending":null,"applied":null,"failure":null,"message":"no","attempts":1}');

CREATE TABLE pending (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE jobs_done (
    install_id TEXT NOT NULL,
    job        TEXT NOT NULL,
    PRIMARY KEY (install_id, job)
) STRICT;
INSERT INTO jobs_done VALUES
    ('00000000-0000-0000-0000-000000000009', '{"group":"batch","kind":"Job","namespace":"n","name":"j"}');
