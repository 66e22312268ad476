package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// load is a closed loop: each connection sends its next request once the answer to the last one was
// read.
type load struct {
	address     string
	connections int
	length      time.Duration
	// next appends one whole HTTP request to its argument.
	next func(buf []byte, random *rand.Rand) []byte
}

// outcome is the result of a load.
type outcome struct {
	requests  int
	perSecond float64
	// processor is the server's processor time for one request.
	processor time.Duration
	// bodyBytes is the mean length of a body.
	bodyBytes int
	p50, p99  time.Duration
	statuses  map[int]int
}

// failed is the number of answers other than 200.
func (o outcome) failed() int {
	n := 0
	for status, count := range o.statuses {
		if status != 200 {
			n += count
		}
	}
	return n
}

// run sends requests for the load's length and returns what was measured.
func (l load) run() (outcome, error) {
	c, err := l.connect()
	if err != nil {
		return outcome{}, err
	}
	defer c.close()
	begin := time.Now()
	if err := c.run(); err != nil {
		return outcome{}, err
	}
	spent := time.Since(begin)
	if len(c.latencies) == 0 {
		return outcome{}, fmt.Errorf("no answer within %s", l.length)
	}
	slices.Sort(c.latencies)
	n := len(c.latencies)
	return outcome{
		requests: n, perSecond: float64(n) / spent.Seconds(), statuses: c.statuses, bodyBytes: c.bodyBytes / n,
		p50: c.latencies[n/2], p99: c.latencies[n*99/100],
	}, nil
}

// once sends one request on a connection of its own and returns the status.
func (l load) once() (status int, err error) {
	l.connections, l.length = 1, 0
	c, err := l.connect()
	if err != nil {
		return 0, err
	}
	defer c.close()
	if err := c.run(); err != nil {
		return 0, err
	}
	for status = range c.statuses {
	}
	return status, nil
}

var contentLength = []byte("content-length:")

// parseHead reads the status and the length of the body from the head of an HTTP/1.1 answer. It is
// written by hand so that the generator needs far less processor time than the server.
func parseHead(head []byte) (status, length int, err error) {
	if len(head) < 12 {
		return 0, 0, fmt.Errorf("status line %q", head)
	}
	if status, err = strconv.Atoi(string(head[9:12])); err != nil {
		return 0, 0, fmt.Errorf("status line %q", head)
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, 0, fmt.Errorf("header %q", line)
			}
			return status, length, nil
		}
	}
	return 0, 0, fmt.Errorf("an answer without a Content-Length")
}
