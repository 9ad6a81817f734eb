-- Since when an executor's key and certificates are refused; enrolling anew takes it away.
ALTER TABLE executors ADD COLUMN revoked_at BIGINT;
