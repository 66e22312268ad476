package source

import (
	"errors"
	"strings"

	"regedge/schema/importer/record"
)

// errStatus is returned for a status that docs/contract.md, "Statuses", does not list.
var errStatus = errors.New("unknown status")

const (
	active           = "ACTIVE"
	inactive         = "INACTIVE"
	dissolved        = "DISSOLVED"
	struckOff        = "STRUCK_OFF"
	suspended        = "SUSPENDED"
	underLiquidation = "UNDER_LIQUIDATION"
	retired          = "RETIRED"
)

// companyStatuses maps the statuses of the sources, squashed, to those that the service returns
// (docs/contract.md, "Statuses").
var companyStatuses = map[string]string{
	"active":                       active,
	"activeinprogress":             active,
	"dormant":                      inactive,
	"dormantundersection455":       inactive,
	"inactive":                     inactive,
	"inactiveforefiling":           inactive,
	"notavailableforefiling":       inactive,
	"underprocessofstrikingoff":    inactive,
	"underprocessofstrikeoff":      inactive,
	"captured":                     inactive,
	"unclassified":                 inactive,
	"undercirp":                    suspended,
	"suspended":                    suspended,
	"underliquidation":             underLiquidation,
	"strikeoff":                    struckOff,
	"struckoff":                    struckOff,
	"strikeoffawaitingpublication": struckOff,
	"defunct":                      struckOff,
	"vanished":                     struckOff,
	"liquidated":                   dissolved,
	"amalgamated":                  dissolved,
	"convertedtollp":               dissolved,
	"convertedtollpanddissolved":   dissolved,
	"convertedtocmpanddissolved":   dissolved, // of an LLP that became a company

	// The codes of the MCA's older state-wise files.
	"actv": active,
	"naef": inactive, // not available for e-filing
	"upso": inactive, // under process of striking off
	"drmt": inactive, // dormant
	"d455": inactive, // dormant under section 455
	"ulqd": underLiquidation,
	"stof": struckOff,
	"liqd": dissolved, // liquidated
	"amal": dissolved, // amalgamated
	"cllp": dissolved, // converted to LLP
	"clld": dissolved, // converted to LLP and dissolved
	"disd": dissolved,
}

// companyStatus maps a source's status. Case, spaces and punctuation are ignored.
func companyStatus(s string) (string, error) {
	key := squash(strings.ReplaceAll(s, "&", "and"))
	if status, ok := companyStatuses[key]; ok {
		return status, nil
	}
	if strings.HasPrefix(key, "dissolved") {
		return dissolved, nil
	}
	return "", errStatus
}

// llpStatus maps a source's status to the four that an LLP can have.
func llpStatus(s string) (string, error) {
	status, err := companyStatus(s)
	switch status {
	case underLiquidation:
		return inactive, nil
	case struckOff:
		return dissolved, nil
	}
	return status, err
}

// partnerStatus maps a source's status of a partner. No value is NULL.
func partnerStatus(s string) (record.Value, error) {
	key := squash(s)
	if isNone(s) && key != "unclassified" {
		return record.Value{}, nil
	}
	switch key {
	case "active":
		return record.TextOf(active), nil
	case "inactive":
		return record.TextOf(inactive), nil
	case "retired", "resigned", "ceased":
		return record.TextOf(retired), nil
	}
	return record.Value{}, errStatus
}

// cessation maps a source's reason for the end of an appointment. A cessation date without a
// reason is an end, too.
func cessation(reason string, date record.Value) record.Value {
	if isNoText(reason) && date.Kind == record.Null {
		return record.Value{}
	}
	switch squash(reason) {
	case "resigned", "resignation":
		return record.TextOf("RESIGNED")
	case "removed", "removal":
		return record.TextOf("REMOVED")
	}
	return record.TextOf("CEASED")
}

// The enumerated descriptions of a company, squashed, in the wording that the service returns.
// Any other text is kept as in the source.
var (
	categories = map[string]string{
		"companylimitedbyshares":    "Company limited by Shares",
		"companylimitedbyguarantee": "Company limited by Guarantee",
		"unlimitedcompany":          "Unlimited Company",
	}
	subCategories = map[string]string{
		"nongovtcompany":                              "Non-govt company",
		"nongovernmentcompany":                        "Non-govt company",
		"indiannongovernmentcompany":                  "Non-govt company",
		"stategovtcompany":                            "State Govt company",
		"stategovernmentcompany":                      "State Govt company",
		"uniongovtcompany":                            "Union Govt company",
		"uniongovernmentcompany":                      "Union Govt company",
		"centralgovernmentcompany":                    "Union Govt company",
		"guaranteeandassociationcomp":                 "Guarantee and Association company",
		"subsidiaryofforeigncompany":                  "Subsidiary of Foreign Company",
		"guaranteeandassociationcompany":              "Guarantee and Association company",
		"subsidiaryofcompanyincorporatedoutsideindia": "Subsidiary of Foreign Company",
	}
	classes = map[string]string{
		"private":                 "Private",
		"public":                  "Public",
		"privatelimited":          "Private",
		"publiclimited":           "Public",
		"privatecompany":          "Private",
		"publiccompany":           "Public",
		"onepersoncompany":        "One Person Company",
		"privateonepersoncompany": "One Person Company",
	}
)

// described normalises an enumerated description. No value is NULL.
func described(forms map[string]string, s string) record.Value {
	if isNoText(s) {
		return record.Value{}
	}
	if form, ok := forms[squash(s)]; ok {
		return record.TextOf(form)
	}
	return record.TextOf(clean(s))
}
