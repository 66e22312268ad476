-- What older copies of a state directory cost.

-- Charges that an edge reported beyond its lease, which were not debited, less those of
-- them that it took back since.
ALTER TABLE lease ADD COLUMN beyond INTEGER NOT NULL DEFAULT 0 CHECK (beyond >= 0);

-- 0 or 1: the state directory goes on in a newer epoch, so that who shows this one has an
-- older copy.
ALTER TABLE node_epoch ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
