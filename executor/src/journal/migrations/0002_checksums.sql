-- SQLite notices damage of its own structure, not of what is written in a row: each row has a checksum of its columns.
ALTER TABLE commands ADD COLUMN checksum TEXT;
ALTER TABLE platform ADD COLUMN checksum TEXT;
ALTER TABLE pending ADD COLUMN checksum TEXT;
ALTER TABLE jobs_done ADD COLUMN checksum TEXT;

-- Takes as much room as a record that could not be written, to see whether there is room again.
CREATE TABLE room (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body BLOB NOT NULL
) STRICT;

-- "clnk": another program's database is told apart.
PRAGMA application_id = 1668050539;
