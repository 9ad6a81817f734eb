-- Why a command ended without success, as a stable name.
ALTER TABLE commands ADD COLUMN code TEXT;
