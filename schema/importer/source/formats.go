package source

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"regedge/schema/importer/record"
)

// format is one kind of CSV file, recognised by its header.
type format struct {
	Name string
	// personal formats may have personal contact details in columns that we do not read:
	// those are never written to the rejects file.
	personal bool
	required []field
	// usual columns are not required; but if one is missing, the publisher has probably named it differently.
	usual   []field
	columns map[string]field // by squashed header
	// portal has the column names of the MCA portal's company page that are not in columns.
	portal map[string]field
	// instead has names that count for a field if no column has the field's own name.
	instead map[string]field
	// spare has names that other publishers use. They count for a field only if it is not required, no column has it by
	// a name above, and exactly one column has it by a name here. A file that was read without them is still read with
	// them.
	spare map[string]field
	// others has more such names. They count for a field only if no column has it by a name in spare.
	others map[string]field
	// blankEnd has the fields that may be missing at the end of a row, except in a row where the file is cut off. They
	// are empty in most rows, and if they are empty in sixteen rows running, spreadsheets leave them out.
	blankEnd []field
	// take turns the current row into a record, or returns a *rejection or an *omission. A
	// post office, which is counted instead, gives a record without a table.
	take func(s *sheet) (record.Record, error)
	Rank Rank
}

// Rank orders the files of a run: files come after the files that they refer to.
type Rank int

// The ranks, by what the files hold.
const (
	RankPincodes  Rank = iota
	RankCompanies      // and LLPs
	RankContacts       // each needs its company
	RankDirectors
	RankAppointments
	RankPartners
)

// field is the meaning of a column. A format uses some of them.
type field int

const (
	fieldCIN field = iota
	fieldDIN
	fieldLLPIN
	fieldName
	fieldStatus
	fieldDate
	fieldROC
	fieldCategory
	fieldSubCategory
	fieldClass
	fieldAuthorized
	fieldPaidUp
	fieldAddress
	fieldListed
	fieldState
	fieldDivision
	fieldActivity
	fieldActivityText
	fieldActivityCode
	fieldPrincipal
	fieldEmail
	fieldPhone
	fieldWebsite
	fieldContribution
	fieldLine
	fieldCity
	fieldPincode
	fieldDistrict
	fieldOffice
	fieldDisqualified
	fieldDesignation
	fieldEnd
	fieldReason
	fieldCount
)

var companyFormat = &format{
	Name:     "companies",
	required: []field{fieldCIN, fieldName, fieldStatus},
	usual:    []field{fieldDate, fieldAuthorized, fieldPaidUp, fieldAddress},
	take:     takeCompany,
	Rank:     RankCompanies,
	columns: map[string]field{
		"cin": fieldCIN, "corporateidentificationnumber": fieldCIN,
		"companyname": fieldName, "companystatus": fieldStatus,
		"companyregistrationdatedate": fieldDate, "companyregistrationdate": fieldDate, "dateofregistration": fieldDate,
		"companyroccode": fieldROC, "registrarofcompanies": fieldROC,
		"companycategory":    fieldCategory,
		"companysubcategory": fieldSubCategory, "subcategory": fieldSubCategory,
		"companyclass":      fieldClass,
		"authorizedcapital": fieldAuthorized, "authorisedcapital": fieldAuthorized, "authorizedcap": fieldAuthorized,
		"paidupcapital": fieldPaidUp, "paidupcap": fieldPaidUp,
		"registeredofficeaddress": fieldAddress,
		"listingstatus":           fieldListed,
		"companystatecode":        fieldState, "registeredstate": fieldState,
		"companyindustrialclassification":   fieldActivity,
		"principalbusinessactivityaspercin": fieldPrincipal,
		"principalbusinessactivity":         fieldPrincipal,
		"emailaddr":                         fieldEmail,
		"emailaddress":                      fieldEmail,
	},
	portal: map[string]field{
		"roccode": fieldROC, "rocname": fieldROC, "classofcompany": fieldClass, "dateofincorporation": fieldDate,
		"registeredaddress": fieldAddress, "emailid": fieldEmail, "whetherlistedornot": fieldListed,
		"companystatusforefiling": fieldStatus,
	},
	instead: map[string]field{
		"cinno": fieldCIN, "cinnumber": fieldCIN, "corporateidentitynumber": fieldCIN,
		"companysname": fieldName, "nameofcompany": fieldName, "nameofthecompany": fieldName,
	},
	spare: map[string]field{
		"state": fieldState, "companystate": fieldState, "registeredofficestate": fieldState,
		"incorporationdate": fieldDate, "registrationdate": fieldDate,
		"authorizedsharecapital": fieldAuthorized, "authorisedsharecapital": fieldAuthorized, "paidupsharecapital": fieldPaidUp,
		"address": fieldAddress, "roc": fieldROC, "category": fieldCategory, "class": fieldClass,
		"listed": fieldListed, "whetherlisted": fieldListed, "email": fieldEmail, "city": fieldCity, "district": fieldDistrict, "pincode": fieldPincode,
	},
	others: map[string]field{"addressofregisteredoffice": fieldAddress, "registeredoffice": fieldAddress, "rocoffice": fieldROC},
}

