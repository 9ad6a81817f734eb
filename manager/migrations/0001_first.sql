-- Times are Unix milliseconds. Names, digests and ids are text. Only what both SQLite and PostgreSQL understand.
CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE tokens (
    name         TEXT PRIMARY KEY,
    sha256       TEXT NOT NULL UNIQUE,
    permissions  TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT
);

CREATE TABLE clusters (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE environments (
    name       TEXT PRIMARY KEY,
    cluster_id TEXT NOT NULL UNIQUE REFERENCES clusters (id),
    registry   TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE releases (
    name       TEXT PRIMARY KEY,
    document   TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- The highest number of an environment is its newest proposal; armed_at moves when a person re-arms it.
CREATE TABLE proposals (
    id          TEXT PRIMARY KEY,
    environment TEXT NOT NULL REFERENCES environments (name),
    number      BIGINT NOT NULL,
    release     TEXT NOT NULL REFERENCES releases (name),
    sha256      TEXT NOT NULL,
    manifest    TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    armed_at    BIGINT NOT NULL,
    UNIQUE (environment, number)
);

CREATE TABLE enrolments (
    token_sha256 TEXT PRIMARY KEY,
    cluster_id   TEXT NOT NULL REFERENCES clusters (id),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    used_at      BIGINT
);

CREATE TABLE executors (
    id              TEXT PRIMARY KEY,
    cluster_id      TEXT NOT NULL REFERENCES clusters (id),
    access_key      TEXT NOT NULL UNIQUE,
    sealed_secret   BLOB NOT NULL,
    enrolled_at     BIGINT NOT NULL,
    cert_serial     TEXT,
    cert_key_sha256 TEXT,
    cert_not_after  BIGINT,
    last_sequence   BIGINT NOT NULL DEFAULT 0,
    version         TEXT,
    cluster_uid     TEXT,
    last_seen       BIGINT,
    heartbeat       TEXT,
    platform_status TEXT,
    pending_sha256  TEXT,
    approved_sha256 TEXT,
    applied_sha256  TEXT
);

CREATE TABLE commands (
    id                  TEXT PRIMARY KEY,
    executor_id         TEXT NOT NULL REFERENCES executors (id),
    sequence            BIGINT NOT NULL,
    action              TEXT NOT NULL,
    target              TEXT NOT NULL,
    proposal_id         TEXT REFERENCES proposals (id),
    purpose             TEXT NOT NULL,
    approval_expires_at BIGINT,
    status              TEXT NOT NULL,
    created_at          BIGINT NOT NULL,
    sent                BIGINT NOT NULL DEFAULT 0,
    sent_at             BIGINT,
    missed              BIGINT NOT NULL DEFAULT 0,
    missed_at           BIGINT,
    acked_at            BIGINT,
    ended_at            BIGINT,
    wants_approval      BIGINT NOT NULL DEFAULT 0,
    result              TEXT,
    objects             TEXT,
    UNIQUE (executor_id, sequence)
);
CREATE INDEX commands_by_status ON commands (executor_id, status);

-- Append-only.
CREATE TABLE audit (
    id     TEXT PRIMARY KEY,
    at     BIGINT NOT NULL,
    who    TEXT NOT NULL,
    method TEXT NOT NULL,
    path   TEXT NOT NULL,
    status BIGINT NOT NULL
);
