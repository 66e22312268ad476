package importer

// table describes how records of one kind are stored and merged.
type table struct {
	name    string
	key     []string // columns of the primary key
	columns []string // the columns that a source may give, in the order of record.values
	// registers partition the columns: each is taken from one source as a whole.
	registers []register
	required  []int // columns that a new record must have
	// stamped tables have last_updated.
	stamped bool
	// row is an SQL expression for the row that a new record gets unless it is taken, with
	// ?1 for the first column of the key; empty for the next one.
	row string
}

// register is one unit of merging: a column, or several that only make sense together.
type register struct {
	name    string // in the JSON of column older
	columns []int
	// always is set for a group that a source always speaks of, also when all its
	// columns are NULL; a single column that is NULL says nothing.
	always bool
	// compare orders two states of equal date; the greater wins.
	compare func(a, b []value) int
}

// record is what one row or document says of one row of a table.
type record struct {
	table  *table
	key    [2]string
	values []value
}

// The columns of a company, in the order of companyTable.
const (
	companyName = iota
	companyStatusColumn
	companyIncorporation
	companyCategory
	companySubCategory
	companyClass
	companyROC
	companyAuthorized
	companyPaidUp
	companyListed
	companyMainDivision
	companyActivity
	companyPrincipal
	companyState
	companyPincode
	companyLine
	companyCity
	companyEmail
	companyPhone
	companyWebsite
	companyColumns
)

var companyTable = &table{
	name: "company",
	key:  []string{"cin"},
	columns: []string{
		"company_name", "status", "incorporation_date", "category", "sub_category", "class", "roc",
		"authorized_capital", "paid_up_capital", "listed", "main_division", "business_activity",
		"principal_business", "state", "pincode", "address_line", "city", "email", "phone", "website",
	},
	required: []int{companyName, companyStatusColumn},
	stamped:  true,
	row:      "cin_number(?1)",
}

// The columns of an LLP, in the order of llpTable.
const (
	llpName = iota
	llpStatusColumn
	llpIncorporation
	llpMainDivision
	llpActivity
	llpContribution
	llpState
	llpPincode
	llpLine
	llpCity
	llpColumns
)

var llpTable = &table{
	name: "llp",
	key:  []string{"llpin"},
	columns: []string{
		"llp_name", "status", "incorporation_date", "main_division", "business_activity",
		"contribution", "state", "pincode", "address_line", "city",
	},
	required: []int{llpName, llpStatusColumn},
	stamped:  true,
}

// The columns of a director, in the order of directorTable.
const (
	directorName = iota
	directorDisqualified
	directorDesignation
	directorAppointed
	directorColumns
)

var directorTable = &table{
	name:     "director",
	key:      []string{"din"},
	columns:  []string{"name", "disqualified", "designation", "appointment_date"},
	required: []int{directorName},
	stamped:  true,
}

// The columns of an appointment, in the order of appointmentTable.
const (
	appointmentDesignation = iota
	appointmentDate
	appointmentEnd
	appointmentCessation
	appointmentColumns
)

var appointmentTable = &table{
	name:    "appointment",
	key:     []string{"cin", "din"},
	columns: []string{"designation", "appointment_date", "cessation_date", "cessation"},
	registers: []register{
		{name: "designation", columns: []int{appointmentDesignation}, compare: compareAll},
		{
			name: "appointment", columns: []int{appointmentDate, appointmentEnd, appointmentCessation},
			always: true, compare: compareAppointments,
		},
	},
}

// The columns of a partner, in the order of partnerTable.
const (
	partnerDIN = iota
	partnerName
	partnerStatusColumn
	partnerJoined
	partnerLeft
	partnerColumns
)

var partnerTable = &table{
	name:     "partner",
	key:      []string{"llpin", "who"},
	columns:  []string{"din", "name", "status", "joined_on", "left_on"},
	required: []int{partnerName},
	registers: []register{
		{name: "din", columns: []int{partnerDIN}, compare: compareAll},
		{name: "name", columns: []int{partnerName}, compare: compareAll},
		{
			name: "partnership", columns: []int{partnerStatusColumn, partnerJoined, partnerLeft},
			always: true, compare: comparePartnerships,
		},
	},
}

// tables are those that records go to. Tables that name no registers have one a column.
var tables = withRegisters(companyTable, llpTable, directorTable, appointmentTable, partnerTable)

func withRegisters(list ...*table) []*table {
	for _, t := range list {
		if t.registers != nil {
			continue
		}
		for i, name := range t.columns {
			t.registers = append(t.registers, register{name: name, columns: []int{i}, compare: compareAll})
		}
	}
	return list
}

// compareAll orders lists of values by the first that differs.
func compareAll(a, b []value) int {
	for i := range a {
		if c := compareValues(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareAppointments orders (appointment_date, cessation_date, cessation): a current
// appointment beats one that ceased, then the later begin, then the later end.
func compareAppointments(a, b []value) int {
	if aEnded, bEnded := a[2].kind != null, b[2].kind != null; aEnded != bEnded {
		if bEnded {
			return 1
		}
		return -1
	}
	return compareAll(a, b)
}

// comparePartnerships orders (status, joined_on, left_on): a partner who is there beats
// one who left, then the later begin, then the later end, then the greater status.
func comparePartnerships(a, b []value) int {
	if aLeft, bLeft := a[2].kind != null, b[2].kind != null; aLeft != bLeft {
		if bLeft {
			return 1
		}
		return -1
	}
	return compareAll([]value{a[1], a[2], a[0]}, []value{b[1], b[2], b[0]})
}