var llpListFormat = &format{
	Name:     "monthly LLP list",
	required: []field{fieldLLPIN, fieldName, fieldStatus},
	usual:    []field{fieldDate, fieldAddress},
	take:     takeListedLLP,
	Rank:     RankCompanies,
	columns: map[string]field{
		"llpin": fieldLLPIN, "llpname": fieldName, "founded": fieldDate, "status": fieldStatus,
		"industrialactivity": fieldActivityCode, "activitydescription": fieldActivity, "description": fieldActivityText,
		"obligationofcontribution": fieldContribution, "state": fieldState, "address": fieldAddress,
	},
	instead: portalStatus,
	spare: map[string]field{
		"dateofincorporation": fieldDate, "dateofregistration": fieldDate, "registrationdate": fieldDate,
		"contribution": fieldContribution, "totalobligationofcontribution": fieldContribution, "registeredaddress": fieldAddress,
		"registeredofficeaddress": fieldAddress, "city": fieldCity, "pincode": fieldPincode,
	},
}

var llpFormat = &format{
	Name:     "LLPs",
	required: []field{fieldLLPIN, fieldName, fieldStatus, fieldDate},
	take:     takeLLP,
	Rank:     RankCompanies,
	columns: map[string]field{
		"llpin": fieldLLPIN, "llpname": fieldName, "status": fieldStatus, "incorporationdate": fieldDate,
		"maindivision": fieldDivision, "businessactivity": fieldActivity, "contribution": fieldContribution,
		"addressline": fieldLine, "city": fieldCity, "state": fieldState, "pincode": fieldPincode,
	},
	instead: portalStatus,
	spare: map[string]field{
		"obligationofcontribution": fieldContribution, "totalobligationofcontribution": fieldContribution,
		"address": fieldAddress, "registeredaddress": fieldAddress, "registeredofficeaddress": fieldAddress,
		"activitydescription": fieldActivity,
	},
}

// portalStatus is the portal's name of a column that both formats of LLPs have.
var portalStatus = map[string]field{"llpstatus": fieldStatus}

var directorFormat = &format{
	Name:     "directors",
	personal: true,
	required: []field{fieldDIN, fieldName, fieldDisqualified},
	take:     takeDirector,
	Rank:     RankDirectors,
	blankEnd: []field{fieldDesignation, fieldDate},
	columns: map[string]field{
		"din": fieldDIN, "name": fieldName, "disqualified": fieldDisqualified,
		"designation": fieldDesignation, "appointmentdate": fieldDate,
	},
}

var appointmentFormat = &format{
	Name:     "appointments",
	personal: true,
	required: []field{fieldCIN, fieldDIN, fieldDate},
	usual:    []field{fieldEnd},
	take:     takeAppointment,
	Rank:     RankAppointments,
	blankEnd: []field{fieldEnd, fieldReason},
	columns: map[string]field{
		"cin": fieldCIN, "din": fieldDIN, "designation": fieldDesignation, "appointmentdate": fieldDate,
		"cessationdate": fieldEnd, "cessationreason": fieldReason,
	},
}

