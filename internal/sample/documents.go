package main

import "regedge/internal/testkit/sampletest"

// documents are company documents as JSON, one per line. The e-mail addresses, phones and addresses
// of people in them must be dropped by the import.
func documents() []byte {
	return []byte(companyDocument + "\n" + everyFieldDocument + "\n" + llpDocument + "\n")
}

const companyDocument = `{"companyData":{"company":"FROM A DOCUMENT (MADE-UP) PRIVATE LIMITED","cin":"` + sampletest.CompanyDocument + `",` +
	`"dateOfIncorporation":"12/31/2020","emailAddress":"document@example.com","whetherListedOrNot":"Unlisted",` +
	`"companyCategory":"Company limited by shares","companySubcategory":"Non-government company","classOfCompany":"Private",` +
	`"authorisedCapital":"1500000","paidUpCapital":"100000.75","llpStatus":"Active","numberOfPartners":"","totalObligationOfContribution":"",` +
	`"mainDivision":"62","mainDivisionDescription":"Computer programming, consultancy and related activities","rocName":"ROC Bangalore",` +
	`"MCAMDSCompanyAddress":[{"addressType":"Registered Address","streetAddress":"20 MADE-UP ROAD","streetAddress2":"MADE-UP LAYOUT",` +
	`"locality":"MADE-UP LOCALITY","district":"Bengaluru","city":"Bangalore","state":"Karnataka","country":"India","postalCode":"560001","activeStatus":"A"},` +
	`{"addressType":"Other","streetAddress":"21 MADE-UP ROAD","streetAddress2":"","locality":"","district":"Mumbai","city":"Mumbai",` +
	`"state":"Maharashtra","country":"India","postalCode":"400001","activeStatus":"I"}]},` +
	`"directorData":[{"DIN":"90000020","FirstName":"DOCUMENT","MiddleName":"EXAMPLE","LastName":"DIRECTOR (MADE-UP)",` +
	`"dateOfAppointment":"12/31/2020","DirectorDisqualified":"No","emailAddress":"person@example.com","mobileNumber":"+910000000020",` +
	`"permanentAddress":"A MADE-UP HOME","MCAUserRole":[` +
	`{"cin":"` + sampletest.CompanyDocument + `","companyName":"FROM A DOCUMENT (MADE-UP) PRIVATE LIMITED","designation":"Director","roleEffectiveDate":"12/31/2020","currentDesignationDate":"01/15/2021","cessationDate":""},` +
	`{"cin":"` + sampletest.CompanyFormerBoard + `","companyName":"FORMER BOARD (MADE-UP) PRIVATE LIMITED","designation":"Director","roleEffectiveDate":"02/29/2012","currentDesignationDate":"","cessationDate":"02/28/2013"}]},` +
	`{"DIN":"90000021","FirstName":"SECOND","MiddleName":"","LastName":"DIRECTOR (MADE-UP)","dateOfAppointment":"","DirectorDisqualified":"Yes","MCAUserRole":[]}]}`

const everyFieldDocument = `{"companyData":{"company":"EVERY FIELD (MADE-UP) PRIVATE LIMITED","cin":"` + sampletest.CompanyEveryField + `",` +
	`"dateOfIncorporation":"07/15/2015","emailAddress":"registry@example.com","whetherListedOrNot":"Unlisted",` +
	`"companyCategory":"Company limited by shares","companySubcategory":"Non-government company","classOfCompany":"Private",` +
	`"authorisedCapital":"1000000","paidUpCapital":"100000","llpStatus":"Active",` +
	`"mainDivision":"72","mainDivisionDescription":"Scientific research and development","rocName":"ROC Bangalore",` +
	`"MCAMDSCompanyAddress":[]},"directorData":[]}`

const llpDocument = `{"companyData":{"company":"FROM A DOCUMENT (MADE-UP) LLP","cin":"` + sampletest.LLPDocument + `",` +
	`"dateOfIncorporation":"05/20/2019","emailAddress":"llp@example.com","whetherListedOrNot":"","companyCategory":"","companySubcategory":"",` +
	`"classOfCompany":"","authorisedCapital":"","paidUpCapital":"","llpStatus":"Active","numberOfPartners":"2","totalObligationOfContribution":"250000",` +
	`"mainDivision":"69","mainDivisionDescription":"Legal and accounting activities","rocName":"ROC Mumbai",` +
	`"MCAMDSCompanyAddress":[{"addressType":"Registered Address","streetAddress":"22 MADE-UP ROAD","streetAddress2":"","locality":"",` +
	`"district":"Mumbai","city":"Mumbai","state":"Maharashtra","country":"India","postalCode":"400001","activeStatus":"A"}]},` +
	`"directorData":[{"DIN":"90000022","FirstName":"DOCUMENT","MiddleName":"","LastName":"PARTNER (MADE-UP)","dateOfAppointment":"",` +
	`"DirectorDisqualified":"No","MCAUserRole":[{"cin":"` + sampletest.LLPDocument + `","companyName":"FROM A DOCUMENT (MADE-UP) LLP",` +
	`"designation":"Designated Partner","roleEffectiveDate":"05/20/2019","currentDesignationDate":"","cessationDate":""}]}]}`
