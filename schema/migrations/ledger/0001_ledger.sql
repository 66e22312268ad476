-- The ledger: balances, quotas, leases and usage. Only the writer opens it. Times are
-- Unix milliseconds, UTC, but where an hour (since 1970), a day (since 1970) or a month
-- (12 × year + month - 1) is said.

-- One row: which writer holds the ledger. Every transaction of a writer checks that the
-- generation is still its own.
CREATE TABLE writer (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL,
  restoring  INTEGER NOT NULL -- 0 or 1: edges have still to declare their leases
) STRICT;

INSERT INTO writer (id, generation, restoring) VALUES (1, 0, 0);

CREATE TABLE plan (
  id             TEXT    NOT NULL PRIMARY KEY,
  api_access     INTEGER NOT NULL, -- 0 or 1
  per_minute     INTEGER NOT NULL, -- requests per UTC minute
  monthly_volume INTEGER NOT NULL, -- charged calls per UTC month
  email          INTEGER NOT NULL, -- 0 or 1: company e-mail is returned
  phone          INTEGER NOT NULL  -- 0 or 1: company phone is returned
) STRICT;

INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES
  ('free',    0,    0,       0, 0, 0),
  ('starter', 1,   60,   10000, 0, 0),
  ('growth',  1,  300,  100000, 1, 0),
  ('scale',   1, 1200, 1000000, 1, 1);

-- At all times bought + compensated = left + leased + spent + lost, and none is negative.
CREATE TABLE account (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT    NOT NULL,
  email       TEXT    NOT NULL,
  plan        TEXT    NOT NULL REFERENCES plan (id),
  suspended   INTEGER NOT NULL, -- 0 or 1
  created_at  INTEGER NOT NULL,
  bought      INTEGER NOT NULL DEFAULT 0 CHECK (bought >= 0),
  compensated INTEGER NOT NULL DEFAULT 0 CHECK (compensated >= 0),
  spent       INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  lost        INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
  leased      INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
  deducting   INTEGER NOT NULL DEFAULT 0 CHECK (deducting >= 0),
  posted      INTEGER NOT NULL DEFAULT 0, -- of spent, what has credit entries
  posted_hour INTEGER NOT NULL DEFAULT 0,
  CHECK (bought + compensated >= spent + lost + leased)
) STRICT;

CREATE TABLE api_key (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  account    INTEGER NOT NULL REFERENCES account (id),
  name       TEXT    NOT NULL,
  hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the whole key, 32 bytes
  shown      TEXT    NOT NULL,        -- the first 4 characters of the secret
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

CREATE INDEX api_key_by_account ON api_key (account);

-- Append-only. The entries of an account sum to its balance plus spent - posted.
CREATE TABLE credit_entry (
  id      INTEGER PRIMARY KEY,
  account INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT    NOT NULL CHECK (kind IN ('bought', 'compensated', 'spent', 'lost')),
  amount  INTEGER NOT NULL,
  note    TEXT    NOT NULL
) STRICT;

CREATE INDEX credit_entry_by_account ON credit_entry (account);

CREATE TRIGGER credit_entry_stays BEFORE UPDATE ON credit_entry
BEGIN SELECT raise(ABORT, 'credit entries are never changed'); END;

CREATE TRIGGER credit_entry_remains BEFORE DELETE ON credit_entry
BEGIN SELECT raise(ABORT, 'credit entries are never deleted'); END;

CREATE TABLE node (
  name       TEXT    NOT NULL PRIMARY KEY,
  token_hash BLOB    NOT NULL, -- SHA-256 of the edge's token
  created_at INTEGER NOT NULL,
  retired    INTEGER NOT NULL DEFAULT 0, -- 0 or 1
  epoch      INTEGER NOT NULL DEFAULT 0, -- newest, 0 for none
  declared   INTEGER NOT NULL DEFAULT 1  -- 0 while a restored ledger waits for the edge
) STRICT;

CREATE TABLE node_epoch (
  node    TEXT    NOT NULL,
  epoch   INTEGER NOT NULL,
  boot    INTEGER NOT NULL, -- the process to which it was given
  applied INTEGER NOT NULL, -- newest batch
  granted INTEGER NOT NULL, -- sum of all grants
  forked  INTEGER NOT NULL, -- 0 or 1: an older copy of the state directory was seen
  PRIMARY KEY (node, epoch)
) STRICT, WITHOUT ROWID;

-- Monthly volume of an account (kind 2, subject the account, time_window the month) and the
-- not-found cap of a key (kind 3, subject the key, time_window the day). Credits (kind 1) are
-- in account.
CREATE TABLE pool (
  kind        INTEGER NOT NULL,
  subject     INTEGER NOT NULL,
  time_window INTEGER NOT NULL,
  compensated INTEGER NOT NULL,
  spent       INTEGER NOT NULL,
  lost        INTEGER NOT NULL,
  PRIMARY KEY (kind, subject, time_window)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
  node        TEXT    NOT NULL,
  epoch       INTEGER NOT NULL,
  kind        INTEGER NOT NULL,
  subject     INTEGER NOT NULL,
  time_window INTEGER NOT NULL,
  granted     INTEGER NOT NULL,
  spent       INTEGER NOT NULL,
  returned    INTEGER NOT NULL,
  ends_at     INTEGER NOT NULL,
  lost        INTEGER NOT NULL, -- 0 or 1: given up
  PRIMARY KEY (node, epoch, kind, subject, time_window)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
  hour     INTEGER NOT NULL,
  account  INTEGER NOT NULL,
  key      INTEGER NOT NULL,
  endpoint INTEGER NOT NULL, -- 1 companies, 2 directors, 3 llps, 4 search_companies, 5 search_llps
  outcome  INTEGER NOT NULL, -- 1 found, 2 not_found, 3 failed
  count    INTEGER NOT NULL,
  PRIMARY KEY (account, hour, key, endpoint, outcome)
) STRICT, WITHOUT ROWID;

-- Charges whose verdict may never have reached the component, to be credited.
CREATE TABLE unresolved (
  id       TEXT    NOT NULL PRIMARY KEY, -- request id
  account  INTEGER NOT NULL,
  key      INTEGER NOT NULL,
  node     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  credited INTEGER NOT NULL DEFAULT 0 -- 0 or 1
) STRICT;