var partnerFormat = &format{
	Name:     "partners",
	personal: true,
	required: []field{fieldLLPIN, fieldName, fieldDate},
	usual:    []field{fieldDIN, fieldEnd},
	take:     takePartner,
	Rank:     RankPartners,
	blankEnd: []field{fieldEnd},
	columns: map[string]field{
		"llpin": fieldLLPIN, "din": fieldDIN, "name": fieldName, "status": fieldStatus,
		"joinedon": fieldDate, "lefton": fieldEnd,
	},
}

var contactFormat = &format{
	Name:     "company contacts",
	required: []field{fieldCIN, fieldEmail},
	take:     takeContact,
	Rank:     RankContacts,
	blankEnd: []field{fieldPhone, fieldWebsite},
	columns: map[string]field{
		"cin": fieldCIN, "email": fieldEmail, "phone": fieldPhone, "website": fieldWebsite,
	},
}

// onlyChecked are the fields that give no value: they say whether others have theirs. A row may lack them.
var onlyChecked = []field{fieldOffice}

var PincodeFormat = &format{
	Name:     "post offices",
	required: []field{fieldPincode, fieldDistrict, fieldState},
	take:     takeOffice,
	blankEnd: onlyChecked,
	columns: map[string]field{
		"pincode": fieldPincode, "district": fieldDistrict, "districtname": fieldDistrict, "statename": fieldState,
	},
	spare: map[string]field{"officename": fieldOffice},
}

// documentFormat is JSON: it is recognised by its first character.
var documentFormat = &format{Name: "company documents", personal: true, Rank: RankCompanies}

// formats is searched in order: a file has the first format whose required columns are all present.
var formats = []*format{
	companyFormat, PincodeFormat, llpFormat, llpListFormat, partnerFormat, appointmentFormat, directorFormat, contactFormat,
}

// maxHeaderShown is how much of an unknown header an error shows, in bytes: enough for any official one.
const maxHeaderShown = 600

var errHeader = errors.New("the header is not that of a known format")

// recognise finds the format of a header and the column of each of its fields. A format that needs a name from instead
// is chosen only if no other fits without one.
func recognise(header []string) (*format, []int, error) {
	advice := "docs/import-formats.md"
	for _, places := range []func(*format, []string) ([]int, error){(*format).ownPlaces, (*format).places} {
		for _, f := range formats {
			places, err := places(f, header)
			if err != nil {
				return nil, nil, err
			}
			if f == contactFormat && isCompanies(header, places) {
				advice = "for contacts alone, leave the CIN and the contacts"
			} else if f.hasRequired(places) {
				return f, places, nil
			}
		}
	}
	columns := cut(strings.Join(header, ", "), maxHeaderShown)
	if f, lacks := nearest(header); f != nil {
		return nil, nil, fmt.Errorf("%w: its columns are %s; nearest are %s, which also need %s (%s)",
			errHeader, columns, f.Name, strings.Join(lacks, " and "), advice)
	}
	if isNumber := func(s string) bool { _, cin := cinOf(s); _, llpin := llpinOf(s); return cin || llpin }; slices.ContainsFunc(header, isNumber) {
		return nil, nil, fmt.Errorf("%w: the first row is data, %s; put the header above it", errHeader, columns)
	}
	return nil, nil, fmt.Errorf("%w: its columns are %s; docs/import-formats.md lists the known ones", errHeader, columns)
}

// requiredNames are the names of required columns, squashed.
var requiredNames = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range formats {
		for _, columns := range []map[string]field{f.columns, f.portal, f.instead} {
			for name, of := range columns {
				if slices.Contains(f.required, of) {
					names[name] = true
				}
			}
		}
	}
	return names
}()

// mayBeHeader reports whether a row has two names of required columns, as each header has. It tells so sooner than recognise, which
// takes a second for sixty thousand columns.
func mayBeHeader(raw string) bool {
	if strings.Count(raw, ",")+strings.Count(raw, ";")+strings.Count(raw, "\t")+strings.Count(raw, "|") > maxHeaderColumns {
		return false
	}
	for _, separator := range []byte(separators) {
		found := 0
		for _, name := range columnNames(raw, separator) {
			if requiredNames[squash(name)] {
				found++
			}
		}
		if found > 1 {
			return true
		}
	}
	return false
}

