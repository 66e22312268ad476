package engine_test

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/engine"
)

// searched are parts of names that the search reads by rules of its own: names of letters, numbers, forms of companies,
// abbreviations, and other scripts than the Latin one.
var searched = strings.Fields(`aay bee cee dee ee eff gee aitch jay kay ell em en pee aar ess tee vee wye zed
	1 2 24 7 1st 2nd one two twenty hundred iii iv Ⅷ ① １２ 999999999 private limited pvt ltd llp opc company co & and + . the of india
	bros intl mfg engg technologies tech mr shri sree a b k r y w x made sample steel products trading
	टाटा प्राइवेट लिमिटेड தமிழ் நாடு ప్రైవేట్ লিমিটেড ગુજરાત ಕರ್ನಾಟಕ മലയാളം ਪੰਜਾਬ ଓଡ଼ିଶା é ß İ ﬁ ＡＢ ा क्ष`)

// madeUpQuery is a search of at most 256 bytes: a part repeated to that length, many parts, or letters.
func madeUpQuery(r *rand.Rand) string {
	part := func() string { return searched[r.IntN(len(searched))] }
	between := []string{" ", "", ".", "-", "&"}[r.IntN(5)]
	var q strings.Builder
	switch r.IntN(3) {
	case 0:
		q.WriteString(strings.Repeat(part()+between, 1+r.IntN(256)))
	case 1:
		for range 1 + r.IntN(1<<r.IntN(7)) {
			q.WriteString(part() + between)
		}
	default:
		for range 1 + r.IntN(60) {
			q.WriteByte("aeiouyhwkgxcqstdlmnr0189 "[r.IntN(25)])
		}
	}
	return strings.ToValidUTF8(q.String()[:min(q.Len(), 256)], "")
}

// TestEnginesSearchAlike: whatever is searched for, the component has the room that it takes, and answers as the native engine does.
func TestEnginesSearchAlike(t *testing.T) {
	native, component := newFixture(t), newFixture(t)
	made, err := engine.NewComponent(t.Context(), component.parts(), engine.Limits{Instances: 1})
	require.NoError(t, err)
	t.Cleanup(func() { made.Close(context.Background()) })
	plain := engine.NewNative(native.parts())
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		target := "/v1/search/" + []string{"companies", "llps"}[r.IntN(2)] + "?name=" + url.QueryEscape(madeUpQuery(r))
		q := func() *handler.Request {
			return &handler.Request{
				Method: "GET", Target: target, Authority: "h", ClientAddr: func() string { return "192.0.2.1" },
				Headers: []handler.Header{{Name: "authorization", Value: "Bearer " + native.key}},
			}
		}
		var want, got handler.Response
		require.NoError(t, plain.Answer(t.Context(), q(), &want))
		require.NoError(t, made.Answer(t.Context(), q(), &got))
		blank(&want)
		blank(&got)
		require.Equal(t, want.Status, got.Status, target)
		require.Less(t, got.Status, 500, target)
		require.Equal(t, string(want.Body), string(got.Body), target)
	}
}
