package dashboard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/writer"
)

// keyForm holds the fields of the key forms, as typed.
type keyForm struct {
	Name, Days, Addresses     string
	PerMinute, MonthlyCredits string
}

// formOf fills the forms that change a key.
func formOf(k writer.Key) keyForm {
	return keyForm{Name: k.Name, Addresses: strings.Join(k.Allowed, ", "), PerMinute: limitText(k.PerMinute), MonthlyCredits: limitText(k.MonthlyCredits)}
}

func limitText(limit int64) string {
	if limit == 0 {
		return ""
	}
	return strconv.FormatInt(limit, 10)
}

// keep takes over the fields of the visitor's form: the page's other forms stay as they are.
func (f *keyForm) keep(v *visit) {
	for name, field := range map[string]*string{
		"name": &f.Name, "days": &f.Days, "per-minute": &f.PerMinute, "monthly-credits": &f.MonthlyCredits,
	} {
		if v.r.PostForm.Has(name) {
			*field = v.line(name)
		}
	}
	if v.r.PostForm.Has("addresses") {
		f.Addresses = strings.TrimSpace(printable(blanks.Replace(v.field("addresses")), maxForm))
	}
}

// blanks replaces line ends, and tabs as between the cells of a spreadsheet, by spaces. If they were dropped, two
// addresses would be joined into one.
var blanks = strings.NewReplacer("\t", " ", "\r", " ", "\n", " ")

// Limited says that a new key's limits are unfolded: some are filled in.
func (f keyForm) Limited() bool { return f.Addresses+f.PerMinute+f.MonthlyCredits != "" }

// Ends lists the ends that a key can be given.
func (f keyForm) Ends() []choice {
	return []choice{
		{"", "never", f.Days == ""}, {"1", "in a day", f.Days == "1"}, {"7", "in 7 days", f.Days == "7"}, {"30", "in 30 days", f.Days == "30"},
		{"90", "in 90 days", f.Days == "90"}, {"365", "in a year", f.Days == "365"},
	}
}

// choice is an option of a list.
type choice struct {
	Value, Words string
	Selected     bool
}

// Messages about invalid limits.
const (
	wordsNetworks = "Those are not networks or addresses: write up to 16, such as 192.0.2.0/24, 2001:db8::/32."
	wordsLimits   = "A limit is a number, and requests a minute are at most those of your plan. The least is 1; leave a limit empty for none."
)

// errLimits is returned for invalid limits.
var errLimits = errors.New("not a limit")

// networks returns the typed networks; the writer checks them.
func (f keyForm) networks() []string {
	list := strings.FieldsFunc(f.Addresses, func(c rune) bool { return c == ',' || c == ';' || c == ' ' })
	return append([]string{}, list...) // empty, and not null, for everywhere
}

// limits returns the requests a minute and the credits a month, 0 for no limit. The writer checks the former
// against the plan.
func (f keyForm) limits() (perMinute, monthlyCredits int64, err error) {
	perMinute, err = limitOf(f.PerMinute)
	if err != nil {
		return 0, 0, err
	}
	monthlyCredits, err = limitOf(f.MonthlyCredits)
	return perMinute, monthlyCredits, err
}

// limitOf reads a limit, 0 for an empty field. A typed 0 is refused: to the writer it would mean no limit, to the
// person the opposite.
func limitOf(typed string) (int64, error) {
	if typed == "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(typed, 10, 64)
	if err != nil || limit < 1 || limit > ledger.MaxKeyCredits {
		return 0, errLimits
	}
	return limit, nil
}

// limitWords formats a new key's limits for the audit log.
func limitWords(s writer.KeySettings) string {
	words := ""
	if s.PerMinute > 0 {
		words += fmt.Sprintf(", %d a minute", s.PerMinute)
	}
	if s.MonthlyCredits > 0 {
		words += fmt.Sprintf(", %d credits a month", s.MonthlyCredits)
	}
	if len(s.Allowed) > 0 {
		words += ", from " + strings.Join(s.Allowed, " ")
	}
	return words
}
