package sqld

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// resumes is how often in a row a download goes on after a connection that brought nothing, resumePause apart.
	resumes     = 3
	resumePause = time.Second
)

// download reads a base: from the mirror that its primary names, as long as that works, or from the primary. After a
// connection that failed it goes on where it was.
type download struct {
	f       *fetcher
	ctx     context.Context
	primary *http.Client
	about   http.Header // of the primary's answer
	size    int64       // of the base, in bytes
	at      int64       // how many of them were read
	from    *stream
	mirror  string // host that from is of, "" for the primary
	client  *http.Client
	blamed  string // address of a mirror that has sent something, "" if none has
	failed  int    // connections in a row
}

// download begins to read the base of an answer, at a mirror if the primary names one.
func (f *fetcher) download(ctx context.Context, primary *http.Client, answer *stream) *download {
	d := &download{f: f, ctx: ctx, primary: primary, about: answer.Header, size: answer.ContentLength, from: answer}
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
	d.client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialPrimary, TLSHandshakeTimeout: handshakeTimeout, ForceAttemptHTTP2: true,
		DisableCompression: true, // the base is compressed
	}}
	from, err := d.f.open(d.ctx, d.client, address)
	if err != nil {
		return fmt.Errorf("%s: %w", at.Host, err)
	}
	switch {
	case from.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s answers %s", at.Host, from.Status)
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

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for {
		n, err := d.from.Read(p)
		d.at += int64(n)
		switch {
		case n > 0:
			d.failed = 0
			return n, nil
		case errors.Is(err, io.EOF) && d.at >= d.size:
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			continue
		}
		if err := d.resume(err); err != nil {
			return 0, err
		}
	}
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

// doubt passes an error on, after which the mirror is not asked again if some of what was read is its.
func (d *download) doubt(err error) error {
	if d.blamed == "" {
		return err
	}
	d.f.avoided = d.blamed
	return fmt.Errorf("partly from a mirror, which is not asked again: %w", err)
}

func (d *download) close() {
	d.from.Close()
	if d.client != nil {
		d.client.CloseIdleConnections()
	}
}

// stream is an answer, and ends when its server says nothing for too long: of one that hangs the kernel still acknowledges.
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

// cause is why a request failed, without its address, which is known.
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
