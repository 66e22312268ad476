package handler

import (
	"strings"
	"unicode/utf8"
)

// maskContact hides e-mail and phone from the sandbox key (specification section 5, rule
// 5). The number of stars is fixed, so that it tells nothing of the length.
func maskContact(company []Value) {
	if v := &company[companyEmail]; v.Kind == Text {
		v.Text = maskEmail(v.Text)
	}
	if v := &company[companyPhone]; v.Kind == Text {
		v.Text = maskPhone(v.Text)
	}
}

// maskEmail keeps the first letter of the mailbox, the first of the domain, and the last
// label: registry@example.com becomes r****@e******.com.
func maskEmail(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return firstRune(email) + "****"
	}
	domain := email[at+1:]
	masked := firstRune(email[:at]) + "****@" + firstRune(domain) + "******"
	if dot := strings.LastIndexByte(domain, '.'); dot > 0 {
		masked += domain[dot:]
	}
	return masked
}

// minPhoneDigits is the least number of digits of which the last four are shown: of a
// shorter number they would be most of it.
const minPhoneDigits = 8

// countryCode is the one that is kept. The length of another is not known without a list
// of them all, and a digit too many would be one of the number.
const countryCode = "+91"

// maskPhone keeps the last four digits, and India's country code where it is given:
// +919876543210 becomes +91******3210.
func maskPhone(phone string) string {
	digits := make([]byte, 0, len(phone))
	for i := 0; i < len(phone); i++ {
		if phone[i] >= '0' && phone[i] <= '9' {
			digits = append(digits, phone[i])
		}
	}
	if len(digits) < minPhoneDigits {
		return "******"
	}
	masked := "******" + string(digits[len(digits)-4:])
	if strings.HasPrefix(strings.TrimLeft(phone, " "), countryCode) {
		return countryCode + masked
	}
	return masked
}

func firstRune(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}
