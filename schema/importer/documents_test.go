package importer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

const madeUpDocument = `{"companyData":{"company":"MADE-UP RESORTS PRIVATE LIMITED","cin":"u55101ga2006ptc900001","dateOfIncorporation":"02/23/2006",
"emailAddress":"office@example.com","whetherListedOrNot":"Unlisted","companyCategory":"Company limited by shares","companySubcategory":"Non-government company",
"classOfCompany":"Private","authorisedCapital":1000000.00,"paidUpCapital":"989630","llpStatus":"Active","mainDivision":"55","mainDivisionDescription":"Hotels",
"rocName":"ROC Goa","MCAMDSCompanyAddress":[
{"addressType":"Correspondence Address","streetAddress":"PO BOX 9","city":"Panaji","state":"Goa","postalCode":"403001","activeStatus":"Active"},
{"addressType":"Registered Address","streetAddress":"0 OLD ROAD","city":"Panaji","state":"Goa","postalCode":"403001","activeStatus":"Inactive"},
{"addressType":"Registered Address","streetAddress":"1 BEACH ROAD","streetAddress2":"NA","locality":"CALANGUTE","district":"North Goa","city":"Calangute","state":"GA","country":"India","postalCode":" 403516","activeStatus":"Active"}]},
"directorData":[
{"DIN":"12","FirstName":"MADE-UP","MiddleName":"","LastName":"DIRECTOR","dateOfAppointment":"01/02/2019","DirectorDisqualified":"N","emailAddress":"private@example.com","mobile":"9999900000",
 "MCAUserRole":[
  {"cin":"U55101GA2006PTC900001","companyName":"X","designation":"Director","roleEffectiveDate":"01/15/2020","cessationDate":""},
  {"cin":"U55101GA2006PTC900002","designation":"Director","roleEffectiveDate":"13/15/2020"},
  {"cin":"ABD-0345","designation":"Designated Partner","roleEffectiveDate":"02/01/2021","cessationDate":"03/01/2022"},
  {"cin":"F01234","designation":"Director"}]},
{"DIN":"ABCDE1234F","FirstName":"MADE-UP","LastName":"SECRETARY"},
{"DIN":"00000000","FirstName":"MADE-UP","LastName":"NOBODY"},
{"DIN":"123456789","FirstName":"MADE-UP","LastName":"NUMBER","emailAddress":"private2@example.com"}]}`

func TestCompanyDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"a document":   madeUpDocument,
		"a line each":  strings.ReplaceAll(madeUpDocument, "\n", "") + "\n",
		"an array":     "\uFEFF \n[" + madeUpDocument + "]",
		"wrapped data": `{"data":` + madeUpDocument + `}`,
		"no data":      `{"data":null,` + madeUpDocument[1:],
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			f := w.text("2025-05-05", text)
			require.Equal(t, "company documents", f.Format)
			require.EqualValues(t, []int64{9, 4}, []int64{f.Read, f.New})
			require.Equal(t, map[string]int64{"person without a DIN": 2, "role at a foreign company": 1}, f.LeftOut)
			require.Equal(t, map[string]int64{"invalid date": 1, "invalid DIN": 1}, f.Rejected)
			require.Equal(t, "MADE-UP RESORTS PRIVATE LIMITED|ACTIVE|2006-02-23|Company limited by Shares|Non-govt company|Private|ROC Goa|1000000|"+
				"989630|0|Hotels|-|-|Goa|403516|1 BEACH ROAD|Calangute|office@example.com|2025-05-05|-",
				w.row(companyColumnsQuery, "U55101GA2006PTC900001"))
			require.Equal(t, "00000012|MADE-UP DIRECTOR|0|-|2019-01-02", w.row("SELECT din, name, disqualified, designation, appointment_date FROM director"))
			require.Equal(t, []string{"U55101GA2006PTC900001|00000012|Director|2020-01-15|-|-"},
				w.rows("SELECT cin, din, designation, appointment_date, cessation_date, cessation FROM appointment"))
			require.Equal(t, "ABD-0345|00000012|MADE-UP DIRECTOR|-|2021-02-01|2022-03-01", w.row("SELECT llpin, din, name, status, joined_on, left_on FROM partner"))
			require.Contains(t, w.rejected(), "00000012,U55101GA2006PTC900002,Director,13/15/2020,")
			require.NotContains(t, w.rejected(), "private")
		})
	}
}

func TestDocumentOfAnLLP(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","dateOfIncorporation":"02/23/2020","llpStatus":"Strike Off",
"totalObligationOfContribution":5000,"mainDivisionDescription":"Advice","MCAMDSCompanyAddress":[{"streetAddress":"1 ROAD","streetAddress2":"OPP. PARK","locality":"KAROL BAGH","city":"DELHI","state":"Delhi","postalCode":110001}]},
"directorData":[{"DIN":"12","FirstName":"MADE-UP","MiddleName":"ASHA","LastName":"DIRECTOR"}]}`)
	require.Equal(t, "MADE-UP ASHA DIRECTOR", w.row("SELECT name FROM director"))
	require.Equal(t, "ABD-0345|MADE-UP LLP|DISSOLVED|2020-02-23|Advice|5000|Delhi|110001|1 ROAD, OPP. PARK, KAROL BAGH|DELHI",
		w.row("SELECT llpin, llp_name, status, incorporation_date, main_division, contribution, state, pincode, address_line, city FROM llp"))
}

// TestARoleOfSomebodyWithoutANameChangesNoPartner.
func TestARoleOfSomebodyWithoutANameChangesNoPartner(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", "llpin,din,name,joined_on\nABD-0345,12,MADE-UP PARTNER,2020-01-01\n")
	f := w.text("2025-06-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","llpStatus":"Active"},
"directorData":[{"DIN":"12","MCAUserRole":[{"cin":"ABD-0345","roleEffectiveDate":"02/01/2021"}]}]}`)
	require.Equal(t, map[string]int64{record.NoName: 2}, f.Rejected)
	require.Equal(t, "MADE-UP PARTNER|2020-01-01", w.row("SELECT name, joined_on FROM partner"))
}

