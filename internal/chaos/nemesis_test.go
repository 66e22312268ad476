package chaos

import (
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// longestFault is how long a fault lasts at most: longer than anything stale is believed.
const longestFault = 4 * time.Second

// disturb breaks one part after the other, for some time, and has the ledger restored from a backup
// half-way. At the end everything is whole. It counts what it did.
func (w *world) disturb(d time.Duration) map[string]int {
	done := map[string]int{}
	// Each history has an edge that can't know of a change for longer than anything stale is believed.
	w.cutOff(w.random.IntN(len(w.edges)), blackHole, longestFault)
	done["edge in a black hole"]++
	restored := false
	for end := w.Now() + d; w.Now() < end; {
		if w.Now() > end-d/2 && !restored {
			restored = true
			w.restore()
			done["ledger restored"]++
		}
		name := w.breakSomething(time.Duration(w.random.Int64N(int64(longestFault))))
		done[name]++
		time.Sleep(time.Duration(w.random.IntN(300)) * time.Millisecond)
	}
	for _, p := range append(w.edges, w.writer) {
		p.await("/readyz", http.StatusOK)
	}
	return done
}

// breakSomething breaks a part for some time, and says what it did.
func (w *world) breakSomething(lasts time.Duration) string {
	edge := w.random.IntN(len(w.edges))
	switch w.random.IntN(6) {
	case 0, 1:
		fate := refuses + fate(w.random.IntN(int(fates-refuses)))
		w.cutOff(edge, fate, lasts)
		return []string{refuses: "edge cut off", deaf: "edge not heard", mute: "edge not answered", blackHole: "edge in a black hole"}[fate]
	case 2:
		w.desk.set(mute)
		time.Sleep(lasts)
		w.desk.set(carries)
		return "operators not answered"
	case 3:
		w.halt(w.edges[edge], lasts)
		return "edge stopped"
	case 4:
		w.halt(w.writer, lasts)
		return "writer stopped"
	}
	victim := append(w.edges, w.writer)[w.random.IntN(len(w.edges)+1)]
	victim.Kill()
	time.Sleep(lasts / 4)
	victim.start()
	if victim == w.writer {
		return "writer killed"
	}
	return "edge killed"
}

// cutOff disturbs the network between an edge and the writer.
func (w *world) cutOff(edge int, fate fate, lasts time.Duration) {
	w.links[edge].set(fate)
	time.Sleep(lasts)
	w.links[edge].set(carries)
}

// halt stops a process as it is, and lets it go on later.
func (w *world) halt(p *process, lasts time.Duration) {
	require.NoError(w.t, p.Signal(syscall.SIGSTOP))
	time.Sleep(lasts)
	require.NoError(w.t, p.Signal(syscall.SIGCONT))
}

// restore replaces the ledger by a backup that lacks what clients did for a second, but nothing of
// what operators did: they would repeat it.
func (w *world) restore() {
	for _, p := range append(w.edges, w.writer) {
		p.await("/readyz", http.StatusOK)
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	backup := w.path("backup.db")
	copyLedger(w.t, w.path("ledger.db"), backup)
	time.Sleep(time.Second)
	w.writer.Kill()
	content, err := os.ReadFile(backup)
	require.NoError(w.t, err)
	w.replaceLedger(content)
	args := w.writer.Args
	w.writer.Args = append(args, "--restored")
	w.writer.start()
	w.writer.Args = args
	w.writer.await("/readyz", http.StatusOK)
}
