-- A renewed certificate is taken beside the former one until it is first used: the answer that brought it may have been lost.
ALTER TABLE executors ADD COLUMN next_cert_serial TEXT;
ALTER TABLE executors ADD COLUMN next_cert_key_sha256 TEXT;
ALTER TABLE executors ADD COLUMN next_cert_not_after BIGINT;
