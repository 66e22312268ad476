package handler

import "regedge/handler/ident"

// maxLinkedCompanies caps the list of a director's companies (docs/contract.md, "Director").
const maxLinkedCompanies = "10"

// directorStatement reads a director (?1 the DIN) with the linked companies: the current
// appointments at companies that the registry has. A director without any appointment has no
// status; docs/contract.md, "Director", says how the others get theirs.
const directorStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  d.din, d.name,
  CASE
    WHEN d.disqualified = 1 THEN 'DISQUALIFIED'
    WHEN EXISTS (SELECT 1 FROM appointment WHERE din = d.din AND cessation IS NULL) THEN 'ACTIVE'
    ELSE (SELECT CASE cessation WHEN 'REMOVED' THEN 'REMOVED' ELSE 'RESIGNED' END
      FROM appointment WHERE din = d.din
      ORDER BY cessation = 'CEASED', cessation_date DESC, cin LIMIT 1)
  END,
  (SELECT json_group_array(json_object('cin', cin, 'company_name', company_name, 'status', status,
      'designation', designation, 'appointment_date', appointment_date))
    FROM (
      SELECT c.cin AS cin, c.company_name AS company_name, c.status AS status,
        a.designation AS designation, a.appointment_date AS appointment_date
      FROM appointment a CROSS JOIN company c ON c.cin = a.cin
      WHERE a.din = d.din AND a.cessation IS NULL
      ORDER BY a.appointment_date IS NULL, a.appointment_date DESC, a.cin
      LIMIT ` + maxLinkedCompanies + `)),
  (SELECT count(*) FROM appointment a CROSS JOIN company c ON c.cin = a.cin
    WHERE a.din = d.din AND a.cessation IS NULL)
FROM (SELECT 1)
LEFT JOIN director d ON d.din = ?1`

var directorFields = []field{
	{`{"din":`, (*writer).value},
	{`,"name":`, (*writer).value},
	{`,"status":`, (*writer).value},
	{`,"linked_companies":`, (*writer).json},
	{`,"linked_companies_total":`, (*writer).value},
}

func (c *call) director() answer {
	din, ok := ident.DIN(c.param())
	if !ok {
		return mistaken(InvalidDIN, c.param())
	}
	row, failure := c.readRecord(DirectorNotFound, directorStatement, text(din))
	if row == nil {
		return failure
	}
	return renderFields(directorFields, row)
}
