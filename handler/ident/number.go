package ident

// CINNumber returns the rowid under which the registry keeps a company, so that a lookup needs
// no index by CIN. cin is in its canonical form.
//
// CINs with a known ownership code have unique numbers in [2^60, 2^61), in the order of the
// CINs. The number of any other text is a hash in [2^61, 2^62), which may collide: the row is
// the company's only if it has the CIN. Databases are filled by these numbers, so they must
// never change.
func CINNumber(cin string) int64 {
	if n, ok := cinNumber(cin); ok {
		return known + n
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	hash := uint64(offset)
	for i := 0; i < len(cin); i++ {
		hash = (hash ^ uint64(cin[i])) * prime
	}
	return 2*known + int64(hash%(2*known))
}

// known is the first number. It is above every number that cinNumber returns.
const known = 1 << 60

// ownerships are the known ownership codes (characters 13 to 15 of a CIN), sorted.
const ownerships = "FLCFTCGAPGATGOINPLOPCPLCPLNPTCSGCULLULT"

// How many values each part of a CIN has, in the order of the parts.
const (
	industries    = 1e5
	states        = 26 * 26
	firstYear     = 1800
	years         = 256
	maxOwnerships = 32
	registrations = 1e6
)

func cinNumber(cin string) (n int64, ok bool) {
	if len(cin) != CINLength || cin[0] != 'L' && cin[0] != 'U' || !isUpper(cin[6]) || !isUpper(cin[7]) {
		return 0, false
	}
	industry, year, registration := digits(cin[1:6]), digits(cin[8:12])-firstYear, digits(cin[15:])
	ownership := ownershipOf(cin[12:15])
	if industry < 0 || year < 0 || year >= years || registration < 0 || ownership < 0 {
		return 0, false
	}
	if cin[0] == 'U' {
		n = industries
	}
	n = (n+industry)*states + int64(cin[6]-'A')*26 + int64(cin[7]-'A')
	return ((n*years+year)*maxOwnerships+ownership)*registrations + registration, true
}

func ownershipOf(code string) int64 {
	for i := 0; i < len(ownerships); i += len(code) {
		if ownerships[i:i+len(code)] == code {
			return int64(i / len(code))
		}
	}
	return -1
}

// digits parses a decimal number; it returns -1 for a text with another character.
func digits(s string) (n int64) {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return -1
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n
}
