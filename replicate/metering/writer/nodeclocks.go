package writer

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/replicate/metering/syncproto"
)

const (
	// clockNear is how far the clocks of a node and of the writer may be apart; beyond it a node is not
	// ready.
	clockNear = 5 * time.Second
	// clockHeard is how long a silent node's clock counts.
	clockHeard = time.Minute
)

// nodeClocks estimates the nodes' clocks from their messages. Of two times nobody can know which one is
// right; but when most of the nodes disagree with the writer, the writer's clock is wrong.
type nodeClocks struct {
	now    func() time.Time
	log    *slog.Logger
	began  time.Time // no clock that is set changes the time since then
	mu     sync.Mutex
	byNode map[string]nodeClock
	told   bool // that the clock is wrong
}

type nodeClock struct {
	beyond time.Duration // what it has beyond the time since began
	heard  time.Duration // since began
}

func newNodeClocks(now func() time.Time, log *slog.Logger) *nodeClocks {
	return &nodeClocks{now: now, log: log, began: time.Now(), byNode: map[string]nodeClock{}}
}

// note notes the clock in a message that has just come.
func (c *nodeClocks) note(node string, m syncproto.Message) {
	var millis int64
	switch {
	case m.Hello != nil:
		millis = m.Hello.NowMillis
	case m.Sync != nil:
		millis = m.Sync.NowMillis
	}
	since := time.Since(c.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byNode[node] = nodeClock{time.UnixMilli(millis).Sub(c.began) - since, since}
}

// forget forgets the clock of a node, which is not asked any more.
func (c *nodeClocks) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byNode, node)
}

// ahead returns by how much the writer's clock is ahead of each node heard lately, in ascending order.
func (c *nodeClocks) ahead() []time.Duration {
	since := time.Since(c.began)
	own := c.now().Sub(c.began.Round(0)) - since
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]time.Duration, 0, len(c.byNode))
	for node, clock := range c.byNode {
		if since-clock.heard > clockHeard {
			delete(c.byNode, node)
			continue
		}
		list = append(list, own-clock.beyond)
	}
	slices.Sort(list)
	return list
}

// off returns by how much the writer's clock is ahead of the median node's; ok is false without nodes.
// Of two in the middle, the nearer one counts.
func (c *nodeClocks) off() (by time.Duration, ok bool) {
	list := c.ahead()
	if len(list) == 0 {
		return 0, false
	}
	low, high := list[(len(list)-1)/2], list[len(list)/2]
	if low.Abs() < high.Abs() {
		return low, true
	}
	return high, true
}

// agrees reports whether more than half of the heard nodes have the writer's time.
func (c *nodeClocks) agrees() bool {
	list := c.ahead()
	near := 0
	for _, by := range list {
		if by.Abs() <= clockNear {
			near++
		}
	}
	return 2*near > len(list)
}

// ClockRemark begins the line of readiness that says that the writer's clock differs from the nodes'.
const ClockRemark = "the clock of this machine is "

// wrong says for people that the clock differs from the nodes', or "".
func (c *nodeClocks) wrong() string {
	by, ok := c.off()
	switch {
	case !ok || by.Abs() <= clockNear:
		return ""
	case by > 0:
		return fmt.Sprintf(ClockRemark+"%v ahead of most nodes': set it right", by.Round(time.Second))
	}
	return fmt.Sprintf(ClockRemark+"%v behind most nodes': set it right", -by.Round(time.Second))
}

// tell logs when the clock begins to be wrong and when it is right again.
func (c *nodeClocks) tell() {
	wrong := c.wrong()
	switch {
	case wrong != "" && !c.told:
		c.log.Error("the clocks of writer and nodes differ: these are not ready", "error", wrong)
	case wrong == "" && c.told:
		c.log.Info("the clock is that of most nodes again")
	}
	c.told = wrong != ""
}

var clockDesc = prometheus.NewDesc("regedge_writer_clock_ahead_seconds",
	"By how much the writer's clock is ahead of most nodes', negative when behind; left out while no node was heard for a minute.", nil, nil)

// Describe names the metric.
func (c *nodeClocks) Describe(to chan<- *prometheus.Desc) { to <- clockDesc }

// Collect reads it.
func (c *nodeClocks) Collect(to chan<- prometheus.Metric) {
	if by, ok := c.off(); ok {
		to <- prometheus.MustNewConstMetric(clockDesc, prometheus.GaugeValue, by.Seconds())
	}
}

// ClockAgrees reports whether more than half of the nodes that were heard within a minute, and at least
// one, have the writer's time within 5 s.
func (w *Writer) ClockAgrees() bool { return w.clocks.agrees() }
