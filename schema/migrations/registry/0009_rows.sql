-- The boards, each in the row that its company has in the table company, so that a lookup
-- which has found the company finds its board without looking for it by CIN. New companies
-- get the row that ident.CINNumber says; those that were there keep theirs.
--
-- A board of table board, which earlier programs filled, is good until it is made anew: then
-- it comes here, and goes there.
CREATE TABLE company_board (
  cin       TEXT NOT NULL PRIMARY KEY,
  directors TEXT NOT NULL
) STRICT;
