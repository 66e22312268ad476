-- The register itself: replaced in bulk by operators, replicated to every edge.
-- Dates are TEXT YYYY-MM-DD; times are Unix seconds, UTC; capital is whole rupees.
--
-- as_of is the date of the newest source that spoke of a record; older is NULL, or a
-- JSON object {field: date} for the fields whose value comes from an older source.

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
  listed             INTEGER,
  main_division      TEXT,
  business_activity  TEXT,
  principal_business TEXT,
  state              TEXT,
  pincode            TEXT,
  address_line       TEXT,
  city               TEXT,
  email              TEXT,
  phone              TEXT,
  website            TEXT,
  as_of              TEXT    NOT NULL,
  older              TEXT,
  last_updated       INTEGER NOT NULL
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

CREATE TABLE director (
  din              TEXT    NOT NULL PRIMARY KEY, -- 8 digits
  name             TEXT    NOT NULL,
  disqualified     INTEGER,                      -- 0 or 1
  designation      TEXT,                         -- general, where an appointment has none
  appointment_date TEXT,                         -- general, where an appointment has none
  as_of            TEXT    NOT NULL,
  older            TEXT,
  last_updated     INTEGER NOT NULL
) STRICT;

-- The latest known appointment of a director at a company. It may name a company or a
-- director that is not held: such a row is kept, and neither returned nor counted.
CREATE TABLE appointment (
  cin              TEXT NOT NULL,
  din              TEXT NOT NULL,
  designation      TEXT,
  appointment_date TEXT,
  cessation_date   TEXT,    -- set when the appointment has ceased on a known date
  cessation        TEXT,    -- NULL while current, else RESIGNED, REMOVED or CEASED (no reason given)
  as_of            TEXT NOT NULL,
  older            TEXT,
  PRIMARY KEY (cin, din)
) STRICT, WITHOUT ROWID;

CREATE INDEX appointment_by_director ON appointment (din);

-- who is the partner's DIN or DPIN, else '~' and the upper-cased name.
CREATE TABLE partner (
  llpin     TEXT NOT NULL,
  who       TEXT NOT NULL,
  din       TEXT,
  name      TEXT NOT NULL,
  status    TEXT,           -- the source's: ACTIVE, INACTIVE, RETIRED, or NULL
  joined_on TEXT,
  left_on   TEXT,
  as_of     TEXT NOT NULL,
  older     TEXT,
  PRIMARY KEY (llpin, who)
) STRICT, WITHOUT ROWID;

CREATE TABLE pincode (
  pincode  TEXT NOT NULL PRIMARY KEY,
  district TEXT,            -- of most of its post offices
  state    TEXT
) STRICT, WITHOUT ROWID;

-- One row for each state of the register that was completed; the newest seq is current.
CREATE TABLE release (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  released_at INTEGER NOT NULL,
  companies   INTEGER NOT NULL,
  llps        INTEGER NOT NULL,
  directors   INTEGER NOT NULL,
  appointments INTEGER NOT NULL,
  partners    INTEGER NOT NULL
) STRICT;
