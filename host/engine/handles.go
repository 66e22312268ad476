package engine

// kind is the type of the resource behind a handle.
type kind uint8

const (
	kindFields kind = iota + 1
	kindIncomingRequest
	kindOutgoingRequest
	kindRequestOptions
	kindResponseOutparam
	kindIncomingResponse
	kindOutgoingResponse
	kindOutgoingBody
	kindFutureResponse
	kindOutputStream
	kindPollable
	kindIOError
	kindConnection
)

var kindNames = [...]string{
	"free", "fields", "incoming-request", "outgoing-request", "request-options",
	"response-outparam", "incoming-response", "outgoing-response", "outgoing-body",
	"future-incoming-response", "output-stream", "pollable", "error", "connection",
}

func (k kind) String() string { return kindNames[k] }

// A handle is generation<<slotBits | slot. Generations begin at 1, so no handle is 0. A slot gets a
// new generation, and thus another handle, each time that it is reused.
const (
	slotBits   = 10
	slotMask   = 1<<slotBits - 1
	maxHandles = 512 // at once, in one request; a lookup needs about 20
)

// noParent is the parent of a resource that depends on no other.
const noParent = -1

// slot is one entry of a handle table.
type slot struct {
	kind       kind // 0 when free
	generation uint32
	// ref is the index of the resource in the exchange's list of its kind.
	ref int32
	// parent is the slot of the resource that this one belongs to and must not outlive.
	parent   int32
	children int32
}

// handleTable holds the handles of one request. The zero value is empty.
type handleTable struct {
	slots []slot
	free  []int32
}

// reset drops all handles and generations, so that the same calls always get the same handles.
func (t *handleTable) reset() {
	t.slots = t.slots[:0]
	t.free = t.free[:0]
}

// add makes a handle; false when the table is full. parent is a slot or noParent.
func (t *handleTable) add(k kind, ref int, parent int32) (uint32, bool) {
	var i int32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		if len(t.slots) == maxHandles {
			return 0, false
		}
		i = int32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.kind, s.ref, s.parent, s.children = k, int32(ref), parent, 0
	s.generation++
	if parent != noParent {
		t.slots[parent].children++
	}
	return s.generation<<slotBits | uint32(i), true
}

// find returns the slot of a live handle of kind k; false for any other number.
func (t *handleTable) find(h uint32, k kind) (int32, bool) {
	i := h & slotMask
	if int(i) >= len(t.slots) {
		return 0, false
	}
	s := &t.slots[i]
	return int32(i), s.kind == k && k != 0 && s.generation == h>>slotBits
}

// remove frees a slot that find returned. It returns false while other resources depend on it.
func (t *handleTable) remove(i int32) bool {
	s := &t.slots[i]
	if s.children > 0 {
		return false
	}
	if s.parent != noParent {
		t.slots[s.parent].children--
	}
	s.kind = 0
	// A slot that has used up its generations is not reused.
	if s.generation < 1<<(32-slotBits)-1 {
		t.free = append(t.free, i)
	}
	return true
}
