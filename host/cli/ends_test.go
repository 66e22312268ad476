package cli

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/host/server"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// gathered returns the samples of a collector of ends by their only label.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	samples := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			samples[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return samples
}

const aDay = 24 * time.Hour

// TestTheEndOfTheServedCertificateIsShown, also after a renewal.
func TestTheEndOfTheServedCertificateIsShown(t *testing.T) {
	dir, at := t.TempDir(), time.Now()
	now := func() time.Time { return at }
	made, err := pki.Create(dir, now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("edge", "127.0.0.1")
	require.NoError(t, err)
	config, err := server.NewTLS(cert, key, now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	shown := servedEnds(config, cert, now)
	require.InDelta(t, (2 * 365 * aDay).Seconds(), gathered(t, shown)["edge.crt"], 2)

	at = at.Add(700 * aDay)
	require.InDelta(t, (30 * aDay).Seconds(), gathered(t, shown)["edge.crt"], 2)
	_, _, err = made.Certificate("edge", "127.0.0.1")
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(cert, at, at))
	at = at.Add(time.Hour)
	require.InDelta(t, (2*365*aDay - time.Hour).Seconds(), gathered(t, shown)["edge.crt"], 2)
}

// TestOfAServedChainTheFirstEndIsShown: clients refuse the whole then.
func TestOfAServedChainTheFirstEndIsShown(t *testing.T) {
	at := time.Now()
	now := func() time.Time { return at }
	made, err := pki.Create(t.TempDir(), now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("edge", "127.0.0.1")
	require.NoError(t, err)
	own, err := os.ReadFile(cert)
	require.NoError(t, err)
	authority, err := os.ReadFile(made.AuthorityFile()) // which ends later
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, append(own, authority...), 0o600))
	config, err := server.NewTLS(cert, key, now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.InDelta(t, (2 * 365 * aDay).Seconds(), gathered(t, servedEnds(config, cert, now))["edge.crt"], 2)
}

func TestTheEndsOfAPrimarysCertificatesAreShown(t *testing.T) {
	dir := t.TempDir()
	made, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("primary", "127.0.0.1")
	require.NoError(t, err)
	flags := sqldFlags{CA: made.AuthorityFile(), Cert: cert, Key: key}
	at, err := flags.certificateEnds()
	require.NoError(t, err)
	require.Len(t, at, 2)
	require.WithinDuration(t, time.Now().Add(20*365*aDay), at["ca.crt"], time.Minute)
	require.WithinDuration(t, time.Now().Add(2*365*aDay), at["primary.crt"], time.Minute)

	flags.CA = filepath.Join(t.TempDir(), filepath.Base(cert))
	authority, err := os.ReadFile(made.AuthorityFile())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(flags.CA, authority, 0o600))
	for range 2 {
		at, err = flags.certificateEnds()
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(2*365*aDay), at["primary.crt"], time.Minute, "of two of one name, the first that ends")
		flags.CA, flags.Cert = flags.Cert, flags.CA
	}
	flags.Cert = key
	_, err = flags.certificateEnds()
	require.Error(t, err, "a key is no certificate")
}

func TestTheEndsOfTokensAreShown(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	token := func(right pki.Right, life time.Duration) string {
		text, err := made.Token("access", right, life)
		require.NoError(t, err)
		return text
	}
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte(token(pki.ReadWrite, 40*aDay)+"\n"), 0o600))
	command := writerCommand{}
	command.AccessTokenFile, command.RegistryToken = file, token(pki.ReadWrite, 0)
	shown, err := command.tokenEnds(func() time.Time { return now.Add(50 * aDay) })
	require.NoError(t, err)
	got := gathered(t, shown)
	require.Len(t, got, 1, "a token without an end is left out")
	require.InDelta(t, (-10 * aDay).Seconds(), got["access"], 5)

	tokens := &readTokens{map[string]*libsql.Token{"access": libsql.NewToken(token(pki.ReadOnly, 30*aDay)), "registry": libsql.NewToken("")}, time.Now, nil}
	got = gathered(t, tokens.ends())
	require.Len(t, got, 1)
	require.InDelta(t, (30 * aDay).Seconds(), got["access"], 5)
}

// TestEachReplicaIsReadWithItsOwnToken.
func TestEachReplicaIsReadWithItsOwnToken(t *testing.T) {
	c := new(edgeCommand)
	c.RegistryToken, c.AccessToken = "of-registry", "of-access"
	tokens, err := c.loadReadTokens(time.Now, nil)
	require.NoError(t, err)
	for database, token := range tokens.byDatabase {
		require.Equal(t, "of-"+database, token.String())
	}
	require.Len(t, tokens.byDatabase, 2)
}

// TestATokenWithoutAnEndStays: the writer's tokens replace only tokens that expire.
func TestATokenWithoutAnEndStays(t *testing.T) {
	made, err := pki.Create(t.TempDir(), time.Now)
	require.NoError(t, err)
	token := func(life time.Duration) string {
		text, err := made.Token("access", pki.ReadOnly, life)
		require.NoError(t, err)
		return text
	}
	for _, c := range []struct {
		has, given string
		taken      bool
	}{{token(0), token(aDay), false}, {"", token(aDay), false}, {token(2 * aDay), token(aDay), false}, {token(aDay), token(0), false}, {token(aDay), token(2 * aDay), true}} {
		held := libsql.NewToken(c.has)
		var log bytes.Buffer
		tokens := &readTokens{map[string]*libsql.Token{"access": held}, time.Now, slog.New(slog.NewTextHandler(&log, nil))}
		tokens.renew("access", c.given)
		tokens.renew("registry", c.given)
		require.Equal(t, c.taken, held.String() == c.given)
		require.Equal(t, c.taken, log.Len() > 0)
		require.NotContains(t, log.String(), c.given, "a token is a secret")
	}
}

// TestWhatReplicationSendsAndReceivesIsToldApart: at a primary the first is what its line costs.
func TestWhatReplicationSendsAndReceivesIsToldApart(t *testing.T) {
	counted := new(sqld.Traffic)
	counted.Sent.Store(3)
	counted.Received.Store(5)
	registry := prometheus.NewRegistry()
	registry.MustRegister(traffic(counted)...)
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.Metric[0].Counter.GetValue()
	}
	require.Equal(t, map[string]float64{"regedge_replication_sent_bytes_total": 3, "regedge_replication_received_bytes_total": 5}, got)
}

func TestTheFirstEndOfAChainIsShown(t *testing.T) {
	at := time.Now()
	now := func() time.Time { return at }
	var chain tls.Certificate
	for range 2 {
		made, err := pki.Create(t.TempDir(), now)
		require.NoError(t, err)
		cert, key, err := made.Certificate("edge", "127.0.0.1")
		require.NoError(t, err)
		pair, err := tls.LoadX509KeyPair(cert, key)
		require.NoError(t, err)
		chain.Certificate = append(chain.Certificate, pair.Certificate...)
		at = at.Add(-100 * aDay)
	}
	at = time.Now()
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &chain, nil }}
	require.InDelta(t, (630 * aDay).Seconds(), gathered(t, servedEnds(config, "edge.crt", now))["edge.crt"], 60)
}
