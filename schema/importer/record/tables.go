package record

// Table describes how records of one kind are stored and merged.
type Table struct {
	Name    string
	Key     []string // columns of the primary key
	Columns []string // the columns that a source may give, in the order of Record.Values
	// Units partition the columns: each is taken from one source as a whole. An address is four units
	// (RATIONALE.md, "Why are imports merged field by field?").
	Units    []Unit
	Required []int  // columns that a new record must have
	Lack     string // why a record without them is rejected
	// Stamped tables have last_updated.
	Stamped bool
	// Row is an SQL expression for the rowid of a new row, used unless another row has it, with
	// ?1 for the first column of the key; empty for the next free one.
	Row string
}

// Unit is one unit of merging: a column, or several that only make sense together.
type Unit struct {
	Name    string // in the JSON of column older
	Columns []int
	// Always is set if every record of the table counts for this unit, even with all its columns
	// NULL. Otherwise NULL means that the source does not know.
	Always bool
	// Compare orders two states of equal date; the greater wins.
	Compare func(a, b []Value) int
}

// The columns of a company, in the order of CompanyTable.
const (
	CompanyName = iota
	CompanyStatus
	CompanyIncorporation
	CompanyCategory
	CompanySubCategory
	CompanyClass
	CompanyROC
	CompanyAuthorized
	CompanyPaidUp
	CompanyListed
	CompanyMainDivision
	CompanyActivity
	CompanyPrincipal
	CompanyState
	CompanyPincode
	CompanyLine
	CompanyCity
	CompanyEmail
	CompanyPhone
	CompanyWebsite
	// CompanyDistrict is the district that the source names. It is stored, and merged, only while the
	// company has no pincode that the directory knows: else the column follows from that.
	CompanyDistrict
	CompanyColumns
)

var CompanyTable = &Table{
	Name: "company",
	Key:  []string{"cin"},
	Columns: []string{
		"company_name", "status", "incorporation_date", "category", "sub_category", "class", "roc",
		"authorized_capital", "paid_up_capital", "listed", "main_division", "business_activity",
		"principal_business", "state", "pincode", "address_line", "city", "email", "phone", "website", "district",
	},
	Required: []int{CompanyName, CompanyStatus},
	Lack:     NotHeld,
	Stamped:  true,
	Row:      "cin_number(?1)",
}

// The columns of an LLP, in the order of LLPTable.
const (
	LLPName = iota
	LLPStatus
	LLPIncorporation
	LLPMainDivision
	LLPActivity
	LLPContribution
	LLPState
	LLPPincode
	LLPLine
	LLPCity
	LLPColumns
)

var LLPTable = &Table{
	Name: "llp",
	Key:  []string{"llpin"},
	Columns: []string{
		"llp_name", "status", "incorporation_date", "main_division", "business_activity",
		"contribution", "state", "pincode", "address_line", "city",
	},
	Required: []int{LLPName, LLPStatus},
	Lack:     NoName,
	Stamped:  true,
}

// The columns of a director, in the order of DirectorTable.
const (
	DirectorName = iota
	DirectorDisqualified
	DirectorDesignation
	DirectorAppointed
	DirectorColumns
)

var DirectorTable = &Table{
	Name:     "director",
	Key:      []string{"din"},
	Columns:  []string{"name", "disqualified", "designation", "appointment_date"},
	Required: []int{DirectorName},
	Lack:     NoName,
	Stamped:  true,
}

// The columns of an appointment, in the order of AppointmentTable.
const (
	AppointmentDesignation = iota
	AppointmentDate
	AppointmentEnd
	AppointmentCessation
	AppointmentColumns
)

var AppointmentTable = &Table{
	Name:    "appointment",
	Key:     []string{"cin", "din"},
	Columns: []string{"designation", "appointment_date", "cessation_date", "cessation"},
	Units: []Unit{
		{Name: "designation", Columns: []int{AppointmentDesignation}, Compare: compareAll},
		{
			Name: "appointment", Columns: []int{AppointmentDate, AppointmentEnd, AppointmentCessation},
			Always: true, Compare: compareAppointments,
		},
	},
}

// The columns of a partner, in the order of PartnerTable.
const (
	PartnerDIN = iota
	PartnerName
	PartnerStatus
	PartnerJoined
	PartnerLeft
	PartnerColumns
)

var PartnerTable = &Table{
	Name:     "partner",
	Key:      []string{"llpin", "who"},
	Columns:  []string{"din", "name", "status", "joined_on", "left_on"},
	Required: []int{PartnerName},
	Lack:     NoName,
	Units: []Unit{
		{Name: "din", Columns: []int{PartnerDIN}, Compare: compareAll},
		{Name: "name", Columns: []int{PartnerName}, Compare: compareAll},
		{
			Name: "partnership", Columns: []int{PartnerStatus, PartnerJoined, PartnerLeft},
			Always: true, Compare: comparePartnerships,
		},
	},
}

// Tables lists all tables. In a table without units, each column is a unit.
var Tables = withUnits(CompanyTable, LLPTable, DirectorTable, AppointmentTable, PartnerTable)

// Searched lists the tables whose names are in the search index.
var Searched = []*Table{CompanyTable, LLPTable}

func withUnits(list ...*Table) []*Table {
	for _, t := range list {
		if t.Units != nil {
			continue
		}
		for i, name := range t.Columns {
			t.Units = append(t.Units, Unit{Name: name, Columns: []int{i}, Compare: compareAll})
		}
	}
	return list
}

// compareAll orders lists of values by the first difference.
func compareAll(a, b []Value) int {
	for i := range a {
		if c := compareValues(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareAppointments orders (appointment_date, cessation_date, cessation): a current
// appointment beats one that ceased, then the later begin, then the later end.
func compareAppointments(a, b []Value) int {
	if aEnded, bEnded := a[2].Kind != Null, b[2].Kind != Null; aEnded != bEnded {
		if bEnded {
			return 1
		}
		return -1
	}
	return compareAll(a, b)
}

// comparePartnerships orders (status, joined_on, left_on): a current partner beats one who
// left, then the later begin, then the later end, then the greater status.
func comparePartnerships(a, b []Value) int {
	if aLeft, bLeft := a[2].Kind != Null, b[2].Kind != Null; aLeft != bLeft {
		if bLeft {
			return 1
		}
		return -1
	}
	return compareAll([]Value{a[1], a[2], a[0]}, []Value{b[1], b[2], b[0]})
}

// The reasons to reject a record that lacks what a new row must have.
const (
	NotHeld = "company not held"
	NoName  = "no name"
)
