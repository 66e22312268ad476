package sampletest

// Companies of the sample that show one thing each. Their registration numbers begin
// with 99, which no Registrar has reached.
const (
	CompanyEveryField     = "U72900KA2015PTC990001" // every field has a value
	CompanyGrandBoard     = "L65999MH1994PLC990002" // 57 current directors and 5 former ones; listed; huge capital
	CompanyFullBoard      = "U65999MH1995PLC990003" // exactly 50 current directors
	CompanyBare           = "U01100TN2001PTC990004" // every field null that may be
	CompanyNoDirector     = "U74999DL2012PTC990005" // complete but for directors and contact
	CompanyUnknownPincode = "U85300KA2019NPL990006" // its pincode is in no directory
	CompanyFallback       = "U62099KA2022PTC990007" // appointments without designation and date
	CompanyFormerBoard    = "U51909MH2009PTC990008" // every appointment has ceased
	CompanyDocument       = "U62013KA2020PTC990009" // from the JSON documents
	CompanyNotHeld        = "U99999MH1999PTC999999" // well-formed, in no file of companies
)

// Directors of the sample. No DIN of 9xxxxxxx has been given out.
const (
	DirectorManyLinks    = "90000001" // 24 current links
	DirectorTenLinks     = "90000002" // exactly 10, and one that has ceased
	DirectorDisqualified = "90000003"
	DirectorRemoved      = "90000004"
	DirectorResigned     = "90000005"
	DirectorCeased       = "90000006" // every appointment has ceased without a reason
	DirectorUnlinked     = "90000007" // no appointment at all
	DirectorGeneral      = "90000008" // general designation and date
	DirectorNameOnly     = "90000009" // nothing but a name
	DirectorElsewhere    = "90000010" // only at CompanyNotHeld
	DirectorReturned     = "90000011" // removed at one company, current at another
	DirectorAndPartner   = "90000012" // director of a company and partner of an LLP
	DirectorLeadingZeros = "00000042" // written as 42 in its file
	DirectorNotHeld      = "99999998" // appointed, in no file of directors
)

// LLPs of the sample.
const (
	LLPEveryField    = "AAZ-9001" // every field has a value
	LLPManyPartners  = "AAZ-9002" // 57 partners
	LLPFiftyPartners = "AAZ-9003"
	LLPBare          = "AAZ-9004" // every field null that may be
	LLPDocument      = "AAZ-9005" // from the JSON documents
	LLPInCINColumn   = "AAZ-9020" // from a file of companies
	LLPNotHeld       = "ZZZ-9999" // has a partner, in no file of LLPs
)
