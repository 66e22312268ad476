-- Who may call the API: ids, key hashes, plans and suspension, nothing else. The writer
-- derives it from the ledger; it is replicated to every edge.

CREATE TABLE plan (
  id             TEXT    NOT NULL PRIMARY KEY,
  api_access     INTEGER NOT NULL, -- 0 or 1
  per_minute     INTEGER NOT NULL, -- requests per UTC minute
  monthly_volume INTEGER NOT NULL, -- charged calls per UTC month
  email          INTEGER NOT NULL, -- 0 or 1: the company's e-mail address is returned
  phone          INTEGER NOT NULL  -- 0 or 1: the company's phone number is returned
) STRICT;

CREATE TABLE account (
  id        INTEGER PRIMARY KEY,
  plan      TEXT    NOT NULL REFERENCES plan (id),
  suspended INTEGER NOT NULL DEFAULT 0 -- 0 or 1
) STRICT;

-- Keys that were not revoked: the row of a revoked key is deleted. An edge refuses a secret from its end
-- on, by its own clock, so also when it is cut off. Ends are Unix milliseconds, 0 for none.
CREATE TABLE api_key (
  id      INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES account (id),
  hash    BLOB    NOT NULL UNIQUE, -- SHA-256 of the whole key, 32 bytes
  ends_at INTEGER NOT NULL DEFAULT 0,
  -- The networks from which it may be used, empty for all: of each one byte with the length of its address (4 or
  -- 16), one with the bits of its prefix, and the address.
  allowed BLOB NOT NULL DEFAULT x'',
  per_minute INTEGER NOT NULL DEFAULT 0, -- requests per UTC minute with this key, 0 for as many as the plan allows
  limited_until INTEGER NOT NULL DEFAULT 0, -- the credits of its month are spent, so it gets 429 until then; 0 if not
  -- The secret before the last rotation, valid beside the new one until its own end.
  old_hash    BLOB,
  old_ends_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX api_key_by_old_hash ON api_key (old_hash) WHERE old_hash IS NOT NULL;

-- When the writer last wrote here, in Unix milliseconds by its clock. An edge computes from
-- it how old its replica is. One row.
CREATE TABLE heartbeat (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  beat INTEGER NOT NULL
) STRICT;