func TestBrokenDocumentsDoNotStopTheOthers(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "{\"other\":1}\n{\"a\":tru}\nstray\n"+madeUpDocument+"{\"companyData\":{}}\n{\"cut")
	require.EqualValues(t, 4, f.New)
	require.Equal(t, map[string]int64{
		"no companyData": 1, "not JSON": 1, "text between documents": 1, "document cut off": 1, "invalid CIN": 1, "invalid date": 1, "invalid DIN": 1,
	}, f.Rejected)
}

func TestAnAddressThatIsNotActiveIsNotTaken(t *testing.T) {
	for _, status := range []string{"No", "inactive", "In-active"} {
		w := newFixture(t)
		w.text("2025-05-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","llpStatus":"Active","MCAMDSCompanyAddress":[`+
			`{"addressType":"Registered Address","streetAddress":"0 OLD ROAD","city":"DELHI","activeStatus":"`+status+`"},`+
			`{"addressType":"Correspondence Address","streetAddress":"1 ROAD","city":"DELHI","activeStatus":"Yes"}]}}`)
		require.Equal(t, "1 ROAD", w.row("SELECT address_line FROM llp"), status)
	}
}

// TestTheFirstRegisteredOfficeIsTaken, whatever other addresses stand around it.
func TestTheFirstRegisteredOfficeIsTaken(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","llpStatus":"Active","MCAMDSCompanyAddress":[`+
		`{"addressType":"Correspondence Address","streetAddress":"PO BOX 9","city":"DELHI","activeStatus":"Active"},`+
		`{"addressType":"Registered Address","streetAddress":"1 ROAD","city":"DELHI","activeStatus":"Active"},`+
		`{"addressType":"Registered Address","streetAddress":"2 ROAD","city":"DELHI","activeStatus":"Active"},`+
		`{"addressType":"Correspondence Address","streetAddress":"PO BOX 10","city":"DELHI","activeStatus":"Active"}]}}`)
	require.Equal(t, "1 ROAD", w.row("SELECT address_line FROM llp"))
}

// TestTheStatusOfADocumentIsTheCompanys, or the LLP's where there is no other.
func TestTheStatusOfADocumentIsTheCompanys(t *testing.T) {
	for statuses, want := range map[string]string{
		`"companyStatus":"Strike Off","llpStatus":"Active"`: "STRUCK_OFF",
		`"companyStatus":"","llpStatus":"Active"`:           "ACTIVE",
		`"companyStatus":null,"llpStatus":"Active"`:         "ACTIVE",
		`"companyStatus":"Strike Off"`:                      "STRUCK_OFF",
	} {
		w := newFixture(t)
		w.text("2025-05-05", `{"companyData":{"company":"MADE-UP LIMITED","cin":"U55101GA2006PTC900001",`+statuses+`}}`)
		require.Equal(t, want, w.row("SELECT status FROM company"), statuses)
	}
}

// TestAPincodeThatIsNoneIsCounted, but for zeros, which say that there is none.
func TestAPincodeThatIsNoneIsCounted(t *testing.T) {
	for pincode, want := range map[string]map[string]int64{
		"11000": {"pincode": 1}, "011000": {"pincode": 1}, "000000": {}, "0": {}, "": {}, "NA": {}, "110001": {},
	} {
		f := newFixture(t).text("2025-05-05", `{"companyData":{"company":"MADE-UP LLP","cin":"ABD0345","llpStatus":"Active","MCAMDSCompanyAddress":[`+
			`{"addressType":"Registered Address","streetAddress":"1 ROAD","city":"DELHI","postalCode":"`+pincode+`"}]}}`)
		require.EqualValues(t, 1, f.New)
		require.Equal(t, want, f.Unread, pincode)
	}
}

// TestADocumentThatIsNoUTF8IsRejected: no column has bytes that are no text.
func TestADocumentThatIsNoUTF8IsRejected(t *testing.T) {
	f := newFixture(t).text("2025-05-05", "{\"companyData\":{\"company\":\"MADE-UP CAF\xc9 LLP\",\"cin\":\"ABD0345\",\"llpStatus\":\"Active\"}}")
	require.Equal(t, map[string]int64{"not JSON": 1}, f.Rejected)
}

// TestADocumentThatIsNestedTooDeepIsRejected: to check it took all of the stack, which ends the process.
func TestADocumentThatIsNestedTooDeepIsRejected(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	document := func(levels int) string {
		return `{"companyData":{"cin":"U55101GA2006PTC900001","company":"A","companyStatus":"Active"},"a":"[[","b":` + deep(levels) + "}\n"
	}
	w := newFixture(t)
	f := w.text("2025-05-05", document(999)+document(1000)+`{"a":`+strings.Repeat("[", 8<<20-100)+"}\n")
	require.Equal(t, map[string]int64{"document nested too deep": 2}, f.Rejected)
	require.EqualValues(t, 1, f.New)
}
