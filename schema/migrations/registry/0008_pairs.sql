-- The registered name, as a search shows it: empty where it is name in capitals, NULL where
-- it is to be looked up, since the index was built before this column was.
ALTER TABLE search_name ADD COLUMN label TEXT;

-- The terms of a name have pairs of its words, longer beginnings and runs of eight
-- characters too, which searches ask for. So the index of a register that has one is built
-- anew by the next import, and released by it.
INSERT INTO search_pending (value)
SELECT '*' WHERE EXISTS (SELECT 1 FROM search_name);

INSERT INTO unreleased (id, since)
SELECT 1, unixepoch() WHERE EXISTS (SELECT 1 FROM search_name) AND NOT EXISTS (SELECT 1 FROM unreleased);
