package load

import (
	"encoding/json"
	"fmt"

	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

// A company's district follows from its pincode, by the directory. If there is no pincode, or the directory
// lacks it, the newest source that names a district decides: only then is column district merged.

// mergeCompany merges a company's values of a source of date asOf into its state.
func (s *Store) mergeCompany(said []record.Value, asOf string) (did merge.Effect) {
	t, now := record.CompanyTable, s.known[record.CompanyTable]
	named := said[record.CompanyDistrict]
	said[record.CompanyDistrict] = record.Value{}
	did = now.Merge(t, said, asOf)
	said[record.CompanyDistrict] = named
	if s.dropNamed() || named.Kind == record.Null {
		return did
	}
	s.onlyDistrict[record.CompanyDistrict] = named
	more := now.Merge(t, s.onlyDistrict, asOf)
	return merge.Effect{Content: did.Content || more.Content, Stored: did.Stored || more.Stored}
}

// dropNamed forgets the named district of the company at hand if its pincode is known, and reports
// whether it is.
func (s *Store) dropNamed() bool {
	now := s.known[record.CompanyTable]
	if _, placed := s.districts[now.Values[record.CompanyPincode].Text]; !placed {
		return false
	}
	now.Drop(record.CompanyTable, record.CompanyDistrict)
	return true
}

// districtOf returns the district to store for the company at hand.
func (s *Store) districtOf() record.Value {
	now := s.known[record.CompanyTable]
	if district, placed := s.districts[now.Values[record.CompanyPincode].Text]; placed {
		return record.TextOf(district)
	}
	return now.Values[record.CompanyDistrict]
}

// readDistricts reads the districts of all pincodes: 19,000 in India.
func (s *Store) readDistricts() error {
	held, err := s.places()
	if err != nil {
		return fmt.Errorf("read the pincodes: %w", err)
	}
	s.districts = make(map[string]string, len(held))
	for pincode, p := range held {
		s.districts[pincode] = p.District
	}
	return nil
}

// putDistricts updates the districts of the companies in the pincodes ?1, a JSON array. Their district
// is derived from then on, so the date of a district that a source named is removed.
const putDistricts = `UPDATE company SET district = (SELECT p.district FROM pincode p WHERE p.pincode = company.pincode),
  older = nullif(json_remove(older, '$.district'), '{}')
WHERE pincode IN (SELECT value FROM json_each(?1))`

// updateDistricts updates the districts of the companies in pincodes.
func (s *Store) updateDistricts(pincodes []string) error {
	if len(pincodes) == 0 {
		return nil
	}
	list, err := json.Marshal(pincodes)
	if err == nil {
		err = s.exec(putDistricts, record.TextOf(string(list)))
	}
	if err != nil {
		return fmt.Errorf("update the districts of companies: %w", err)
	}
	return s.readDistricts()
}
