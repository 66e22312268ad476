-- The ledger: balances, quotas, leases, usage, sign-in and the audit log. Only the writer
-- opens it. Times are Unix milliseconds, UTC; an hour or a day is counted since 1970, a
-- month is 12 * year + month - 1.

-- Which writer process owns the ledger. Every transaction of a writer checks that the
-- generation is still its own. One row.
CREATE TABLE writer (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL,
  restoring  INTEGER NOT NULL,             -- 0 or 1: some edges have yet to declare their leases
  host       TEXT    NOT NULL DEFAULT '',  -- the machine of that process
  pid        INTEGER NOT NULL DEFAULT 0,   -- its number there; 0 when it has ended in order
  since      INTEGER NOT NULL DEFAULT 0,   -- its start
  heard      INTEGER NOT NULL DEFAULT 0    -- changes with each commit, and at least once a second
) STRICT;

INSERT INTO writer (id, generation, restoring) VALUES (1, 0, 0);

CREATE TABLE plan (
  id             TEXT    NOT NULL PRIMARY KEY,
  api_access     INTEGER NOT NULL, -- 0 or 1
  per_minute     INTEGER NOT NULL, -- requests per UTC minute
  monthly_volume INTEGER NOT NULL, -- charged calls per UTC month
  email          INTEGER NOT NULL, -- 0 or 1: the company's e-mail address is returned
  phone          INTEGER NOT NULL  -- 0 or 1: the company's phone number is returned
) STRICT;

INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES
  ('free',    0,    0,       0, 0, 0),
  ('starter', 1,   60,   10000, 0, 0),
  ('growth',  1,  300,  100000, 1, 0),
  ('scale',   1, 1200, 1000000, 1, 1);

-- Invariant: bought + compensated = left + leased + spent + lost, and none is negative.
-- What is left is not stored. It is negative only while a restored ledger waits for its edges.
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
  posted      INTEGER NOT NULL DEFAULT 0, -- the part of spent that has credit entries
  posted_hour INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE api_key (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  account    INTEGER NOT NULL REFERENCES account (id),
  name       TEXT    NOT NULL,
  hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the whole key, 32 bytes
  shown      TEXT    NOT NULL,        -- the first 4 characters of the secret
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  expires_at INTEGER,                  -- NULL for never
  allowed    BLOB NOT NULL DEFAULT x'', -- networks from which it may be used, as in access; empty for all
  per_minute INTEGER NOT NULL DEFAULT 0, -- as in access
  monthly_credits INTEGER NOT NULL DEFAULT 0, -- that it may spend in a UTC month, 0 for any number
  limited_until   INTEGER NOT NULL DEFAULT 0, -- as in access
  old_hash    BLOB,                    -- of the secret before the last rotation, NULL for none
  old_shown   TEXT NOT NULL DEFAULT '',
  old_ends_at INTEGER                  -- when that ends
) STRICT;

CREATE INDEX api_key_by_account ON api_key (account);

-- What keys with monthly credits spent, in their last months. The rows are the sums of their usage, so
-- that no start of a writer has to add it up.
CREATE TABLE key_month (
  key   INTEGER NOT NULL REFERENCES api_key (id),
  month INTEGER NOT NULL, -- 12 × year + month - 1
  spent INTEGER NOT NULL,
  PRIMARY KEY (key, month)
) STRICT, WITHOUT ROWID;

-- Append-only. The entries of an account add up to its balance plus spent - posted.
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

-- The edges.
CREATE TABLE node (
  name       TEXT    NOT NULL PRIMARY KEY,
  token_hash BLOB    NOT NULL, -- SHA-256 of the edge's token
  created_at INTEGER NOT NULL,
  retired    INTEGER NOT NULL DEFAULT 0, -- 0 or 1
  epoch      INTEGER NOT NULL DEFAULT 0, -- the newest; 0 before the first
  declared   INTEGER NOT NULL DEFAULT 1  -- 0 while a restored ledger waits for this edge
) STRICT;

CREATE TABLE node_epoch (
  node    TEXT    NOT NULL,
  epoch   INTEGER NOT NULL,
  boot    INTEGER NOT NULL, -- the edge process that was given the epoch
  applied INTEGER NOT NULL, -- sequence number of the newest batch
  granted INTEGER NOT NULL, -- sum of all grants
  forked  INTEGER NOT NULL, -- 0 or 1: an older copy of the state directory was seen
  -- 0 or 1: the state directory has gone on to a newer epoch, so an edge that presents
  -- this one runs on an older copy.
  ended   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (node, epoch)
) STRICT, WITHOUT ROWID;

