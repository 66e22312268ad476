-- Holds its one row while the register differs from the state of its newest release,
-- so that an import that was interrupted is released by the one that completes it.
CREATE TABLE unreleased (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  since INTEGER NOT NULL -- Unix seconds
) STRICT;
