package edge

import (
	"context"
	"sync"

	"regedge/host/server"
	"regedge/replicate/metering/writer"
)

// Bounds of the log between two reports: the newest keptOfKey requests of each
// of the first keptKeys keys.
const (
	keptOfKey = 32
	keptKeys  = 1024
)

// requestLog keeps the last requests of keys until they are sent to the writer.
// It is safe for concurrent use.
type requestLog struct {
	mu   sync.Mutex
	keys map[int64]*keyLog
}

// keyLog is a ring buffer of the last requests of a key.
type keyLog struct {
	served [keptOfKey]served
	count  int // of all requests, also overwritten ones
}

// served is a copy of a server.Served that keeps no request's memory alive.
type served struct {
	id       [26]byte
	endpoint string
	code     string
	status   int16
	credits  int8
}

// note adds a request.
func (l *requestLog) note(s server.Served) {
	if len(s.ID) != len(served{}.id) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.keys[s.Key]
	if of == nil {
		if len(l.keys) >= keptKeys {
			return
		}
		if l.keys == nil {
			l.keys = map[int64]*keyLog{}
		}
		of = &keyLog{}
		l.keys[s.Key] = of
	}
	to := &of.served[of.count%keptOfKey]
	copy(to.id[:], s.ID)
	to.endpoint, to.code, to.status, to.credits = s.Endpoint, s.Code, int16(s.Status), int8(s.Credits)
	of.count++
}

// take empties the log and returns the most that the writer takes in one call, the newest request of each
// key first, so that no key crowds out another.
func (l *requestLog) take() []writer.Served {
	l.mu.Lock()
	keys := l.keys
	l.keys = nil
	l.mu.Unlock()
	var taken []writer.Served
	for age := range keptOfKey {
		for key, of := range keys {
			if age >= of.count {
				continue
			}
			if len(taken) == writer.MaxRequests {
				return taken
			}
			s := &of.served[(of.count-1-age)%keptOfKey]
			taken = append(taken, writer.Served{
				ID: string(s.id[:]), Key: key, Endpoint: s.endpoint, Status: int(s.status), Code: s.code, Credits: int(s.credits),
			})
		}
	}
	return taken
}

// send empties the log to the writer. There is no retry: it is only a log.
func (l *requestLog) send(ctx context.Context, to *writer.Client) {
	if taken := l.take(); len(taken) > 0 {
		_ = to.SendRequests(ctx, taken)
	}
}
