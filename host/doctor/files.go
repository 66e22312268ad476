package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"regedge/host/pki"
	"regedge/replicate/disk"
)

// serverName is the name in the certificate of every primary.
const serverName = "sqld"

// Certificate checks a certificate, its key and, unless authorityFile is empty, that the authority issued it. Its
// expiry is the earliest one in its chain and its authority.
func (e *Exam) Certificate(what, certFile, keyFile, authorityFile string) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		e.Wrong(what, "put it there, readable for the user of the service", "%v", err)
		return
	case err != nil:
		e.Wrong(what, "the first certificate of the chain and the key belong together: copy both again", "%s and %s: %v", certFile, keyFile, err)
		return
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		e.Wrong(what, "copy it again", "%s: %v", certFile, err)
		return
	}
	if authorityFile != "" && !e.issued(what, cert, certFile, authorityFile) {
		return
	}
	do := "renew it (docs/operations.md, \"Certificates\")"
	if e.Now().Before(cert.NotBefore) {
		e.Wrong(what, "is this machine's clock right (date -u)? Else make it again", "%s is valid from %s on", certFile, cert.NotBefore.UTC().Format(time.RFC3339))
		return
	}
	ends, err := pki.CertificateEnd(certFile) // the first of the chain
	if err != nil {
		e.Wrong(what, "copy it again", "%v", err)
		return
	}
	if above, err := pki.CertificateEnd(authorityFile); err == nil && above.Before(ends) {
		e.end("authority of the "+what, above, endsSoon, endsNow, "make a new trust directory, for all machines at once (regedge trust init): what the authority signed ends with it")
		return
	}
	e.end(what, ends, endsSoon, endsNow, do)
}

// issued checks that the authority issued the certificate, and notes if not.
func (e *Exam) issued(what string, cert *x509.Certificate, certFile, authorityFile string) bool {
	text, err := os.ReadFile(authorityFile)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		e.Wrong(what, "copy ca.crt of the trust directory there", "%s holds no authority (%v)", authorityFile, err)
		return false
	}
	_, err = cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: cert.NotBefore.Add(time.Second), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		e.Wrong(what, "copy both from the same trust directory: regedge trust machine makes the certificate", "%s is not of the authority %s", certFile, authorityFile)
	}
	return err == nil
}

// Replication connects to the replication port of a primary with a replica's certificate (mutual TLS).
// address is a URL or host:port.
func (e *Exam) Replication(ctx context.Context, what, address, authorityFile, certFile, keyFile string) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = hostPort(u)
	}
	address = Dialable(address)
	if !e.connects(ctx, what, address) {
		return
	}
	text, err := os.ReadFile(authorityFile)
	pool := x509.NewCertPool()
	pair, pairErr := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || pairErr != nil || !pool.AppendCertsFromPEM(text) {
		return // Certificate has noted why
	}
	config := &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: serverName, NextProtos: []string{"h2"}, Time: e.Now, MinVersion: tls.VersionTLS13,
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	conn, err := e.dial(ctx, "tcp", address)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(e.Timeout))
		_, err = tls.Client(conn, config).Read(make([]byte, 1)) // the server's first frame, or why it refuses this certificate
	}
	if err == nil { // the gate answers; does sqld behind it?
		err = e.greet(ctx, address, config)
	}
	var alert tls.AlertError
	var authority x509.UnknownAuthorityError
	switch {
	case err == nil:
		e.OK(what, "%s answers, and each side trusts the other", address)
	case errors.Is(err, errBehind):
		e.Wrong(what, "look there at the log of regedge primary: has sqld just started, or does it not run?", "%s answers, and the database behind it does not", address)
	case errors.As(err, &authority):
		e.Wrong(what, "is it the right primary? Copy ca.crt of its trust directory here, with a certificate made there (regedge trust machine)", "the certificate at %s is of another authority than %s", address, authorityFile)
	case errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls"):
		e.Wrong(what, "make a certificate in the trust directory of that primary (regedge trust machine NAME) and copy it here; if its time is the reason, compare the clocks", "%s refuses the certificate %s: %v", address, certFile, err)
	default:
		e.silent(what, address, err)
	}
}

// errBehind means that a primary's gate does not reach its sqld.
var errBehind = errors.New("the primary does not answer")

