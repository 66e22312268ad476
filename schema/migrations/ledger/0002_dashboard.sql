-- Who signs in to the dashboard, and what everyone did. Times are Unix milliseconds, UTC.

-- An owner signs in for one account, an operator for none.
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

-- An invitation lets its bearer choose a password, once. For an address that signs in
-- already it replaces the password.
CREATE TABLE invitation (
  hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
  email      TEXT    NOT NULL,
  account    INTEGER REFERENCES account (id),
  operator   INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  CHECK ((account IS NULL) = operator)
) STRICT, WITHOUT ROWID;

CREATE INDEX invitation_by_email ON invitation (email);

CREATE TABLE session (
  hash       BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the cookie's value
  user       INTEGER NOT NULL REFERENCES user (id),
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  address    TEXT    NOT NULL, -- of the client that signed in
  agent      TEXT    NOT NULL  -- what its browser called itself
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_user ON session (user);

-- Attempts to sign in that failed, by e-mail address (known or not) and by client
-- address, since the beginning of a window.
CREATE TABLE attempt (
  subject TEXT    NOT NULL PRIMARY KEY,
  since   INTEGER NOT NULL,
  count   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Append-only: every change through the dashboard or the operators' API, in the
-- transaction of the change, and every sign-in.
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  actor   TEXT    NOT NULL, -- e-mail address, or 'operators'' token', or '' for a stranger
  account INTEGER,          -- whom it concerns, if anyone
  address TEXT    NOT NULL, -- of the client
  act     TEXT    NOT NULL,
  detail  TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_account ON audit (account, id);

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is never changed'); END;

CREATE TRIGGER audit_remains BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is never cut'); END;
