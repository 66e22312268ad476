-- The terms of a name have runs of five characters too, which searches ask for. So the
-- index of a register that has one is built anew by the next import, and released by it.
INSERT INTO search_pending (value)
SELECT '*' WHERE EXISTS (SELECT 1 FROM search_name);

INSERT INTO unreleased (id, since)
SELECT 1, unixepoch() WHERE EXISTS (SELECT 1 FROM search_name) AND NOT EXISTS (SELECT 1 FROM unreleased);
