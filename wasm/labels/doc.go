// Package labels has the names that the component and its hosts agree on: databases and
// variables, which spin.toml declares, and the header with the client's address.
package labels

// The databases, by label.
const (
	AccessDatabase   = "access"
	RegistryDatabase = "registry"
)

// The variables.
const (
	// MeterURL is the URL of the meter: scheme and authority, without a path.
	MeterURL = "meter_url"
	// MeterToken is the bearer token of the guest's calls to the meter.
	MeterToken = "meter_token"
	// DocsURL is handler.Handler.DocsURL.
	DocsURL = "docs_url"
)

// ClientAddrHeader is the request header in which the host sets the client's address, with or
// without a port. The host's value is the last: it removes or precedes it with values that the
// client sent under this name.
const ClientAddrHeader = "spin-client-addr"