// greet makes the first calls that a replica makes. The last one shows that sqld is up, unless the gate answers it with
// its own "unavailable".
func (e *Exam) greet(ctx context.Context, address string, config *tls.Config) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	transport := &http.Transport{DialContext: e.dial, TLSClientConfig: config, Protocols: protocols, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	call := func(method, path, body string, fields ...string) (http.Header, error) {
		request, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(fields); i += 2 {
			request.Header.Set(fields[i], fields[i+1])
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		return answer.Header, answer.Body.Close()
	}
	// A primary whose log begins at a compressed database replicates it only to callers that say they follow it
	// (docs/design.md, "A base").
	base, err := call(http.MethodGet, "/base", "", "Range", "bytes=0-0")
	if tag := base.Get("Etag"); err == nil && tag != "" {
		_, err = call(http.MethodGet, "/base", "", "If-None-Match", tag)
	}
	if err != nil {
		return err
	}
	const nothing = "\x00\x00\x00\x00\x00" // an empty message of gRPC
	answer, err := call(http.MethodPost, "/wal_log.ReplicationLog/Hello", nothing, "Content-Type", "application/grpc", "TE", "trailers")
	const unavailable = "14"
	if answer.Get("Grpc-Status") == unavailable {
		err = errors.Join(errBehind, err)
	}
	return err
}

// The fractions of a disk's space and inodes that should be free. A large disk is not full while it has
// room for a whole registry and its log.
const (
	freeLow, freeLowBytes = 0.15, 30e9
	freeFew, freeFewBytes = 0.05, 10e9
	filesLow              = 0.02
	doFull                = "make room or enlarge it: du -xh --max-depth=2 on it shows what takes it"
	corruptSuffix         = ".corrupt"
	segments, batches     = "journal-", "batches-"
)

// Disk notes how much is free where dir is, or will be made.
func (e *Exam) Disk(what, dir string) {
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	s, err := disk.Of(dir)
	if err != nil {
		e.Soon(what, "look with df", "how much is free at %s is unknown: %v", dir, err)
		return
	}
	e.free(what, dir, s)
}

// free judges what is free on the disk of dir.
func (e *Exam) free(what, dir string, s disk.Space) {
	share := float64(s.Free) / float64(max(s.Size, 1))
	found := func(note func(what, do, format string, args ...any)) {
		note(what, doFull, "the disk of %s has %s free of %s (%.0f%%)", dir, inUnits(s.Free), inUnits(s.Size), 100*share)
	}
	switch {
	case s.ReadOnly:
		e.Wrong(what, "dmesg says why, if it was not meant: a disk that fails is mounted so", "the disk of %s is read-only", dir)
	case share < freeFew && s.Free < freeFewBytes:
		found(e.Wrong)
	case s.Files > 0 && float64(s.FilesFree)/float64(s.Files) < filesLow:
		e.Wrong(what, "too many small files are on it: df -i, and find out whose", "the disk of %s has room for %d more files", dir, s.FilesFree)
	case share < freeLow && s.Free < freeLowBytes:
		found(e.Soon)
	default:
		e.OK(what, "the disk of %s has %s free of %s (%.0f%%)", dir, inUnits(s.Free), inUnits(s.Size), 100*share)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// State looks at the state directory of an edge: its journal and its disk.
func (e *Exam) State(dir string) {
	const what = "state"
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Soon(what, "the edge makes it at its first start; if there was one, see \"An edge's disk died\" in docs/operations.md", "%s is not there", dir)
	case err != nil:
		e.Wrong(what, "run this as root, or as the user of the edge", "%v", err)
	default:
		e.journal(dir, entries)
	}
	e.Disk("disk of the state", dir)
}

func (e *Exam) journal(dir string, entries []fs.DirEntry) {
	var size uint64
	var corrupt, foreign []string
	count := 0
	for _, entry := range entries {
		switch info, err := entry.Info(); {
		case err != nil:
		case strings.HasSuffix(entry.Name(), corruptSuffix):
			corrupt = append(corrupt, entry.Name())
		case !entry.Type().IsRegular() && (strings.HasPrefix(entry.Name(), segments) || strings.HasPrefix(entry.Name(), batches)):
			foreign = append(foreign, entry.Name())
		case strings.HasPrefix(entry.Name(), segments):
			count, size = count+1, size+uint64(info.Size())
		}
	}
	if len(corrupt) > 0 {
		e.Wrong("journal", "the edge's log says whether charges may be lost; check disk and memory (smartctl -a, dmesg), then move these files out of the directory", "damaged segments were set aside in %s: %s", dir, strings.Join(corrupt, ", "))
	}
	if len(foreign) > 0 {
		e.Wrong("journal", "move them out of the directory, and see what made them there; in place of a link, put the file that it leads to", "a pipe, a directory or a link is in %s where the edge keeps a file: %s", dir, strings.Join(foreign, ", "))
	}
	e.OK("state", "%s has %d segments of the journal, %s", dir, count, inUnits(size))
}
