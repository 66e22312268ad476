package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheFormOfDatesInANameIsOneInWhichTheyAreRead: the sign between its parts tells their order.
func TestTheFormOfDatesInANameIsOneInWhichTheyAreRead(t *testing.T) {
	for form, want := range map[string]bool{
		"DD/MM/YYYY": false, "d/m/yy": false, "DDMMYYYY": false, "MM-DD-YYYY": false, "YY-MM-DD": false, "YYYY-DD-MM": false, "DD-MM-YYYY or MM/DD/YYYY": false, "as registered": false,
		"MM/DD/YYYY": true, "m/d/yy": true, "dd-mm-yyyy": true, "DD.MM.YY": true, "DD-MMM-YYYY": true, "DD/MMM/YYYY": true, "YYYY-MM-DD": true, "yyyy/mm/dd": true,
	} {
		for _, name := range []string{"Date of Registration (" + form + ")", "Regn. Dt ( " + form + " )"} {
			places, err := companyFormat.places([]string{"CIN", name})
			require.NoError(t, err)
			require.Equal(t, want, places[fieldDate] == 1, name)
		}
	}
	places, err := companyFormat.places([]string{"CIN", "Regd. Address (DD-MM-YYYY)"})
	require.NoError(t, err)
	require.Negative(t, places[fieldAddress])
}
