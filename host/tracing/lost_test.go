package tracing

import (
	"testing"

	"regedge/internal/testkit"
)

// TestAConnectionToACollectorThatIsLostIsGivenUp: behind TLS, most collectors speak HTTP/2.
func TestAConnectionToACollectorThatIsLostIsGivenUp(t *testing.T) {
	testkit.RequireLostIsGivenUp(t, newTransport())
}
