package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/server"
	"regedge/internal/testkit"
)

// writeCertificate makes a self-signed certificate for 127.0.0.1.
func writeCertificate(t testing.TB, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", secret)
	return certFile, keyFile
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	require.NoError(t, os.WriteFile(path, block, 0o600))
}

func serialOf(t *testing.T, config *tls.Config) int64 {
	t.Helper()
	certificate, err := config.GetCertificate(nil)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	require.NoError(t, err)
	return parsed.SerialNumber.Int64()
}

func TestTLSIsServed(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine})
	r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	response, err := r.client.Get(r.url + "/v1/llps/a")
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, 2, response.ProtoMajor)
}

func TestRenewedCertificateIsReloaded(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	certFile, keyFile := writeCertificate(t, dir, 1)
	log := &testkit.Log{}
	config, err := server.NewTLS(certFile, keyFile, func() time.Time { return now }, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	require.EqualValues(t, 1, serialOf(t, config))
	// said is what was logged since it was asked last.
	var read int
	said := func() string {
		news := log.String()[read:]
		read += len(news)
		return news
	}
	const failed = "the TLS certificate can't be read again: the one before stays in use until it ends"

	writeCertificate(t, dir, 2)
	require.NoError(t, os.Chtimes(certFile, now, now.Add(time.Second)))
	require.EqualValues(t, 1, serialOf(t, config), "the files are not looked at each time")
	now = now.Add(time.Minute)
	require.EqualValues(t, 2, serialOf(t, config))
	require.Regexp(t, `^[^\n]* level=INFO msg="the TLS certificate was renewed" file=\S+\n$`, said())

	renewed, renewedKey := writeCertificate(t, t.TempDir(), 3)
	copyFile(t, renewed, certFile)
	require.NoError(t, os.Chtimes(certFile, now, now.Add(2*time.Second)))
	now = now.Add(time.Minute)
	require.EqualValues(t, 2, serialOf(t, config), "the certificate is there before its key")
	require.Contains(t, said(), failed)
	now = now.Add(time.Minute)
	require.EqualValues(t, 2, serialOf(t, config))
	require.Empty(t, said(), "the same reason is logged once")
	copyFile(t, renewedKey, keyFile)
	require.EqualValues(t, 2, serialOf(t, config), "nor are they looked at each time after a failure")
	now = now.Add(time.Minute)
	require.EqualValues(t, 3, serialOf(t, config), "it is tried again")
	require.Contains(t, said(), "was renewed")

	require.NoError(t, os.WriteFile(certFile, []byte("half a renewal"), 0o600))
	require.NoError(t, os.Chtimes(certFile, now, now.Add(time.Hour)))
	now = now.Add(time.Minute)
	require.EqualValues(t, 3, serialOf(t, config), "a broken renewal changes nothing")
	require.Contains(t, said(), failed)
	require.NoError(t, os.Remove(certFile))
	now = now.Add(time.Minute)
	require.EqualValues(t, 3, serialOf(t, config))
	require.Contains(t, said(), "no such file", "another reason is logged as well")

	writeCertificate(t, dir, 4)
	require.NoError(t, os.Chtimes(certFile, now, now.Add(-24*time.Hour)))
	now = now.Add(time.Minute)
	require.EqualValues(t, 4, serialOf(t, config), "a copy can keep the time of an older file")
	require.NotContains(t, said(), failed)
	now = now.Add(time.Minute)
	require.EqualValues(t, 4, serialOf(t, config))
	require.Empty(t, said(), "nothing has changed")

	require.NoError(t, os.Remove(certFile))
	now = now.Add(time.Minute)
	require.EqualValues(t, 4, serialOf(t, config))
	require.Contains(t, said(), "no such file", "this is another time, and another day perhaps")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

// TestACertificateIsReloadedAmongHandshakes.
func TestACertificateIsReloadedAmongHandshakes(t *testing.T) {
	var passed atomic.Int64
	began := time.Now()
	certFile, keyFile := writeCertificate(t, t.TempDir(), 1)
	config, err := server.NewTLS(certFile, keyFile, func() time.Time { return began.Add(time.Duration(passed.Add(int64(time.Minute)))) }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var handshakes sync.WaitGroup
	for n := range 4 {
		handshakes.Go(func() {
			for i := range 20 {
				_ = os.Chtimes(certFile, began, began.Add(time.Duration(n*20+i)*time.Second))
				certificate, err := config.GetCertificate(nil)
				if err != nil || certificate == nil {
					t.Error("no certificate", err)
				}
			}
		})
	}
	handshakes.Wait()
}

// hanging is a log that takes a line only when it is closed.
type hanging chan struct{}

func (h hanging) Enabled(context.Context, slog.Level) bool  { return true }
func (h hanging) Handle(context.Context, slog.Record) error { <-h; return nil }
func (h hanging) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h hanging) WithGroup(string) slog.Handler             { return h }

// TestAHandshakeWaitsAMomentForItsCertificate, whatever holds up its reading.
func TestAHandshakeWaitsAMomentForItsCertificate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := make(hanging)
		defer close(log)
		certFile, keyFile := writeCertificate(t, dir, 1)
		config, err := server.NewTLS(certFile, keyFile, time.Now, slog.New(log))
		require.NoError(t, err)
		require.NoError(t, os.Remove(certFile))
		time.Sleep(time.Minute)
		began := time.Now()
		require.EqualValues(t, 1, serialOf(t, config))
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestErrorNamesAMissingCertificate(t *testing.T) {
	_, err := server.NewTLS("nowhere.pem", "nowhere.key", time.Now, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "nowhere.pem")
}

// TestNoHandshakeWaitsForAPipe without a writer in place of the certificate; a file
// that replaces it is read.
func TestNoHandshakeWaitsForAPipe(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	certFile, keyFile := writeCertificate(t, dir, 1)
	config, err := server.NewTLS(certFile, keyFile, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, file := range []string{certFile, keyFile} {
		require.NoError(t, os.Remove(file))
		require.NoError(t, syscall.Mkfifo(file, 0o600))
		require.NoError(t, os.Chtimes(certFile, now, now.Add(time.Hour)))
		now = now.Add(time.Minute)
		require.EqualValues(t, 1, serialOf(t, config))
		_, err = server.NewTLS(certFile, keyFile, time.Now, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "are not both files")
		require.NoError(t, os.Remove(file))
		writeCertificate(t, dir, 1)
	}
	writeCertificate(t, dir, 2)
	require.NoError(t, os.Chtimes(certFile, now, now.Add(2*time.Hour)))
	now = now.Add(time.Minute)
	require.EqualValues(t, 2, serialOf(t, config))
}
