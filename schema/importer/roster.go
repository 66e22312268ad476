package importer

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"regedge/handler/board"
)

// roster makes the boards of a register whose directors and appointments are all new, as
// the appointments pass by in the order of the companies. It holds what boards say of each
// director in little memory: India has four million.
type roster struct {
	dins   []uint32 // ascending
	starts []uint32 // of each director's text: the number of its block, and the place in it
	first  []uint32 // where the directors of each range of DINs begin, made when it is needed
	blocks [][]byte // of texts: name, tab, designation, tab, date, newline
	full   bool     // no more room: the boards are gathered by SQL

	cin   string
	seats []seat
}

// seat is a line of a board.
type seat struct{ din, name, designation, appointed string }

const (
	// blockBits is the size of a block, as a power of two.
	blockBits = 20
	// rosterBlocks bounds the texts: at the length of the register's names there is room for
	// seven million directors.
	rosterBlocks = 256
)

// expect makes room for so many directors, so that none is left over by growing.
func (r *roster) expect(directors int64) {
	r.dins, r.starts = make([]uint32, 0, directors), make([]uint32, 0, directors)
}

// addDirector takes a director, whose DIN is greater than that of the one before.
func (r *roster) addDirector(din string, v []value) {
	if r.full {
		return
	}
	number, err := strconv.ParseUint(din, 10, 32)
	name, designation, appointed := v[directorName].s, v[directorDesignation].s, v[directorAppointed].s
	block, room := r.room(len(name) + len(designation) + len(appointed) + 3)
	if err != nil || !room {
		*r = roster{full: true}
		return
	}
	r.dins = append(r.dins, uint32(number))
	r.starts = append(r.starts, uint32(len(r.blocks)-1)<<blockBits|uint32(len(*block)))
	for _, part := range []string{name, "\t", designation, "\t", appointed, "\n"} {
		*block = append(*block, part...)
	}
}

// room is the block that has room for size bytes; false when there is none.
func (r *roster) room(size int) (*[]byte, bool) {
	last := len(r.blocks) - 1
	if last >= 0 && len(r.blocks[last])+size <= 1<<blockBits {
		return &r.blocks[last], true
	}
	if size > 1<<blockBits || len(r.blocks) == rosterBlocks {
		return nil, false
	}
	r.blocks = append(r.blocks, make([]byte, 0, 1<<blockBits))
	return &r.blocks[last+1], true
}

// find is what a board says of a director who is held.
func (r *roster) find(din string) (name, designation, appointed string, held bool) {
	number, err := strconv.ParseUint(din, 10, 32)
	if err != nil {
		return "", "", "", false
	}
	i, held := r.index(uint32(number))
	if !held {
		return "", "", "", false
	}
	text := r.blocks[r.starts[i]>>blockBits][r.starts[i]&(1<<blockBits-1):]
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	name, rest, _ := strings.Cut(string(line), "\t")
	designation, appointed, _ = strings.Cut(rest, "\t")
	return name, designation, appointed, true
}

// rangeBits is the size of a range of DINs, as a power of two: some ten directors, so
// that a search touches one or two lines of the processor's cache and not twenty.
const rangeBits = 8

func (r *roster) index(din uint32) (int, bool) {
	if r.first == nil {
		r.first = rangesOf(r.dins)
	}
	n := din >> rangeBits
	if int(n)+1 >= len(r.first) {
		return 0, false
	}
	start := int(r.first[n])
	i, held := slices.BinarySearch(r.dins[start:r.first[n+1]], din)
	return start + i, held
}

// rangesOf lists where each range begins, and the end of the last.
func rangesOf(dins []uint32) []uint32 {
	last := uint32(0)
	if len(dins) > 0 {
		last = dins[len(dins)-1] >> rangeBits
	}
	first := make([]uint32, last+2)
	n := uint32(0)
	for i, din := range dins {
		for ; n <= din>>rangeBits; n++ {
			first[n] = uint32(i)
		}
	}
	first[last+1] = uint32(len(dins))
	return first
}

// seat takes an appointment at the company at hand. One that has ceased has no seat, nor
// has one of a director who is not held.
func (r *roster) seat(din string, v []value) {
	if v[appointmentCessation].kind != null {
		return
	}
	name, designation, appointed, held := r.find(din)
	if !held {
		return
	}
	if v[appointmentDesignation].kind == text {
		designation = v[appointmentDesignation].s
	}
	if v[appointmentDate].kind == text {
		appointed = v[appointmentDate].s
	}
	r.seats = append(r.seats, seat{din, name, designation, appointed})
}

// board is that of the company at hand, whose seats are given up: as board.Of makes it.
func (r *roster) board() string {
	slices.SortFunc(r.seats, func(a, b seat) int {
		if (a.appointed == "") != (b.appointed == "") {
			return strings.Compare(b.appointed, a.appointed)
		}
		return cmp.Or(strings.Compare(a.appointed, b.appointed), strings.Compare(a.din, b.din))
	})
	var b strings.Builder
	for i, s := range r.seats[:min(len(r.seats), board.Max)] {
		if i > 0 {
			b.WriteByte('\n')
		}
		for n, field := range []string{s.din, s.name, s.designation, s.appointed} {
			if n > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(field)
		}
	}
	r.seats = r.seats[:0]
	return b.String()
}
