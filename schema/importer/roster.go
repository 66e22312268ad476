package importer

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"regedge/handler/directors"
	"regedge/schema/extsort"
)

// roster makes the boards of a register that was empty, as the appointments pass by in the
// order of the companies, and hands them out as the companies do. It holds what boards say of
// each director in little memory, for India has four million, and the boards in a file.
type roster struct {
	dins   []uint32 // ascending
	starts []uint32 // of each director's text: the number of its block, and the place in it
	first  []uint32 // where the directors of each range of DINs begin, made when it is needed
	blocks [][]byte // of texts: name, tab, designation, tab, date, newline
	full   bool     // no more room: the boards are gathered by SQL

	cin   string // of the company at hand
	seats []seat

	made *extsort.Sorter // the boards by CIN
	rows *extsort.Rows   // of made, while they are handed out
	more bool            // rows stands on one
}

// seat is a line of a board.
type seat struct{ din, name, designation, appointed string }

const (
	// blockBits is the size of a block, as a power of two.
	blockBits = 20
	// rosterBlocks bounds the texts: at the length of the register's names there is room for
	// seven million directors.
	rosterBlocks = 256
	// boardsBudget is the memory for boards on their way to the file.
	boardsBudget = 8 << 20
)

// newRoster makes one whose file is in folder.
func newRoster(folder string) *roster { return &roster{made: extsort.New(folder, boardsBudget)} }

func (r *roster) close() error { return r.made.Close() }

// begin prepares for so many records of a table.
func (r *roster) begin(t *table, records int64) error {
	switch t {
	case directorTable: // room for all, so that none is left over by growing
		r.dins, r.starts = make([]uint32, 0, records), make([]uint32, 0, records)
	case companyTable:
		return r.handOut()
	}
	return nil
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
		r.full = true
		r.forget()
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

// forget gives up the directors.
func (r *roster) forget() { r.dins, r.starts, r.first, r.blocks = nil, nil, nil, nil }

// seat takes an appointment. Those of a company come one after another. One that has ceased
// has no seat, nor has one of a director who is not held.
func (r *roster) seat(cin, din string, v []value) error {
	if r.full {
		return nil
	}
	if cin != r.cin {
		if err := r.rise(); err != nil {
			return err
		}
		r.cin = cin
	}
	if v[appointmentCessation].kind != null {
		return nil
	}
	name, designation, appointed, held := r.find(din)
	if !held {
		return nil
	}
	if v[appointmentDesignation].kind == text {
		designation = v[appointmentDesignation].s
	}
	if v[appointmentDate].kind == text {
		appointed = v[appointmentDate].s
	}
	r.seats = append(r.seats, seat{din, name, designation, appointed})
	return nil
}

// rise ends the company at hand, if there is one.
func (r *roster) rise() error {
	if len(r.seats) == 0 {
		return nil
	}
	return r.made.Add([]byte(r.cin), []byte(r.board()))
}

// handOut ends the making of boards.
func (r *roster) handOut() (err error) {
	if err = r.rise(); err != nil {
		return err
	}
	r.forget()
	if r.rows, err = r.made.Rows(); err != nil {
		return err
	}
	r.more = r.rows.Next()
	return r.rows.Err()
}

// boardOf is the board of a company, NULL when it could not be made. The companies are asked
// for in their order.
func (r *roster) boardOf(cin string) (value, error) {
	if r.full {
		return value{}, nil
	}
	for r.more && string(r.rows.Key()) < cin {
		r.more = r.rows.Next()
	}
	if err := r.rows.Err(); err != nil {
		return value{}, err
	}
	made := value{kind: text}
	if r.more && string(r.rows.Key()) == cin {
		made.s = string(r.rows.Value())
	}
	return made, nil
}

// board is that of the company at hand, whose seats are given up: as directors.Of makes it.
func (r *roster) board() string {
	slices.SortFunc(r.seats, func(a, b seat) int {
		if (a.appointed == "") != (b.appointed == "") {
			return strings.Compare(b.appointed, a.appointed)
		}
		return cmp.Or(strings.Compare(a.appointed, b.appointed), strings.Compare(a.din, b.din))
	})
	var b strings.Builder
	for i, s := range r.seats[:min(len(r.seats), directors.Max)] {
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
