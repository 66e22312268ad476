package doctor

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	var config shippingConfig
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
	s := readShipping(a.body)
	if directory := config.directory(); directory != "" && s.whole && !s.full && !e.arrives(ctx, what, directory, s.newest) {
		return
	}
	e.shipped(what, s)
}

// shippingConfig is what Litestream's configuration says of where the ledger goes.
type shippingConfig struct {
	Addr string `yaml:"addr"`
	DBs  []struct {
		Replica struct {
			Type string `yaml:"type"`
			Path string `yaml:"path"`
		} `yaml:"replica"`
	} `yaml:"dbs"`
}

// directory is the directory that the ledger is shipped to, empty if it goes elsewhere. Litestream counts what it
// sends elsewhere (the alarm RegedgeLedgerNotShipped), but not what it writes to a directory.
func (c *shippingConfig) directory() string {
	if len(c.DBs) != 1 || c.DBs[0].Replica.Type != "file" || strings.Contains(c.DBs[0].Replica.Path, "$") {
		return ""
	}
	return c.DBs[0].Replica.Path
}

// arrives checks that a directory has a copy to restore from and receives the ledger's transactions up to newest.
// A directory that can't be read is not judged here: Litestream's own reading of it fails, too.
func (e *Exam) arrives(ctx context.Context, what, directory string, newest uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	for {
		there, err := transactionsIn(directory)
		switch {
		case err != nil || there.first <= 1 && there.last >= newest:
			return true
		case there.first > 1:
			e.Wrong(what, "is the disk mounted there? When it is, systemctl restart regedge-litestream", "%s has no beginning of the ledger to restore from, only what was added to it", directory)
			return false
		}
		select {
		case <-ctx.Done():
			e.Wrong(what, doShip, "the ledger changes, and %s does not get it: what is there is whole, and old", directory)
			return false
		case <-time.After(arrivePause):
		}
	}
}

// arrivePause is the time between two looks at a directory.
const arrivePause = 50 * time.Millisecond

// shippedFile matches the name of a file of transactions: the first and the last one, in hexadecimal digits.
var shippedFile = regexp.MustCompile(`^([0-9a-f]{16})-([0-9a-f]{16})\.ltx$`)

// transactions are the first and the last transaction in a directory, 0 for none. A snapshot begins at
// transaction 1.
type transactions struct{ first, last uint64 }

func transactionsIn(directory string) (t transactions, err error) {
	levels := filepath.Join(directory, "ltx")
	folders, err := os.ReadDir(levels)
	if err != nil {
		return t, err
	}
	for _, folder := range folders {
		files, err := os.ReadDir(filepath.Join(levels, folder.Name()))
		if err != nil {
			return t, err
		}
		for _, file := range files {
			if found := shippedFile.FindStringSubmatch(file.Name()); found != nil {
				first, _ := strconv.ParseUint(found[1], 16, 64) // of 16 hexadecimal digits
				last, _ := strconv.ParseUint(found[2], 16, 64)
				if t.first == 0 || first < t.first {
					t.first = first
				}
				t.last = max(t.last, last)
			}
		}
	}
	return t, nil
}

// shipping is what the metrics of Litestream say of the ledger.
type shipping struct {
	known   bool      // there are such metrics
	checked bool      // what is at the destination was read, with or without success
	whole   bool      // at the last time it was whole
	at      time.Time // when it was last found whole
	full    bool      // Litestream's own disk is full
	newest  uint64    // the ledger's last transaction that Litestream has read
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
		case "litestream_txid":
			s.newest = uint64(max(value, 0))
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
