-- Sums over content, by parts of 2^20 buckets, so that a push which changes little need
-- not look at every record. Push computes them for a snapshot; where pushes arrive, the
-- triggers keep them.
CREATE TABLE content_part (
  part    INTEGER PRIMARY KEY, -- bucket >> 20: 0 to 4095
  records INTEGER NOT NULL,
  low     INTEGER NOT NULL, -- sum of the lower 32 bits of the hashes
  high    INTEGER NOT NULL  -- sum of the bits above
) STRICT;

INSERT INTO content_part (part, records, low, high)
SELECT bucket >> 20, count(*), sum(hash & 4294967295), sum(hash >> 32) FROM content GROUP BY bucket >> 20;

CREATE TRIGGER content_added AFTER INSERT ON content WHEN EXISTS (SELECT 1 FROM search_push) BEGIN
  INSERT INTO content_part (part, records, low, high)
  VALUES (NEW.bucket >> 20, 1, NEW.hash & 4294967295, NEW.hash >> 32)
  ON CONFLICT (part) DO UPDATE SET records = records + 1, low = low + excluded.low, high = high + excluded.high;
END;

CREATE TRIGGER content_changed AFTER UPDATE OF hash ON content WHEN EXISTS (SELECT 1 FROM search_push) BEGIN
  UPDATE content_part SET low = low + (NEW.hash & 4294967295) - (OLD.hash & 4294967295),
    high = high + (NEW.hash >> 32) - (OLD.hash >> 32)
  WHERE part = NEW.bucket >> 20;
END;

CREATE TRIGGER content_gone AFTER DELETE ON content WHEN EXISTS (SELECT 1 FROM search_push) BEGIN
  UPDATE content_part SET records = records - 1, low = low - (OLD.hash & 4294967295), high = high - (OLD.hash >> 32)
  WHERE part = OLD.bucket >> 20;
END;