// maxHeaderColumns is the most columns of a header below the second row. Known ones have fewer than a hundred.
const maxHeaderColumns = 1000

// isCompanies reports whether a header with the columns of contacts, at these places, has so many columns of companies
// that it belongs to a list of companies without their status, such as the MCA's monthly ones.
func isCompanies(header []string, contacts []int) bool {
	companies, err := companyFormat.places(header)
	if err != nil || contacts[fieldCIN] < 0 || contacts[fieldEmail] < 0 || companies[fieldName] < 0 || contacts[fieldPhone] >= 0 || contacts[fieldWebsite] >= 0 {
		return false
	}
	usual := 0
	for _, f := range companyFormat.usual {
		if companies[f] >= 0 {
			usual++
		}
	}
	return usual > 1
}

// nearest returns the format that shares the most columns with a header, at least two or its key, which counts for three, and
// the required columns that the header lacks.
func nearest(header []string) (best *format, lacks []string) {
	most := 1
	for _, f := range formats {
		places, err := f.places(header)
		if err != nil {
			continue
		}
		known := 0
		for _, place := range places {
			if place >= 0 {
				known++
			}
		}
		if places[f.required[0]] >= 0 {
			known += 2
		}
		if known <= most {
			continue
		}
		best, most, lacks = f, known, nil
		for _, r := range f.required {
			if places[r] < 0 {
				lacks = append(lacks, f.columnNames(r))
			}
		}
	}
	return best, lacks
}

