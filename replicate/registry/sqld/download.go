package sqld

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// resumes is how often in a row a download is resumed, resumePause apart, after a connection that brought nothing.
	resumes     = 3
	resumePause = time.Second
	// mirrorRate is the least number of bytes that a mirror must bring for each second of waiting for it. A slower one
	// is given up.
	mirrorRate = 128 << 10
	// mirrorRedirects is how often in a row a mirror may send the replica elsewhere.
	mirrorRedirects = 5
)

// download reads a base, from the mirror that its primary names as long as that works, or from the primary. After a
// failed connection it resumes where it was.
type download struct {
	f       *fetcher
	ctx     context.Context
	end     func() // ends what is read from the mirror, and what was resumed
	primary *http.Client
	about   http.Header // of the primary's answer
	size    int64       // of the base, in bytes
	at      int64       // how many of them were read
	from    *stream
	mirror  string        // host that from is of, "" for the primary
	blamed  string        // address of a mirror that has sent something, "" if none has
	failed  int           // failed connections in a row
	waited  time.Duration // time lately spent waiting for the mirror
	brought int64         // bytes that the mirror has brought in that time
}

// lostError is the error of a lost connection. It says nothing about what arrived before.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// errSlow means that a mirror brings less than mirrorRate.
var errSlow = fmt.Errorf("it brings less than %d kB/s", mirrorRate>>10)

// download begins to read the base of an answer, at a mirror if the primary names one.
func (f *fetcher) download(ctx context.Context, primary *http.Client, answer *stream) *download {
	d := &download{f: f, primary: primary, about: answer.Header, size: answer.ContentLength, from: answer}
	d.ctx, d.end = context.WithCancel(ctx)
	if err := d.turnToMirror(answer.Header.Get("Content-Location")); err != nil {
		f.output.say(fmt.Sprintf("the mirror is left aside: %v", err))
	}
	place := "the primary"
	if d.mirror != "" {
		place = "the mirror " + d.mirror
	}
	f.output.say(fmt.Sprintf("copying the database from %s, compressed: %d MB", place, d.size>>20))
	return d
}

// turnToMirror reads from a mirror in place of the primary, if it has the base.
func (d *download) turnToMirror(address string) error {
	if address == "" || address == d.f.avoided {
		return nil
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return errors.New("the primary names something that is no address of the web")
	}
	client := &http.Client{CheckRedirect: redirected, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: d.f.traffic.dial, TLSHandshakeTimeout: handshakeTimeout, ForceAttemptHTTP2: true,
		DisableCompression: true, // the base is compressed
		DisableKeepAlives:  true, IdleConnTimeout: linkIdle,
	}}
	from, err := d.f.open(d.ctx, client, address)
	if err != nil {
		return fmt.Errorf("%s: %w", at.Host, err)
	}
	switch {
	case from.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s answers %d %s", at.Host, from.StatusCode, http.StatusText(from.StatusCode))
	case from.ContentLength != d.size:
		err = fmt.Errorf("%s has %d bytes, the primary %d", at.Host, from.ContentLength, d.size)
	}
	if err != nil {
		from.Close()
		return err
	}
	d.from.Close()
	d.from, d.mirror, d.blamed = from, at.Host, address
	return nil
}

// redirected lets a mirror redirect the replica, but not from https to http, and without a Referer, since there may be
// a token in the address.
func redirected(next *http.Request, before []*http.Request) error {
	next.Header.Del("Referer")
	switch {
	case len(before) > mirrorRedirects:
		return errors.New("it sends the replica elsewhere again and again")
	case before[len(before)-1].URL.Scheme == "https" && next.URL.Scheme != "https":
		return errors.New("it sends the replica from https to http")
	}
	return nil
}

// Read implements io.Reader. It does not wait for the end of an answer after the last byte: that may be lost.
func (d *download) Read(p []byte) (int, error) {
	for d.size < 0 || d.at < d.size {
		n, err := d.part(p)
		switch {
		case n > 0:
			d.failed = 0
			return n, nil
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && d.size < 0:
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		}
		if err := d.resume(err); err != nil {
			return 0, lostError{err}
		}
	}
	return 0, io.EOF
}

// part reads what comes next. It fails with errSlow once that is too little for the time that it took. The time between
// two calls does not count against the mirror.
func (d *download) part(p []byte) (int, error) {
	if d.mirror != "" && d.waited >= d.f.silence {
		if float64(d.brought) < mirrorRate*d.waited.Seconds() {
			return 0, errSlow
		}
		d.waited, d.brought = 0, 0
	}
	began := time.Now()
	n, err := d.from.Read(p)
	d.waited += time.Since(began)
	d.brought += int64(n)
	d.at += int64(n)
	return n, err
}

// resume goes on at the primary after an error. It returns that error when it can't.
func (d *download) resume(because error) error {
	d.from.Close()
	for ; d.failed < resumes && d.ctx.Err() == nil; d.failed++ {
		if d.mirror != "" {
			d.f.output.say(fmt.Sprintf("the mirror %s failed after %d of %d MB, the primary sends the rest: %v", d.mirror, d.at>>20, d.size>>20, because))
			d.mirror = ""
		} else {
			select {
			case <-d.ctx.Done():
				return because
			case <-time.After(d.f.pause << d.failed):
			}
		}
		from, err := d.f.open(d.ctx, d.primary, d.f.url, "Range", fmt.Sprintf("bytes=%d-", d.at), "If-Range", d.about.Get("Etag"))
		if err != nil {
			because = err
			continue
		}
		if from.StatusCode == http.StatusPartialContent && strings.HasPrefix(from.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.at)) {
			d.failed++ // until it brings something
			d.from = from
			return nil
		}
		from.Close()
		return fmt.Errorf("%w; and the primary does not go on with it: %s", because, from.Status)
	}
	return because
}

// doubt passes an error on. If it is about the content that was read, rather than a connection or the replica's own
// disk, and some of that content came from the mirror, the mirror is not asked again.
func (d *download) doubt(err error) error {
	var lost lostError
	var disk *fs.PathError
	if d.blamed == "" || errors.As(err, &lost) || errors.As(err, &disk) {
		return err
	}
	d.f.avoided = d.blamed
	return fmt.Errorf("partly from a mirror, which is not asked again: %w", err)
}

func (d *download) close() {
	d.end()
	d.from.Close()
}

// stream is an answer that ends when its server sends nothing for too long. When a server hangs, its kernel still
// acknowledges packets.
type stream struct {
	*http.Response
	ctx     context.Context
	stop    context.CancelCauseFunc
	watch   *time.Timer
	silence time.Duration
}

// open asks a server. fields are names and values of the request's header.
func (f *fetcher) open(ctx context.Context, client *http.Client, address string, fields ...string) (*stream, error) {
	s := &stream{silence: f.silence}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, address, nil)
	if err != nil {
		s.stop(nil)
		return nil, err
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	s.watch = time.AfterFunc(f.answer, func() { s.stop(errSaysNothing) })
	s.Response, err = client.Do(request)
	s.watch.Stop()
	if err != nil {
		err = s.cause(err)
		s.stop(nil)
		return nil, err
	}
	return s, nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.watch.Reset(s.silence)
	defer s.watch.Stop()
	n, err := s.Body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.cause(err)
	}
	return n, err
}

// cause is why a request failed, without its address, which the caller knows.
func (s *stream) cause(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	if of := new(url.Error); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Close ends the request.
func (s *stream) Close() {
	s.watch.Stop()
	s.stop(nil)
	_ = s.Body.Close()
}
