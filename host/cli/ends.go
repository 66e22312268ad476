package cli

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/pki"
)

// ends is a metric of the time until this process's tokens or certificates expire, one series each, in
// seconds, negative once expired.
type ends struct {
	desc *prometheus.Desc
	now  func() time.Time
	// at returns the expiry times by the label's value, without those that never expire.
	at func() map[string]time.Time
}

// Describe implements prometheus.Collector.
func (e *ends) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

// Collect implements prometheus.Collector.
func (e *ends) Collect(to chan<- prometheus.Metric) {
	for name, at := range e.at() {
		to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, at.Sub(e.now()).Seconds(), name)
	}
}

var certificateDesc = prometheus.NewDesc("regedge_certificate_ends_seconds", "Until a certificate in use ends: at a primary or replica its own and the authority's, by file; at an edge or writer with TLS the one that it serves.", []string{"file"}, nil)

// servedEnds shows when the certificate that config serves now expires; file is its name.
func servedEnds(config *tls.Config, file string, now func() time.Time) prometheus.Collector {
	return &ends{certificateDesc, now, func() map[string]time.Time {
		chain, err := config.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			return nil
		}
		var first time.Time
		for _, der := range chain.Certificate {
			if c, err := x509.ParseCertificate(der); err == nil && (first.IsZero() || c.NotAfter.Before(first)) {
				first = c.NotAfter
			}
		}
		return map[string]time.Time{filepath.Base(file): first}
	}}
}

var writerTokenDesc = prometheus.NewDesc("regedge_writer_database_token_ends_seconds", "Until the writer's token for a database ends; left out for one without an end.", []string{"database"}, nil)

// tokenEnds shows when the writer's tokens for its databases expire.
func (c *writerCommand) tokenEnds(now func() time.Time) (prometheus.Collector, error) {
	at := map[string]time.Time{}
	for database, given := range map[string][2]string{
		"ledger": {c.DatabaseToken, c.DatabaseTokenFile}, "access": {c.AccessToken, c.AccessTokenFile}, "registry": {c.RegistryToken, c.RegistryTokenFile},
	} {
		token, err := readToken(given[0], given[1])
		if err != nil {
			return nil, err
		}
		if end, ok := pki.Ends(token); ok {
			at[database] = end
		}
	}
	return &ends{writerTokenDesc, now, func() map[string]time.Time { return at }}, nil
}
