package engine_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/network"
	"regedge/internal/testkit/sampletest"
	"regedge/schema"
)

// TestAKeyIsAnsweredOnlyAtItsAddresses: a cached key does not admit other clients, and an instance forgets
// the client's address after each request.
func TestAKeyIsAnsweredOnlyAtItsAddresses(t *testing.T) {
	for engine, a := range answerers(t) {
		t.Run(engine, func(t *testing.T) {
			key := a.keyUntil(t, 21, 0, "", 0)
			var list []byte
			for _, text := range []string{"192.0.2.0/25", "2001:db8:7::/48"} {
				p := netip.MustParsePrefix(text)
				list = network.Append(list, p.Addr().AsSlice(), p.Bits())
			}
			for len(list) < 256 { // the longest list is cached too
				list = network.Append(list, make([]byte, 16), 128)
			}
			db, err := schema.OpenFile(a.path)
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec(`UPDATE api_key SET allowed = ? WHERE id = 21`, list)
			require.NoError(t, err)

			allowed := 0
			for range 3 {
				for _, c := range []struct {
					from   string
					status int
				}{
					{"192.0.2.7", 200}, {"192.0.2.200", 403}, {"2001:db8:7::1", 200}, {"2001:db8:8::1", 403}, {"", 403}, {"192.0.2.7", 200},
				} {
					q := request("/v1/companies/"+sampletest.CompanyEveryField, key)
					q.ClientAddr = func() string { return c.from }
					var response handler.Response
					require.NoError(t, a.Answer(t.Context(), q, &response))
					require.Equal(t, c.status, response.Status, "from %q: %s", c.from, response.Body)
					if c.status == 200 {
						allowed++
						continue
					}
					require.Contains(t, string(response.Body), `"code":"address_not_allowed"`)
					require.Contains(t, string(response.Body), "may not be used from "+map[bool]string{true: "this address", false: c.from}[c.from == ""])
				}
			}
			require.Len(t, a.meter.charged, allowed, "a refusal is free")
		})
	}
}
