package network

import "strings"

// MaxNetworks is how many networks a list has at most, so that it is compared in well under a microsecond
// and edges can cache it.
const MaxNetworks = 16

// The lengths of addresses, in bytes.
const (
	lengthV4 = 4
	lengthV6 = 16
)

// List is a list of networks as the access database stores it: for each, the length of its address
// (4 or 16), the bits of its prefix, and the address. The empty list has no network.
type List string

// Append adds a network to the stored form of a list: an address of 4 or 16 bytes, and how many of its bits
// count.
func Append(list, address []byte, bits int) []byte {
	return append(append(list, byte(len(address)), byte(bits)), address...)
}

// next splits the first network off. ok is false at the end of the list, and where it is damaged.
func (l List) next() (address string, bits int, rest List, ok bool) {
	if len(l) < 2 {
		return "", 0, "", false
	}
	length, bits := int(l[0]), int(l[1])
	if length != lengthV4 && length != lengthV6 || bits > 8*length || len(l) < 2+length {
		return "", 0, "", false
	}
	return string(l[2 : 2+length]), bits, l[2+length:], true
}

// Each calls yield with each network of the list, up to the first damage.
func (l List) Each(yield func(address string, bits int)) {
	for {
		address, bits, rest, ok := l.next()
		if !ok {
			return
		}
		yield(address, bits)
		l = rest
	}
}

// Contains reports whether one of the networks has the address, given as text. Text that is no address is in
// none. An IPv4 address in IPv6 form (::ffff:192.0.2.1) is an IPv4 address; a zone does not count.
func (l List) Contains(text string) bool {
	var buffer [lengthV6]byte
	address := parse(text, &buffer)
	if address == nil {
		return false
	}
	for {
		prefix, bits, rest, ok := l.next()
		if !ok {
			return false
		}
		if len(prefix) == len(address) && begins(address, prefix, bits) {
			return true
		}
		l = rest
	}
}

// begins reports whether an address begins with the first bits of prefix.
func begins(address []byte, prefix string, bits int) bool {
	whole := bits / 8
	for i := range whole {
		if address[i] != prefix[i] {
			return false
		}
	}
	mask := byte(0xff) << (8 - bits%8) // 0 if no bits are left over
	return bits%8 == 0 || (address[whole]^prefix[whole])&mask == 0
}

// parse returns the bytes of an address, 4 or 16 in buffer, or nil.
func parse(text string, buffer *[lengthV6]byte) []byte {
	if strings.IndexByte(text, ':') < 0 {
		return parseV4(text, buffer[:0])
	}
	text, _, _ = strings.Cut(text, "%")
	address := parseV6(text, buffer)
	if address != nil && string(address[:12]) == "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff" {
		return address[12:]
	}
	return address
}

// parseV4 appends the four bytes of a.b.c.d to dst. It returns nil for anything else.
func parseV4(text string, dst []byte) []byte {
	for part := range lengthV4 {
		digits := text
		if at := strings.IndexByte(text, '.'); (at >= 0) != (part < lengthV4-1) {
			return nil
		} else if at >= 0 {
			digits, text = text[:at], text[at+1:]
		}
		value, ok := decimalByte(digits)
		if !ok {
			return nil
		}
		dst = append(dst, value)
	}
	return dst
}

func decimalByte(digits string) (value byte, ok bool) {
	if digits == "" || len(digits) > 3 || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		digit := digits[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = 10*n + int(digit)
	}
	return byte(n), n <= 255
}

// parseV6 reads an IPv6 address (RFC 4291, section 2.2) into buffer. It returns nil for anything else.
func parseV6(text string, buffer *[lengthV6]byte) []byte {
	head, tail, compressed := strings.Cut(text, "::")
	front := groups(head, !compressed, buffer[:0])
	if front == nil {
		return nil
	}
	if !compressed {
		if len(front) != lengthV6 {
			return nil
		}
		return front
	}
	var end [lengthV6]byte
	back := groups(tail, true, end[:0])
	// "::" stands for one group of zeros or more.
	if back == nil || len(front)+len(back) > lengthV6-2 {
		return nil
	}
	clear(buffer[len(front):])
	copy(buffer[lengthV6-len(back):], back)
	return buffer[:]
}

// groups appends groups of up to four hexadecimal digits, with colons between them, to dst. The last may be an
// IPv4 address if it ends the text. No text is no group. It returns nil for anything else, and for more than
// fit into an address.
func groups(text string, ends bool, dst []byte) []byte {
	for text != "" {
		group, rest, more := strings.Cut(text, ":")
		switch {
		case more && rest == "":
			return nil
		case !more && ends && strings.IndexByte(group, '.') >= 0:
			if len(dst) > lengthV6-lengthV4 {
				return nil
			}
			return parseV4(group, dst)
		}
		value, ok := hexadecimal(group)
		if !ok || len(dst) >= lengthV6 {
			return nil
		}
		dst = append(dst, byte(value>>8), byte(value))
		text = rest
	}
	return dst
}

func hexadecimal(digits string) (value uint16, ok bool) {
	if digits == "" || len(digits) > 4 {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i] | 0x20 // in lower case
		switch {
		case digits[i] >= '0' && digits[i] <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		value = value<<4 | uint16(c)
	}
	return value, true
}
