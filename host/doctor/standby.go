package doctor

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// copyOld is how long ago the ledger's copy may have been found whole: deploy/litestream/litestream.yml has it
// read every 30 s.
const copyOld = 5 * time.Minute

// doShip is what to do about a copy of the ledger that fails.
const doShip = "journalctl -u regedge-litestream says why: the network, the credentials, the disk of the standby or of this machine"

// NoStandby notes that nothing ships the ledger; backup says whether a backup of it is watched.
func (e *Exam) NoStandby(backup bool) {
	if backup {
		e.OK("standby", "there is none: the loss of this machine costs what changed since the last backup")
		return
	}
	e.Soon("standby", "set up one (docs/operations.md, \"A standby for the writer\"), or back the ledger up and set REGEDGE_BACKUP to the file, so that its age is watched",
		"no standby is set up here, and no backup is watched: the loss of this machine may cost all accounts and credits")
}

// Standby checks whether the Litestream with a configuration file ships the ledger, by the metrics that the
// alarms use.
func (e *Exam) Standby(ctx context.Context, configFile string) {
	const what = "standby"
	content, err := os.ReadFile(configFile)
	if err != nil {
		e.Wrong(what, "run this as root; docs/operations.md, \"A standby for the writer\", says what goes into the file", "the configuration of Litestream can't be read: %v", err)
		return
	}
	var config struct {
		Addr string `yaml:"addr"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		e.Wrong(what, "compare it with deploy/litestream/litestream.yml", "%s: %v", configFile, err)
		return
	}
	if config.Addr == "" {
		e.Soon(what, "add addr: 127.0.0.1:9093, which the alarms need, too", "whether the ledger is shipped can't be seen: %s names no address for metrics", configFile)
		return
	}
	address := Dialable(config.Addr)
	if !e.connects(ctx, what, address) {
		return
	}
	a, err := e.ask(ctx, http.MethodGet, "http://"+address+"/metrics", "", true)
	if err != nil {
		e.silent(what, address, err)
		return
	}
	e.shipped(what, readShipping(a.body))
}

// shipping is what the metrics of Litestream say of the ledger.
type shipping struct {
	known   bool      // there are such metrics
	checked bool      // what is at the destination was read, with or without success
	whole   bool      // at the last time it was whole
	at      time.Time // when it was last found whole
	full    bool      // Litestream's own disk is full
}

// shippingMetric is a line of Litestream's metrics, without its labels.
var shippingMetric = regexp.MustCompile(`^(litestream_\w+)(?:\{[^}]*\})? (\S+)$`)

func readShipping(metrics []byte) shipping {
	s := shipping{whole: true}
	for lines := bufio.NewScanner(bytes.NewReader(metrics)); lines.Scan(); {
		found := shippingMetric.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		value, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			continue
		}
		switch found[1] {
		case "litestream_last_validation_success":
			s.known, s.whole = true, s.whole && value == 1
		case "litestream_last_validation_success_timestamp_seconds":
			if at := time.Unix(int64(value), 0); value > 0 && (s.at.IsZero() || at.Before(s.at)) {
				s.at = at
			}
		case "litestream_validation_checks_total":
			s.checked = s.checked || value > 0
		case "litestream_disk_full":
			s.full = s.full || value > 0
		}
	}
	return s
}

// shipped judges what is known of the ledger's copy.
func (e *Exam) shipped(what string, s shipping) {
	age := e.Now().Sub(s.at)
	last := "and was not since Litestream started"
	if !s.at.IsZero() {
		last = "and was last " + days(age) + " ago"
	}
	switch {
	case s.full:
		e.Wrong(what, doFull, "the ledger is not shipped: Litestream's own disk is full")
	case !s.known:
		e.Soon(what, "its configuration needs a validation with an interval, as deploy/litestream/litestream.yml has; just after a start, wait a minute", "Litestream runs, and does not say whether the copy of the ledger is whole")
	case !s.checked:
		e.Soon(what, "wait a minute", "Litestream runs, and has not read the copy of the ledger yet")
	case !s.whole:
		e.Wrong(what, doShip, "the copy of the ledger is not reached or not whole, %s", last)
	case age > copyOld:
		e.Wrong(what, doShip, "the copy of the ledger is not read any more: it was last found whole %s ago", days(age))
	default:
		e.OK(what, "the copy of the ledger was found whole %s ago", days(max(age, 0)))
	}
}
