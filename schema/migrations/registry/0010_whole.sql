-- What a lookup of a company reads beside the company's own columns, in the company's row: its
-- board, in the form of package board, and the district of its pincode. They are made from
-- appointment, director and pincode, and changed in the same transaction as those are.
--
-- directors is NULL in a row that an earlier program made. Its board is the one of company_board
-- or of board, which nothing fills any more, or is gathered; its district is looked up.
ALTER TABLE company ADD COLUMN district  TEXT;
ALTER TABLE company ADD COLUMN directors TEXT;
