-- Charges that an edge reported beyond its lease, which were not debited, less those of
-- them that it took back since.
ALTER TABLE lease ADD COLUMN beyond INTEGER NOT NULL DEFAULT 0 CHECK (beyond >= 0);
