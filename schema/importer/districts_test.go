package importer

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamedDistrictsFillInForPincodes whichever comes first: the directory, the source that names a
// district, or the one that has a pincode. The same sources again change nothing.
func TestNamedDistrictsFillInForPincodes(t *testing.T) {
	row := func(address string) string {
		return headerA + strings.Replace(rowA, "1 BEACH ROAD,,CALANGUTE,North Goa,Goa,403516-India", address, 1)
	}
	const directory = "Pincode,District,StateName\n403516,North Goa,Goa\n"
	type source struct{ asOf, text string }
	named := source{"2025-05-05", row("1 ROAD,TOWN,South Goa,Goa,000000-India")}
	older := source{"2021-03-31", row("1 ROAD,TOWN,North Goa,Goa,000000-India")}
	unknown := source{"2024-05-05", row("1 ROAD,TOWN,North Goa,Goa,403999-India")}
	known := source{"2023-05-05", row("1 ROAD,TOWN,South Goa,Goa,403516-India")}
	unnamed := source{"2025-05-05", row("1 ROAD,TOWN,Goa,403516-India")}
	places := source{"2025-05-05", directory}
	for name, c := range map[string]struct {
		sources []source
		want    string
	}{
		"no pincode":                  {[]source{named, places}, "South Goa"},
		"two names":                   {[]source{named, older, places}, "South Goa"},
		"an unknown pincode":          {[]source{unknown, older, places}, "North Goa"},
		"a pincode of another source": {[]source{named, known, places}, "North Goa"},
		"a newer unknown pincode":     {[]source{known, unknown, places}, "North Goa"},
		"a newer one without a name":  {[]source{unnamed, older, places}, "North Goa"},
	} {
		t.Run(name, func(t *testing.T) {
			var first map[string][]string
			for order := range permutations(len(c.sources)) {
				w := newFixture(t)
				for _, i := range order {
					w.text(c.sources[i].asOf, c.sources[i].text)
				}
				require.Equal(t, c.want, w.row("SELECT district FROM company"), order)
				for _, s := range c.sources {
					require.Empty(t, w.run(s.asOf, w.file(s.text)).Release, "again, after %v", order)
				}
				if first == nil {
					first = w.content()
				}
				requireSame(t, first, w.content())
			}
		})
	}
}

// TestADistrictLeavesWithItsPincode: the one of the pincode before says nothing about an unknown one.
func TestADistrictLeavesWithItsPincode(t *testing.T) {
	w := newFixture(t)
	w.run("2025-05-05", w.file(headerA+rowA), w.file("Pincode,District,StateName\n403516,North Goa,Goa\n"))
	require.Equal(t, "403516|North Goa", w.row("SELECT pincode, district FROM company"))
	w.text("2025-06-05", headerA+strings.Replace(rowA, "CALANGUTE,North Goa,Goa,403516-India", "TOWN,Goa,403999-India", 1))
	require.Equal(t, "403999|-", w.row("SELECT pincode, district FROM company"))
}

// TestADirectoryThatLacksAPincodeMakesARelease, though it has nothing new.
func TestADirectoryThatLacksAPincodeMakesARelease(t *testing.T) {
	w := newFixture(t)
	const kept, gone = "Pincode,District,StateName\n110001,Central,Delhi\n", "403516,North Goa,Goa\n"
	first := w.run("2025-05-05", w.file(headerA+rowA), w.file(kept+gone))
	second := w.run("2025-05-05", w.file(kept))
	require.NotEmpty(t, second.Release)
	require.NotEqual(t, first.Release, second.Release)
	require.EqualValues(t, 1, second.Files[0].Unchanged)
	require.Equal(t, "110001", w.row("SELECT group_concat(pincode) FROM pincode"))
	require.Empty(t, w.run("2025-05-05", w.file(kept)).Release, "nothing changed any more")
}

// TestTheStateOfAPincodeFollowsTheDirectory also when its district stays.
func TestTheStateOfAPincodeFollowsTheDirectory(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", "Pincode,District,StateName\n194101,Leh,Jammu and Kashmir\n")
	before := w.row("SELECT district, state FROM pincode")
	report := w.text("2025-06-05", "Pincode,District,StateName\n194101,Leh,Ladakh\n")
	require.EqualValues(t, 1, report.Changed)
	require.Equal(t, "Leh|Ladakh", w.row("SELECT district, state FROM pincode"))
	require.NotEqual(t, "Leh|Ladakh", before)
}

// permutations yields the orders of n things.
func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, 0, n)
		var extend func() bool
		extend = func() bool {
			if len(order) == n {
				return yield(order)
			}
			for i := range n {
				if slices.Contains(order, i) {
					continue
				}
				order = append(order, i)
				if !extend() {
					return false
				}
				order = order[:len(order)-1]
			}
			return true
		}
		extend()
	}
}
