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

-- Valid keys only: the row of a revoked key is deleted.
CREATE TABLE api_key (
  id      INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES account (id),
  hash    BLOB    NOT NULL UNIQUE -- SHA-256 of the whole key, 32 bytes
) STRICT;

-- Covers authentication, which finds a key without reading the table.
CREATE INDEX api_key_by_hash ON api_key (hash, account, id);

-- When the writer last wrote here, in Unix milliseconds by its clock. An edge computes from
-- it how old its replica is. One row.
CREATE TABLE heartbeat (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  beat INTEGER NOT NULL
) STRICT;
