package source

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

// TestAStateThatIsNamedCounts, though most offices of the pincode name none.
func TestAStateThatIsNamedCounts(t *testing.T) {
	o := NewOffices()
	require.True(t, o.None())
	want := map[string]record.Place{}
	for i := range 20 {
		pincode := fmt.Sprint(403500 + i)
		for _, state := range []string{"", "Goa", ""} {
			o.add(0, pincode, "North Goa", state)
		}
		want[pincode] = record.Place{District: "North Goa", State: "Goa"}
	}
	require.Equal(t, want, o.Places())
	require.False(t, o.None())
}
