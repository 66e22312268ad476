package syncproto

import "strings"

// A request id, as handler.NewRequestID makes it: 26 characters of Crockford's base 32, of which the first 10
// are the time in milliseconds.
const (
	requestIDLength = 26
	requestIDTime   = 10
	crockford       = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// RequestMillis returns the time in a request id, Unix milliseconds. ok is false for an id without one. It
// does not look at the characters behind the time.
func RequestMillis(id string) (millis int64, ok bool) {
	if len(id) != requestIDLength {
		return 0, false
	}
	for i := range requestIDTime {
		digit := strings.IndexByte(crockford, id[i])
		if digit < 0 {
			return 0, false
		}
		millis = millis<<5 | int64(digit)
	}
	return millis, true
}

// IsRequestID reports whether a text has the form of a request id.
func IsRequestID(text string) bool {
	return len(text) == requestIDLength && strings.Trim(text, crockford) == ""
}

// RequestIDsFrom is a text that sorts before the ids of all requests from a time (Unix milliseconds)
// on, and after all others.
func RequestIDsFrom(millis int64) string {
	var id [requestIDTime]byte
	for i := requestIDTime - 1; i >= 0; i-- {
		id[i] = crockford[millis&31]
		millis >>= 5
	}
	return string(id[:])
}
