-- Authentication finds a key in this alone, without a look into the table.
CREATE INDEX api_key_by_hash ON api_key (hash, account, id);
