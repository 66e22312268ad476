-- The registry: companies, LLPs, directors and the links between them. Operators replace it
-- in bulk; it is replicated to every edge. Dates are TEXT YYYY-MM-DD; times are Unix seconds,
-- UTC, unless a column says otherwise; amounts are whole rupees.
--
-- as_of is the date of the newest source that mentions a record. older is NULL, or a JSON
-- object {field: date} of the fields whose value comes from an earlier source.

-- A new company gets the rowid ident.CINNumber of its CIN, unless another row has it, so that
-- most lookups by CIN need no index.
--
-- district and directors are derived from pincode, appointment and director, and updated in
-- the transaction that changes those, so that a lookup reads one row. directors has the form
-- of package handler/directors. It comes last: it is long for some companies and may continue
-- on overflow pages.
CREATE TABLE company (
  cin                TEXT    NOT NULL PRIMARY KEY,
  company_name       TEXT    NOT NULL,
  status             TEXT    NOT NULL,
  incorporation_date TEXT,
  category           TEXT,
  sub_category       TEXT,
  class              TEXT,
  roc                TEXT,
  authorized_capital INTEGER,
  paid_up_capital    INTEGER,
  listed             INTEGER, -- 0 or 1
  main_division      TEXT,
  business_activity  TEXT,
  principal_business TEXT,
  state              TEXT,
  district           TEXT,
  pincode            TEXT,
  address_line       TEXT,
  city               TEXT,
  email              TEXT,
  phone              TEXT,
  website            TEXT,
  as_of              TEXT    NOT NULL,
  older              TEXT,
  last_updated       INTEGER NOT NULL,
  directors          TEXT
) STRICT;

CREATE TABLE llp (
  llpin              TEXT    NOT NULL PRIMARY KEY, -- with the hyphen: AAA-1234
  llp_name           TEXT    NOT NULL,
  status             TEXT    NOT NULL,
  incorporation_date TEXT,
  main_division      TEXT,
  business_activity  TEXT,
  contribution       INTEGER,
  state              TEXT,
  pincode            TEXT,
  address_line       TEXT,
  city               TEXT,
  as_of              TEXT    NOT NULL,
  older              TEXT,
  last_updated       INTEGER NOT NULL
) STRICT;

