-- Hashes of records that a push changed since content was filled. In content the records of one release
-- lie apart, so that each would change a page of its own, which every replica copies; here they lie
-- close together. The hash of a record is the one here, else the one in content. Rows stay until content is
-- filled anew. The last three columns are what a row adds to the sums over content.
CREATE TABLE content_newer (
  bucket  INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  key     TEXT    NOT NULL,
  hash    INTEGER, -- NULL: the record was removed
  was     INTEGER, -- the hash in content; NULL: it has none
  records INTEGER NOT NULL AS ((hash IS NOT NULL) - (was IS NOT NULL)) VIRTUAL,
  low     INTEGER NOT NULL AS (coalesce(hash & 4294967295, 0) - coalesce(was & 4294967295, 0)) VIRTUAL,
  high    INTEGER NOT NULL AS (coalesce(hash >> 32, 0) - coalesce(was >> 32, 0)) VIRTUAL,
  PRIMARY KEY (bucket, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER content_newer_added AFTER INSERT ON content_newer WHEN EXISTS (SELECT 1 FROM content_whole) BEGIN
  INSERT INTO content_part (part, records, low, high)
  VALUES (NEW.bucket >> 20, NEW.records, NEW.low, NEW.high)
  ON CONFLICT (part) DO UPDATE SET records = records + excluded.records, low = low + excluded.low, high = high + excluded.high;
END;

CREATE TRIGGER content_newer_changed AFTER UPDATE ON content_newer WHEN EXISTS (SELECT 1 FROM content_whole) BEGIN
  UPDATE content_part SET records = records + NEW.records - OLD.records, low = low + NEW.low - OLD.low, high = high + NEW.high - OLD.high
  WHERE part = NEW.bucket >> 20;
END;
