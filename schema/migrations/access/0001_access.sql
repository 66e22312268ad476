-- Who may ask: ids, key hashes, plans and suspension, nothing else. A projection that
-- the writer keeps of its ledger, replicated to every edge.

CREATE TABLE plan (
  id             TEXT    NOT NULL PRIMARY KEY,
  api_access     INTEGER NOT NULL, -- 0 or 1
  per_minute     INTEGER NOT NULL, -- requests per UTC minute
  monthly_volume INTEGER NOT NULL, -- charged calls per UTC month
  email          INTEGER NOT NULL, -- 0 or 1: company e-mail is returned
  phone          INTEGER NOT NULL  -- 0 or 1: company phone is returned
) STRICT;

CREATE TABLE account (
  id        INTEGER PRIMARY KEY,
  plan      TEXT    NOT NULL REFERENCES plan (id),
  suspended INTEGER NOT NULL DEFAULT 0 -- 0 or 1
) STRICT;

-- Only keys that are valid now; a revoked key's row is deleted.
CREATE TABLE api_key (
  id      INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES account (id),
  hash    BLOB    NOT NULL UNIQUE -- SHA-256 of the whole key, 32 bytes
) STRICT;
