package conformance

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/internal/testkit/sampletest"
)

// TestHeaderNamesAreSpeltAsDocumented reads the bytes of an answer, since clients of
// net/http, such as the one of the vectors, don't see how a name is spelt.
func TestHeaderNamesAreSpeltAsDocumented(t *testing.T) {
	for _, engine := range engines[:2] {
		t.Run(engine.name, func(t *testing.T) {
			kit := engine.start(t, newWorld(t))
			conn, err := net.Dial("tcp", kit.Address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "GET /v1/companies/%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n",
				sampletest.CompanyEveryField, ident.SandboxKey)
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(answer), "HTTP/1.1 200 OK\r\n")
			for _, name := range []string{"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-Registry-Release"} {
				require.Contains(t, string(answer), "\r\n"+name+": ")
			}
		})
	}
}
