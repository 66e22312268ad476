package handler

// NewRequestID makes a request id: 26 characters of Crockford's base32, of which the
// first 10 are the time in milliseconds, so that ids sort by time, and the rest 80
// random bits (the layout of a ULID).
func NewRequestID(clock Clock, random Random) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var entropy [10]byte
	random.Read(entropy[:])

	var id [26]byte
	for i, ms := 9, uint64(clock.UnixMilli()); i >= 0; i-- {
		id[i] = alphabet[ms&31]
		ms >>= 5
	}
	out := 10
	var bits uint32
	var held uint
	for _, b := range entropy {
		bits, held = bits<<8|uint32(b), held+8
		for held >= 5 {
			held -= 5
			id[out] = alphabet[bits>>held&31]
			out++
		}
	}
	return string(id[:])
}
