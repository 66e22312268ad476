-- When the centre last wrote here, Unix milliseconds by its clock: what an edge reads of
-- it says how old its copy is. One row.
CREATE TABLE heartbeat (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  beat INTEGER NOT NULL
) STRICT;

-- What a push compares: a hash of each record. kind is 1 for a company with its
-- appointments, 2 for an LLP with its partners, 3 for a director, 4 for a pincode, 5 for
-- an entry of the search. bucket is a hash of kind and key, so that records which changed
-- lie spread. Kept by push alone.
CREATE TABLE content (
  bucket INTEGER NOT NULL, -- 0 to 2^32 - 1
  kind   INTEGER NOT NULL,
  key    TEXT    NOT NULL,
  hash   INTEGER NOT NULL,
  PRIMARY KEY (bucket, kind, key)
) STRICT, WITHOUT ROWID;

-- Holds its one row while a push is under way. Each transaction of a push claims it with
-- its own token, and fails when another push has taken over.
CREATE TABLE pushing (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  release TEXT    NOT NULL, -- what is being pushed
  token   TEXT    NOT NULL,
  claimed TEXT    NOT NULL CHECK (claimed = token),
  batch   INTEGER NOT NULL  -- number of the last transaction under this token
) STRICT;

-- How the places of search_name came here: they are those of the pushed file, plus
-- generation << 28. terms tells one way of making terms from another. One row, once
-- something was pushed.
CREATE TABLE search_push (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL, -- 0 to 7
  terms      INTEGER NOT NULL
) STRICT;

ALTER TABLE release ADD COLUMN digest    TEXT;    -- of all of content, once it was pushed
ALTER TABLE release ADD COLUMN pushed_at INTEGER; -- Unix seconds
