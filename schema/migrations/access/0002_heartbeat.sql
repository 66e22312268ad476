-- When the writer last wrote here, Unix milliseconds by its clock: what an edge reads of
-- it says how old its copy is. One row.
CREATE TABLE heartbeat (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  beat INTEGER NOT NULL
) STRICT;