// columnNames lists the names of a field's column, as "cin or corporateidentificationnumber".
func (f *format) columnNames(of field) string {
	var names []string
	for name, meaning := range f.columns {
		if meaning == of {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// places returns the index of each field's column, or -1. Two columns of one field are an
// error, since to choose one would be a guess.
func (f *format) places(header []string) ([]int, error) {
	places, err := f.ownPlaces(header)
	if err != nil {
		return nil, err
	}
	own := slices.Clone(places)
	return places, placeOnce(header, places, func(name string) (field, bool) {
		meaning, ok := f.instead[squash(name)]
		return meaning, ok && own[meaning] < 0
	})
}

// ownPlaces is places without the names in instead, which are all of required fields.
func (f *format) ownPlaces(header []string) ([]int, error) {
	places := make([]int, fieldCount)
	for i := range places {
		places[i] = -1
	}
	if err := placeOnce(header, places, f.meaning); err != nil {
		return nil, err
	}
	f.placeSpare(header, places)
	return places, nil
}

// placeOnce adds the columns that have a meaning, which no two may share.
func placeOnce(header []string, places []int, meaning func(name string) (field, bool)) error {
	for i, name := range header {
		of, ok := meaning(name)
		if !ok {
			continue
		}
		if places[of] >= 0 {
			return fmt.Errorf("the header names %q and %q, which mean the same: leave one out, or, if the header has two rows, make them one", header[places[of]], name)
		}
		places[of] = i
	}
	return nil
}

// placeSpare adds the columns that only spare names or, for fields without such a column, that others or reworded
// names.
func (f *format) placeSpare(header []string, places []int) {
	spare, others := map[field][]int{}, map[field][]int{}
	for i, name := range header {
		columns := spare
		meaning, ok := named(f.spare, name)
		if !ok {
			columns = others
			meaning, ok = f.reworded(name)
		}
		if ok && places[meaning] < 0 && !slices.Contains(f.required, meaning) {
			columns[meaning] = append(columns[meaning], i)
		}
	}
	for meaning := range fieldCount {
		at := spare[meaning]
		if at == nil {
			at = others[meaning]
		}
		isOfAddress := meaning == fieldCity || meaning == fieldDistrict || meaning == fieldPincode
		if len(at) == 1 && !(isOfAddress && hasOtherAddress(header, places)) {
			places[meaning] = at[0]
		}
	}
}

// hasOtherAddress reports whether a header has a column with an address beside the one that is read, such as "Correspondence Address". Of
// which of the two the columns of city, district and pincode are, can't be told. "Address 2" is a part of one.
func hasOtherAddress(header []string, places []int) bool {
	for i, name := range header {
		name = squash(name)
		isAddress := strings.Contains(name, "address") && !strings.Contains(name, "mail") && !strings.Contains(name, "web")
		if (isAddress || strings.Contains(name, "correspondence")) && strings.TrimRight(name, "0123456789") == name && !slices.Contains(places, i) {
			return true
		}
	}
	return false
}

// wordsOfNames are what the abbreviations in the names of columns stand for.
var wordsOfNames = map[string]string{
	"regn": "registration", "regd": "registered", "incorp": "incorporation", "dt": "date", "auth": "authorised", "co": "company",
}

// dateForm matches a form of dates after a column's name, if dates with its separator are read in that form
// (dateReader.parse).
var dateForm = regexp.MustCompile(`(?i)^\s*(d?d[-.]m{1,3}[-.]yy(yy)?|m?m/d?d/yy(yy)?|d?d/mmm/yy(yy)?|yyyy[-./]mm[-./]dd)\s*\)?\s*$`)

// formOf returns the first letter of the form of dates that a column's name has after it, such as d, or 0.
func formOf(name string) byte {
	_, form, _ := strings.Cut(name, "(")
	if !dateForm.MatchString(form) {
		return 0
	}
	return strings.ToLower(strings.TrimSpace(form))[0]
}

// reworded is the field of a column by its name with abbreviations in full: "Regd. Office Address", "Auth. Capital
// (Rs.)", "Date of Regn. (DD-MM-YYYY)". Dates in another form, such as DD/MM/YYYY, would be misread: such a column has
// no field.
func (f *format) reworded(name string) (field, bool) {
	before, after, _ := strings.Cut(name, "(")
	words := strings.FieldsFunc(strings.ToLower(before), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	for i, w := range words {
		if full := wordsOfNames[w]; full != "" {
			words[i] = full
		}
	}
	full, isDate := strings.Join(words, ""), dateForm.MatchString(after)
	if after != "" && !isDate {
		full += "(" + after
	}
	meaning, ok := f.meaning(full)
	for _, names := range []map[string]field{f.spare, f.others} {
		if !ok {
			meaning, ok = named(names, full)
		}
	}
	return meaning, ok && (!isDate || meaning == fieldDate)
}

// meaning is the field of a column by its name.
func (f *format) meaning(name string) (field, bool) {
	if meaning, ok := f.portal[squash(name)]; ok {
		return meaning, true
	}
	return named(f.columns, name)
}

// named looks a column up by its name, which may have the unit after it: "Paid up Capital (Rs.)".
func named(columns map[string]field, name string) (field, bool) {
	if meaning, ok := columns[squash(name)]; ok {
		return meaning, true
	}
	before, unit, _ := strings.Cut(name, "(")
	if !slices.Contains([]string{"rs", "inrs", "inr", "rupees", "inrupees"}, squash(unit)) {
		return 0, false
	}
	meaning, ok := columns[squash(before)]
	return meaning, ok && (meaning == fieldAuthorized || meaning == fieldPaidUp || meaning == fieldContribution)
}

// needed is how many fields a row must have, given the column of each field, for all fields but some.
func needed(places []int, but []field) (columns int) {
	for of, place := range places {
		if !slices.Contains(but, field(of)) {
			columns = max(columns, place+1)
		}
	}
	return columns
}

// lacking lists the usual columns that a header lacks, and its columns that are not read; "" if none lack.
func (f *format) lacking(header []string, places []int) string {
	var lacks, others []string
	for _, usual := range f.usual {
		if places[usual] < 0 {
			lacks = append(lacks, f.columnNames(usual))
		}
	}
	if lacks == nil {
		return ""
	}
	for at, name := range header {
		if strings.TrimSpace(name) != "" && !slices.Contains(places, at) {
			others = append(others, name)
		}
	}
	if others == nil {
		return strings.Join(lacks, ", ")
	}
	return strings.Join(lacks, ", ") + cut("; not read are "+strings.Join(others, ", "), maxHeaderShown)
}

func (f *format) hasRequired(places []int) bool {
	for _, r := range f.required {
		if places[r] < 0 {
			return false
		}
	}
	return true
}

// cut shortens s to about n bytes for a message.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