-- WITHOUT ROWID, since making the directors lists of an import finds millions of directors by
-- DIN: one descent for each instead of two.
CREATE TABLE director (
  din              TEXT    NOT NULL PRIMARY KEY, -- 8 digits
  name             TEXT    NOT NULL,
  disqualified     INTEGER,                      -- 0 or 1
  designation      TEXT,                         -- default for appointments without one
  appointment_date TEXT,                         -- default for appointments without one
  as_of            TEXT    NOT NULL,
  older            TEXT,
  last_updated     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The latest known appointment of a director at a company. The company or the director may
-- be missing from its table: such a row is kept, but neither returned nor counted.
CREATE TABLE appointment (
  cin              TEXT NOT NULL,
  din              TEXT NOT NULL,
  designation      TEXT,
  appointment_date TEXT,
  cessation_date   TEXT, -- set when the appointment ended on a known date
  cessation        TEXT, -- NULL while current, else RESIGNED, REMOVED or CEASED (no reason given)
  as_of            TEXT NOT NULL,
  older            TEXT,
  PRIMARY KEY (cin, din)
) STRICT, WITHOUT ROWID;

CREATE INDEX appointment_by_director ON appointment (din);

CREATE TABLE partner (
  llpin     TEXT NOT NULL,
  who       TEXT NOT NULL, -- the partner's DIN or DPIN, else '~' and the name in capitals
  din       TEXT,
  name      TEXT NOT NULL,
  status    TEXT,          -- as the source has it: ACTIVE, INACTIVE, RETIRED, or NULL
  joined_on TEXT,
  left_on   TEXT,
  as_of     TEXT NOT NULL,
  older     TEXT,
  PRIMARY KEY (llpin, who)
) STRICT, WITHOUT ROWID;

CREATE TABLE pincode (
  pincode  TEXT NOT NULL PRIMARY KEY,
  district TEXT, -- the district of most of its post offices
  state    TEXT
) STRICT, WITHOUT ROWID;

-- One row for each completed state of the registry; the row with the greatest seq is current.
CREATE TABLE release (
  seq          INTEGER PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE,
  released_at  INTEGER NOT NULL,
  companies    INTEGER NOT NULL,
  llps         INTEGER NOT NULL,
  directors    INTEGER NOT NULL,
  appointments INTEGER NOT NULL,
  partners     INTEGER NOT NULL,
  digest       TEXT,   -- of table content, once the release was pushed
  pushed_at    INTEGER
) STRICT;

-- The releases that were current, the current one with the greatest depth. A push puts its release on
-- top, a rollback takes off what is above the release that it goes back to. Only push writes it.
CREATE TABLE release_stack (
  depth   INTEGER PRIMARY KEY,
  release TEXT    NOT NULL
) STRICT;

-- Has its one row while the registry differs from its newest release. Imports of earlier versions of
-- the tree, which committed in parts, left it when they were interrupted; the next import releases that.
CREATE TABLE unreleased (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  since INTEGER NOT NULL
) STRICT;

-- The name search over companies and LLPs (docs/search.md).

-- The names in search order: place grows from the best match to the last, which is active
-- names first, then shorter, then alphabetical, then by value. Active names have places below
-- 2^32, the others above. Gaps between neighbours leave room for new names.
CREATE TABLE search_name (
  place INTEGER PRIMARY KEY,
  value TEXT    NOT NULL UNIQUE, -- CIN or LLPIN
  name  TEXT    NOT NULL,        -- normalised, as searches compare it
  label TEXT    NOT NULL         -- the registered name; empty where it is name in capitals
) STRICT;

-- The terms of each name; the rowid is the name's place. The text is not stored: to delete a
-- row, the 'delete' command is given its terms.
CREATE VIRTUAL TABLE search_index USING fts5 (
  terms, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '=.^_$!~'"
);

-- FTS5 buffers up to 16 MiB of terms in memory before it writes them.
INSERT INTO search_index (search_index, rank) VALUES ('hashsize', 16777216);

-- Small pages let a search skip through long posting lists.
INSERT INTO search_index (search_index, rank) VALUES ('pgsz', 1000);

-- The most frequent terms, quoted, and how many names have each, so that a search can start
-- with its rarest term. Counted when the index is rebuilt; the count need not be exact.
CREATE TABLE search_common (
  term  TEXT    NOT NULL PRIMARY KEY,
  names INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- CINs and LLPINs whose name or status changed since the index was updated; '*' stands for
-- all of them. Rows may repeat.
CREATE TABLE search_pending (value TEXT NOT NULL) STRICT;

-- Replication and push.

-- When the centre last wrote here, in Unix milliseconds by its clock. An edge computes from
-- it how old its replica is. One row.
CREATE TABLE heartbeat (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  beat INTEGER NOT NULL
) STRICT;

-- A hash of each record, which push compares. kind is 1 for a company with its appointments,
-- 2 for an LLP with its partners, 3 for a director, 4 for a pincode, 5 for a search entry.
-- bucket is a hash of kind and key, which spreads changed records evenly. At a primary only push
-- writes it; in a file, push fills it once and imports keep it (package schema/content).
CREATE TABLE content (
  bucket INTEGER NOT NULL, -- 0 to 2^32 - 1
  kind   INTEGER NOT NULL,
  key    TEXT    NOT NULL,
  hash   INTEGER NOT NULL,
  PRIMARY KEY (bucket, kind, key)
) STRICT, WITHOUT ROWID;

-- Has its one row while content has the hash of every record that is not in content_pending.
CREATE TABLE content_whole (id INTEGER PRIMARY KEY CHECK (id = 1)) STRICT;

-- Records that changed since they were hashed. Only imports write it.
CREATE TABLE content_pending (
  kind INTEGER NOT NULL,
  key  TEXT    NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- Sums over content, by parts of 2^20 buckets, so that a push with few changes need not
-- compare every record. The triggers below update them while content_whole has its row.
CREATE TABLE content_part (
  part    INTEGER PRIMARY KEY, -- bucket >> 20: 0 to 4095
  records INTEGER NOT NULL,
  low     INTEGER NOT NULL, -- sum of the lower 32 bits of the hashes
  high    INTEGER NOT NULL  -- sum of the upper bits
) STRICT;

-- Has its one row while a push is under way. Each transaction of a push claims it with its
-- own token, and fails when another push has taken over.
CREATE TABLE pushing (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  release TEXT    NOT NULL, -- the release being pushed; empty once it is complete
  back    INTEGER NOT NULL, -- 1 for a rollback, else 0
  token   TEXT    NOT NULL,
  claimed TEXT    NOT NULL CHECK (claimed = token),
  batch   INTEGER NOT NULL, -- number of the last transaction under this token
  dirty   INTEGER NOT NULL DEFAULT 0 -- 1 from the first record of the release until it is complete
) STRICT;

-- How places of search_name at the primary relate to those of the pushed file: they are the
-- file's plus generation << 28. terms identifies the way in which terms were made. One row
-- after the first push.
CREATE TABLE search_push (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL, -- 0 to 7
  terms      INTEGER NOT NULL
) STRICT;

CREATE TRIGGER content_added AFTER INSERT ON content WHEN EXISTS (SELECT 1 FROM content_whole) BEGIN
  INSERT INTO content_part (part, records, low, high)
  VALUES (NEW.bucket >> 20, 1, NEW.hash & 4294967295, NEW.hash >> 32)
  ON CONFLICT (part) DO UPDATE SET records = records + 1, low = low + excluded.low, high = high + excluded.high;
END;

CREATE TRIGGER content_changed AFTER UPDATE OF hash ON content WHEN EXISTS (SELECT 1 FROM content_whole) BEGIN
  UPDATE content_part SET low = low + (NEW.hash & 4294967295) - (OLD.hash & 4294967295),
    high = high + (NEW.hash >> 32) - (OLD.hash >> 32)
  WHERE part = NEW.bucket >> 20;
END;

CREATE TRIGGER content_gone AFTER DELETE ON content WHEN EXISTS (SELECT 1 FROM content_whole) BEGIN
  UPDATE content_part SET records = records - 1, low = low - (OLD.hash & 4294967295), high = high - (OLD.hash >> 32)
  WHERE part = OLD.bucket >> 20;
END;