-- The monthly volume of an account (kind 2, subject the account, time_window the month) and
-- the not-found cap of a key (kind 3, subject the key, time_window the day). Credits (kind 1)
-- are counted in account.
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
  -- Charges that an edge reported in excess of its lease, less those that it has taken back
  -- since. They were not debited.
  beyond      INTEGER NOT NULL DEFAULT 0 CHECK (beyond >= 0),
  returned    INTEGER NOT NULL,
  ends_at     INTEGER NOT NULL,
  lost        INTEGER NOT NULL, -- 0 or 1: written off
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

-- The last requests of keys, for a week: what their edges answered.
CREATE TABLE request_log (
  key      INTEGER NOT NULL,
  id       TEXT    NOT NULL, -- request id, which begins with the time
  node     TEXT    NOT NULL,
  endpoint TEXT    NOT NULL,
  status   INTEGER NOT NULL,
  code     TEXT    NOT NULL, -- of the problem, empty for none
  credits  INTEGER NOT NULL,
  PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID;

-- With code, so that a search reads this index alone.
CREATE INDEX request_log_by_id ON request_log (id, code);

-- Charges whose verdict may never have reached the component, to be credited.
CREATE TABLE unresolved (
  id       TEXT    NOT NULL PRIMARY KEY, -- request id
  account  INTEGER NOT NULL,
  key      INTEGER NOT NULL,
  node     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  credited INTEGER NOT NULL DEFAULT 0 -- 0 or 1
) STRICT;

-- Changes that were made under an Idempotency-Key, with their answers, for 7 days.
CREATE TABLE idempotent_change (
  id      BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of who asked, and the Idempotency-Key
  request BLOB    NOT NULL,             -- SHA-256 of method, path and body
  at      INTEGER NOT NULL,
  answer  BLOB    NOT NULL  -- JSON, encrypted under a key that derives from the Idempotency-Key
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotent_change_by_at ON idempotent_change (at);

-- Operators' tokens beside the first, which configures the writer.
CREATE TABLE operator_token (
  name       TEXT    NOT NULL PRIMARY KEY,
  hash       BLOB    NOT NULL, -- SHA-256 of the token
  role       TEXT    NOT NULL CHECK (role IN ('read', 'accounts', 'nodes', 'all')),
  created_at INTEGER NOT NULL,
  ends_at    INTEGER NOT NULL  -- or, negative, when an operator ended it
) STRICT, WITHOUT ROWID;

-- Tokens with which an owner's programs use the API of their own account.
CREATE TABLE owner_token (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  account    INTEGER NOT NULL REFERENCES account (id),
  name       TEXT    NOT NULL,
  hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the token
  role       TEXT    NOT NULL CHECK (role IN ('read', 'all')),
  made_by    TEXT    NOT NULL, -- e-mail address of the owner, or as in audit
  created_at INTEGER NOT NULL,
  ends_at    INTEGER NOT NULL  -- or, negative, when it was ended
) STRICT;

CREATE INDEX owner_token_by_account ON owner_token (account);

-- Dashboard users. An owner belongs to one account, an operator to none.
CREATE TABLE user (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  email      TEXT    NOT NULL UNIQUE, -- in lower case
  password   TEXT    NOT NULL,        -- argon2id with its parameters and salt
  account    INTEGER REFERENCES account (id),
  operator   INTEGER NOT NULL,        -- 0 or 1
  created_at INTEGER NOT NULL,
  CHECK ((account IS NULL) = operator)
) STRICT;

CREATE INDEX user_by_account ON user (account);

-- Where owners want to be told what they should know: a webhook of the account, or mail to one of its users.
CREATE TABLE notice_target (
  id         INTEGER PRIMARY KEY,
  account    INTEGER NOT NULL REFERENCES account (id),
  channel    TEXT    NOT NULL CHECK (channel IN ('webhook', 'mail')),
  user       INTEGER REFERENCES user (id), -- whose mail it is; NULL for a webhook
  url        TEXT    NOT NULL DEFAULT '',  -- of a webhook
  secret     TEXT    NOT NULL DEFAULT '',  -- of a webhook, signs; as it is, see RATIONALE.md
  low        INTEGER NOT NULL, -- the balance below which it is low, in credits; 0 for never
  low_told   INTEGER NOT NULL, -- 0 or 1: told, and not been enough since
  created_at INTEGER NOT NULL,
  CHECK ((channel = 'mail') = (user IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX notice_target_webhook ON notice_target (account) WHERE channel = 'webhook';
CREATE UNIQUE INDEX notice_target_mail ON notice_target (user) WHERE channel = 'mail';

-- What is told or was told, for 40 days.
CREATE TABLE notice (
  id           TEXT    NOT NULL PRIMARY KEY,
  target       INTEGER NOT NULL REFERENCES notice_target (id),
  kind         TEXT    NOT NULL,
  about        TEXT    NOT NULL, -- by which it is told once
  at           INTEGER NOT NULL,
  body         TEXT    NOT NULL, -- JSON
  attempts     INTEGER NOT NULL DEFAULT 0,
  last         TEXT    NOT NULL DEFAULT '', -- result of the last attempt
  delivered_at INTEGER,
  next_at      INTEGER -- the next attempt; NULL when it was delivered or given up
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX notice_once ON notice (target, kind, about);
CREATE INDEX notice_by_target ON notice (target, at);
CREATE INDEX notice_due ON notice (target, next_at) WHERE next_at IS NOT NULL;

-- An invitation lets its bearer choose a password, once. For an address that has a user
-- already it replaces the password.
CREATE TABLE invitation (
  hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
  email      TEXT    NOT NULL,
  account    INTEGER REFERENCES account (id),
  operator   INTEGER NOT NULL, -- 0 or 1
  resets     INTEGER NOT NULL, -- 0 or 1: switches two-factor authentication off
  expires_at INTEGER NOT NULL,
  CHECK ((account IS NULL) = operator)
) STRICT, WITHOUT ROWID;

CREATE INDEX invitation_by_email ON invitation (email);
CREATE INDEX invitation_by_account ON invitation (account);

CREATE TABLE session (
  hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the cookie's value
  user       INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  address    TEXT    NOT NULL, -- IP address of the client that signed in
  agent      TEXT    NOT NULL  -- its User-Agent
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_user ON session (user);

-- Two-factor authentication of a user: the secret of an authenticator app (RFC 6238).
CREATE TABLE two_factor (
  user       INTEGER PRIMARY KEY REFERENCES user (id),
  secret     TEXT    NOT NULL, -- base32; as it is, see RATIONALE.md
  used_step  INTEGER NOT NULL, -- of the last code: it and earlier ones are used up
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE recovery_code (
  hash BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the code
  user INTEGER NOT NULL REFERENCES user (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX recovery_code_by_user ON recovery_code (user);

-- A sign-in whose password was right and that waits for a code.
CREATE TABLE sign_in (
  hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of what the form holds
  user       INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_by_user ON sign_in (user);

-- A browser in which a user has signed in: its failed sign-ins are counted on their own.
CREATE TABLE device (
  hash    BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the cookie's value
  user    INTEGER NOT NULL REFERENCES user (id),
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX device_by_user ON device (user);

-- Failed sign-ins in the current window, counted by device, or else by e-mail address (known or not),
-- by client address, and by both together.
CREATE TABLE attempt (
  subject TEXT    NOT NULL PRIMARY KEY,
  since   INTEGER NOT NULL, -- start of the window
  count   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Append-only: every sign-in, and every change made through the dashboard or the operators'
-- API, written in the transaction of the change.
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  actor   TEXT    NOT NULL, -- e-mail address, 'operators'' token', 'token NAME', 'owner''s token ID (NAME)', or '' when not signed in
  account INTEGER,          -- the account concerned, if any
  address TEXT    NOT NULL, -- IP address of the client
  act     TEXT    NOT NULL,
  detail  TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_account ON audit (account, id);

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is never changed'); END;

CREATE TRIGGER audit_remains BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is never cut'); END;

-- The last ids given, also of tables that are empty: after a restore the next ones leap, since an id
-- that was given since the backup may still be named by an edge.
INSERT INTO sqlite_sequence (name, seq) VALUES ('account', 0), ('api_key', 0), ('user', 0);
