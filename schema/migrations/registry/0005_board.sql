-- The directors of each company that has appointments, in the form of package board, so
-- that a lookup need not gather them. Made from appointment and director, and changed in
-- the same transaction as they are; a company that has no row here has its directors
-- gathered when it is looked up.
CREATE TABLE board (
  cin       TEXT NOT NULL PRIMARY KEY,
  directors TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Holds its one row while board is left empty, to be filled as a whole by the release.
CREATE TABLE unboarded (id INTEGER PRIMARY KEY CHECK (id = 1)) STRICT;

INSERT INTO unboarded (id) VALUES (1);
