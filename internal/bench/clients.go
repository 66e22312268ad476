package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// clients are the connections of a load, served by one thread. On a core of its own that thread polls
// and never sleeps: waking it would cost the server several microseconds per answer, which a client
// on another machine would not.
type clients struct {
	load
	poll      int // epoll(7)
	open      map[int32]*client
	random    *rand.Rand
	until     time.Time
	latencies []time.Duration
	statuses  map[int]int
	bodyBytes int // of all answers
}

// client is one connection with a request in flight, sent at begun.
type client struct {
	socket int
	begun  time.Time
	sent   []byte
	got    []byte // what was received of the answer
}

// maxAnswer is the largest answer with its head, in bytes.
const maxAnswer = 64 << 10

func (l load) connect() (*clients, error) {
	c := &clients{load: l, open: map[int32]*client{}, statuses: map[int]int{}, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))}
	var err error
	if c.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for range l.connections {
		if err := c.add(); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// add opens a connection and duplicates its socket, to use it without the Go runtime.
func (c *clients) add() error {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer file.Close()
	socket, err := unix.Dup(int(file.Fd()))
	if err != nil {
		return err
	}
	c.open[int32(socket)] = &client{socket: socket, got: make([]byte, 0, maxAnswer)}
	if err := unix.SetNonblock(socket, true); err != nil {
		return err
	}
	return unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)})
}

func (c *clients) close() error {
	err := unix.Close(c.poll)
	for _, one := range c.open {
		err = errors.Join(err, unix.Close(one.socket))
	}
	return err
}

// run sends a request on each connection, and the next one as soon as its answer was read, until the
// time is over.
func (c *clients) run() error {
	c.until = time.Now().Add(c.length)
	for _, one := range c.open {
		if err := c.send(one); err != nil {
			return err
		}
	}
	wait := 0
	if runtime.NumCPU() < 2 {
		wait = -1 // block: the server needs the core
	}
	events := make([]unix.EpollEvent, c.connections)
	for busy := c.connections; busy > 0; {
		n, err := unix.EpollWait(c.poll, events, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for i := range max(n, 0) {
			going, err := c.receive(c.open[events[i].Fd])
			if err != nil {
				return err
			}
			if !going {
				busy--
			}
		}
		if time.Since(c.until) > patience {
			return fmt.Errorf("%d requests got no answer within %s", busy, patience)
		}
	}
	return nil
}

// patience is the timeout for the last answers after the end of a load.
const patience = 10 * time.Second

func (c *clients) send(one *client) error {
	one.sent = c.next(one.sent[:0], c.random)
	one.got, one.begun = one.got[:0], time.Now()
	n, err := unix.Write(one.socket, one.sent)
	if err == nil && n < len(one.sent) {
		err = errors.New("the socket took a part of a request")
	}
	return err
}

// receive reads the bytes that have arrived, and sends the next request once an answer is complete. It
// reports whether a request is in flight.
func (c *clients) receive(one *client) (going bool, err error) {
	n, err := unix.Read(one.socket, one.got[len(one.got):cap(one.got)])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return true, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, errors.New("the server closed the connection, or its answer is too long")
	}
	one.got = one.got[:len(one.got)+n]
	status, length, whole, err := answered(one.got)
	if err != nil || !whole {
		return true, err
	}
	c.bodyBytes += length
	now := time.Now()
	c.latencies = append(c.latencies, now.Sub(one.begun))
	c.statuses[status]++
	if now.After(c.until) {
		return false, nil
	}
	return true, c.send(one)
}

// answered parses an answer. It returns the length of its body, and whether all of it was received.
func answered(got []byte) (status, length int, whole bool, err error) {
	head, body, found := bytes.Cut(got, []byte("\r\n\r\n"))
	if !found {
		return 0, 0, false, nil
	}
	status, length, err = parseHead(head)
	return status, length, len(body) >= length, err
}
