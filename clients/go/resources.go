package regedge

// Dates are written YYYY-MM-DD and timestamps as RFC 3339 in UTC, as the service writes them. A field
// that is a pointer is nil where the registry has no value.

// Company is the registry's record of a company.
type Company struct {
	CIN                string         `json:"cin"`
	Name               string         `json:"company_name"`
	RegistrationNumber string         `json:"registration_no"`
	Status             CompanyStatus  `json:"status"`
	IncorporationDate  *string        `json:"incorporation_date"`
	Category           *string        `json:"category"`
	SubCategory        *string        `json:"sub_category"`
	Class              *string        `json:"class"`
	ROC                *string        `json:"roc"`
	AuthorizedCapital  *int64         `json:"authorized_capital"` // rupees
	PaidUpCapital      *int64         `json:"paid_up_capital"`    // rupees
	Listed             *bool          `json:"listed"`
	Activity           *string        `json:"activity"`
	State              *string        `json:"state"`
	District           *string        `json:"district"`
	Pincode            *string        `json:"pincode"`
	Contact            Contact        `json:"contact"`
	Directors          []DirectorItem `json:"directors"` // at most 50, first appointed first
	LastUpdated        *string        `json:"last_updated"`
}

// Contact is how to reach a company. E-mail and phone depend on the plan, and are masked with the sandbox key.
type Contact struct {
	Address *string `json:"address"`
	Email   *string `json:"email"`
	Phone   *string `json:"phone"`
	Website *string `json:"website"`
}

// DirectorItem is a current director in a company's record.
type DirectorItem struct {
	DIN             string  `json:"din"`
	Name            string  `json:"name"`
	Designation     *string `json:"designation"`
	AppointmentDate *string `json:"appointment_date"`
}

// Director is a person who holds or held offices at companies.
type Director struct {
	DIN                  string          `json:"din"`
	Name                 string          `json:"name"`
	Status               *DirectorStatus `json:"status"`
	LinkedCompanies      []LinkedCompany `json:"linked_companies"` // at most 10
	LinkedCompaniesTotal int             `json:"linked_companies_total"`
}

// LinkedCompany is a company at which a director holds office.
type LinkedCompany struct {
	CIN             string        `json:"cin"`
	Name            string        `json:"company_name"`
	Status          CompanyStatus `json:"status"`
	Designation     *string       `json:"designation"`
	AppointmentDate *string       `json:"appointment_date"`
}

// LLP is the registry's record of a limited liability partnership.
type LLP struct {
	LLPIN             string    `json:"llpin"`
	Name              string    `json:"llp_name"`
	Status            LLPStatus `json:"status"`
	IncorporationDate *string   `json:"incorporation_date"`
	State             *string   `json:"state"`
	District          *string   `json:"district"`
	Pincode           *string   `json:"pincode"`
	Address           *string   `json:"address"`
	Activity          *string   `json:"activity"`
	Contribution      *int64    `json:"contribution"` // rupees
	Partners          []Partner `json:"partners"`     // at most 50, last joined first
	PartnersTotal     int       `json:"partners_total"`
	LastUpdated       *string   `json:"last_updated"`
}

// Partner is a present or past partner of an LLP.
type Partner struct {
	DIN      *string       `json:"din"`
	Name     string        `json:"name"`
	Status   PartnerStatus `json:"status"`
	JoinedOn *string       `json:"joined_on"`
	LeftOn   *string       `json:"left_on"`
}

// Match is one result of a search.
type Match struct {
	Value string    `json:"value"` // CIN or LLPIN
	Label string    `json:"label"` // registered name
	Type  MatchType `json:"type"`
}

// CompanyStatus, DirectorStatus, LLPStatus, PartnerStatus and MatchType are the words of the
// contract. Later versions of the service may add some.
type (
	CompanyStatus  string
	DirectorStatus string
	LLPStatus      string
	PartnerStatus  string
	MatchType      string
)

const (
	CompanyActive           CompanyStatus = "ACTIVE"
	CompanyInactive         CompanyStatus = "INACTIVE"
	CompanyDissolved        CompanyStatus = "DISSOLVED"
	CompanyStruckOff        CompanyStatus = "STRUCK_OFF"
	CompanySuspended        CompanyStatus = "SUSPENDED"
	CompanyUnderLiquidation CompanyStatus = "UNDER_LIQUIDATION"

	DirectorActive       DirectorStatus = "ACTIVE"
	DirectorResigned     DirectorStatus = "RESIGNED"
	DirectorRemoved      DirectorStatus = "REMOVED"
	DirectorDisqualified DirectorStatus = "DISQUALIFIED"

	LLPActive    LLPStatus = "ACTIVE"
	LLPInactive  LLPStatus = "INACTIVE"
	LLPDissolved LLPStatus = "DISSOLVED"
	LLPSuspended LLPStatus = "SUSPENDED"

	PartnerActive   PartnerStatus = "ACTIVE"
	PartnerInactive PartnerStatus = "INACTIVE"
	PartnerRetired  PartnerStatus = "RETIRED"

	MatchCompany MatchType = "company"
	MatchLLP     MatchType = "llp"
)
