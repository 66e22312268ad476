// Package labels names what the component asks of the application that it runs in:
// the databases and variables that spin.toml declares and that the host serves.
package labels

// The databases, by label.
const (
	AccessDatabase   = "access"
	RegistryDatabase = "registry"
)

// The variables.
const (
	// MeterURL is the address of the meter: scheme and authority, and no path.
	MeterURL = "meter_url"
	// MeterToken is the secret that the guest shows the meter.
	MeterToken = "meter_token"
	// DocsURL is handler.Handler.DocsURL.
	DocsURL = "docs_url"
)

// ClientAddrHeader is the request header in which the host vouches for the client's
// address, with or without its port. Whatever the client sent under this name is not in
// it, or comes before it.
const ClientAddrHeader = "spin-client-addr"
