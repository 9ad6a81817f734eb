-- One record for all that is attributed: calls of routes, and approvals that executors report. `number` counts entries in the order of
-- writing, without gaps: it is where an export goes on, and shows that nothing is missing. A changed approval (revoked) is another entry.
CREATE TABLE audit_entries (
    number      BIGINT PRIMARY KEY,
    at          BIGINT NOT NULL,
    who         TEXT NOT NULL,
    what        TEXT NOT NULL,
    method      TEXT,
    path        TEXT,
    status      BIGINT,
    executor_id TEXT,
    sha256      TEXT,
    approved_by TEXT,
    approved_at BIGINT,
    expires_at  BIGINT,
    objects     BIGINT
);
INSERT INTO audit_entries (number, at, who, what, method, path, status)
    SELECT ROW_NUMBER() OVER (ORDER BY at, id), at, who, 'call', method, path, status FROM audit;
DROP TABLE audit;
ALTER TABLE audit_entries RENAME TO audit;
CREATE INDEX audit_approvals ON audit (executor_id, sha256, approved_at, number);

-- Append-only also for whoever opens the file: triggers are SQLite's own words, another database has the same in its own. The last one
-- keeps REPLACE from passing for an insert.
CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only');
END;
CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only');
END;
CREATE TRIGGER audit_goes_on BEFORE INSERT ON audit
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM audit)
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only: an entry has the next number');
END;
