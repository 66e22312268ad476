package handler

import "regedge/handler/ident"

// maxPartners caps the list of an LLP's partners (docs/contract.md, "LLP").
const maxPartners = "50"

// llpStatement reads an LLP (?1 its LLPIN) with its partners, former ones too.
const llpStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  l.llpin, l.llp_name, l.status, l.incorporation_date, l.state, p.district, l.pincode,
  CASE WHEN l.address_line IS NULL OR l.city IS NULL THEN coalesce(l.address_line, l.city)
    ELSE l.address_line || ', ' || l.city END,
  coalesce(l.main_division, l.business_activity),
  l.contribution,
  (SELECT json_group_array(json_object('din', din, 'name', name, 'status', status,
      'joined_on', joined_on, 'left_on', left_on))
    FROM (
      SELECT din, name, joined_on, left_on,
        CASE WHEN left_on IS NOT NULL THEN 'RETIRED' ELSE coalesce(status, 'ACTIVE') END AS status
      FROM partner
      WHERE llpin = l.llpin
      ORDER BY joined_on IS NULL, joined_on DESC, name, who
      LIMIT ` + maxPartners + `)),
  (SELECT count(*) FROM partner WHERE llpin = l.llpin),
  l.last_updated
FROM (SELECT 1)
LEFT JOIN llp l ON l.llpin = ?1
LEFT JOIN pincode p ON p.pincode = l.pincode`

var llpFields = []field{
	{`{"llpin":`, (*writer).value},
	{`,"llp_name":`, (*writer).value},
	{`,"status":`, (*writer).value},
	{`,"incorporation_date":`, (*writer).value},
	{`,"state":`, (*writer).value},
	{`,"district":`, (*writer).value},
	{`,"pincode":`, (*writer).value},
	{`,"address":`, (*writer).value},
	{`,"activity":`, (*writer).value},
	{`,"contribution":`, (*writer).value},
	{`,"partners":`, (*writer).json},
	{`,"partners_total":`, (*writer).value},
	{`,"last_updated":`, (*writer).timestamp},
}

func (c *call) llp() answer {
	llpin, ok := ident.LLPIN(c.param())
	if !ok {
		return mistaken(InvalidLLPIN, c.param())
	}
	row, failure := c.readRecord(LLPNotFound, llpStatement, text(llpin))
	if row == nil {
		return failure
	}
	return renderFields(llpFields, row)
}
