-- The name search over companies and LLPs. docs/search.md says how it is used.

-- The names in the order of the search: place grows from the best to the last, which is
-- active first, then shorter, then alphabetical, then by value. Active names have places
-- below 2^32, the others above. Between neighbours there is room for new ones.
CREATE TABLE search_name (
  place INTEGER PRIMARY KEY,
  value TEXT    NOT NULL UNIQUE, -- CIN or LLPIN
  name  TEXT    NOT NULL         -- in the form that searches compare
) STRICT;

-- The terms of each name, under its place as the rowid. The text is not kept here, so
-- that a row is taken out by the 'delete' command, with its terms.
CREATE VIRTUAL TABLE search_index USING fts5 (
  terms, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '=.^_$'"
);

-- Terms are gathered in up to 16 MiB of memory before they are written.
INSERT INTO search_index (search_index, rank) VALUES ('hashsize', 16777216);

-- Small pages let a search skip through long lists.
INSERT INTO search_index (search_index, rank) VALUES ('pgsz', 1000);

-- The terms that many names have, in quotes, and how many: a search begins with its rarest.
-- Counted when the index is built anew; it need not be exact.
CREATE TABLE search_common (
  term  TEXT    NOT NULL PRIMARY KEY,
  names INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Records whose name or status changed since search_name was brought up to date; the
-- value '*' stands for all of them. Rows may repeat.
CREATE TABLE search_pending (value TEXT NOT NULL) STRICT;
