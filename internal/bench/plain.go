package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
	"regedge/handler/directors"
	"regedge/handler/ident"
	"regedge/replicate/metering/meter"
)

// plain is a hand-written server for company lookups, as a baseline: net/http,
// encoding/json and SQLite, with the statements, fields and headers of an edge. It has no leases,
// no search, no free retries and no isolation. A charge is as durable as an edge's: in the kernel
// before the answer, and synced soon.
type plain struct {
	readers chan *plainReader
	charges chan *plainCharge
	mu      sync.Mutex
	minute  int64
	rates   map[int64]int64 // requests in this minute, by account
	left    map[int64]int64 // credits, by account
}

// plainReader has one statement per database, each on a connection of its own.
type plainReader struct{ access, company *sqlite3.Stmt }

type plainCharge struct {
	id      string
	account int64
	done    chan error
}

type plainDirector struct {
	DIN         string  `json:"din"`
	Name        string  `json:"name"`
	Designation *string `json:"designation"`
	Appointed   *string `json:"appointment_date"`
}

type plainMeta struct {
	RequestID string `json:"request_id"`
	Credits   int64  `json:"credits_remaining"`
	Sandbox   bool   `json:"sandbox"`
}

// plainCompany has pointers only for fields that a row may lack.
type plainCompany struct {
	CIN            string  `json:"cin"`
	Name           string  `json:"company_name"`
	RegistrationNo string  `json:"registration_no"`
	Status         *string `json:"status"`
	Incorporated   *string `json:"incorporation_date"`
	Category       *string `json:"category"`
	SubCategory    *string `json:"sub_category"`
	Class          *string `json:"class"`
	ROC            *string `json:"roc"`
	Authorized     *int64  `json:"authorized_capital"`
	PaidUp         *int64  `json:"paid_up_capital"`
	Listed         *bool   `json:"listed"`
	Activity       *string `json:"activity"`
	State          *string `json:"state"`
	District       *string `json:"district"`
	Pincode        *string `json:"pincode"`
	Contact        struct {
		Address *string `json:"address"`
		Email   *string `json:"email"`
		Phone   *string `json:"phone"`
		Website *string `json:"website"`
	} `json:"contact"`
	Directors   []plainDirector `json:"directors"`
	LastUpdated time.Time       `json:"last_updated"`
}

const (
	plainReaders = 8 // concurrent reads
	plainCredits = 1 << 40
	plainExposed = "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-Credits-Remaining, X-Registry-Release"
)

var errPlain = errors.New("not found")

func newPlain(access, registry, charges string) (*plain, error) {
	p := &plain{make(chan *plainReader, plainReaders), make(chan *plainCharge, 1024), sync.Mutex{}, 0, map[int64]int64{}, map[int64]int64{}}
	for range plainReaders {
		a, err := plainStatement(access, handler.Statements()["access"])
		c, failed := plainStatement(registry, handler.Statements()["company"])
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		p.readers <- &plainReader{a, c}
	}
	db, err := sqlite3.Open(charges)
	if err != nil {
		return nil, err
	}
	insert, err := (*sqlite3.Stmt)(nil), db.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
		CREATE TABLE IF NOT EXISTS charge (id TEXT NOT NULL PRIMARY KEY, account INTEGER NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID`)
	if err == nil {
		insert, _, err = db.Prepare(`INSERT INTO charge (id, account, at) VALUES (?1, ?2, ?3)`)
	}
	go p.commit(db, insert)
	go syncEvery(charges+"-wal", meter.DefaultJournalSync)
	return p, err
}

func plainStatement(path, sql string) (statement *sqlite3.Stmt, err error) {
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
	if err == nil {
		statement, _, err = db.Prepare(sql)
	}
	return statement, err
}

// commit writes the queued charges in one transaction.
func (p *plain) commit(db *sqlite3.Conn, insert *sqlite3.Stmt) {
	for first := range p.charges {
		group := []*plainCharge{first}
		for len(p.charges) > 0 {
			group = append(group, <-p.charges)
		}
		tx, err := db.Begin(), error(nil)
		for _, c := range group {
			err = errors.Join(err, insert.BindText(1, c.id), insert.BindInt64(2, c.account), insert.BindInt64(3, time.Now().UnixMilli()), insert.Exec())
		}
		tx.End(&err)
		for _, c := range group {
			c.done <- err
		}
	}
}

func syncEvery(path string, pause time.Duration) {
	for range time.Tick(pause) {
		if file, err := os.Open(path); err == nil {
			_, _ = file.Sync(), file.Close()
		}
	}
}

// admit counts a request, and returns its account's remaining rate and credits.
func (p *plain) admit(account, perMinute, minute int64) (rate, credits int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if minute != p.minute {
		p.minute = minute
		clear(p.rates)
	}
	if _, known := p.left[account]; !known {
		p.left[account] = plainCredits
	}
	p.rates[account]++
	p.left[account]--
	return perMinute - p.rates[account], p.left[account]
}

// authenticate returns the account of a key, and its plan's rate.
func (r *plainReader) authenticate(key string) (account, perMinute int64, err error) {
	s, hash := r.access, ident.Hash(key)
	defer s.Reset()
	if err := s.BindBlob(1, hash[:]); err != nil || !s.Step() {
		return 0, 0, errors.Join(errPlain, err, s.Err())
	}
	return s.ColumnInt64(1), s.ColumnInt64(4), nil
}

// nullable returns a column's value, nil for NULL.
func nullable[T any](s *sqlite3.Stmt, n int, of func(int) T) *T {
	if s.ColumnType(n) == sqlite3.NULL {
		return nil
	}
	return new(of(n))
}

// read reads a company, and the current release.
func (r *plainReader) read(cin string) (c plainCompany, release string, err error) {
	s := r.company
	defer s.Reset()
	err = errors.Join(s.BindText(1, cin), s.BindBool(2, true), s.BindBool(3, true), s.BindInt64(4, ident.CINNumber(cin)))
	if err != nil || !s.Step() || s.ColumnType(1) == sqlite3.NULL {
		return c, "", errors.Join(errPlain, err, s.Err())
	}
	c.CIN, c.Name, c.RegistrationNo = s.ColumnText(1), s.ColumnText(2), ident.RegistrationNumber(cin)
	for n, to := range [...]**string{
		3: &c.Status, 4: &c.Incorporated, 5: &c.Category, 6: &c.SubCategory, 7: &c.Class, 8: &c.ROC, 12: &c.Activity, 13: &c.State,
		14: &c.District, 15: &c.Pincode, 16: &c.Contact.Address, 17: &c.Contact.Email, 18: &c.Contact.Phone, 19: &c.Contact.Website,
	} {
		if to != nil {
			*to = nullable(s, n, s.ColumnText)
		}
	}
	c.Authorized, c.PaidUp, c.Listed = nullable(s, 9, s.ColumnInt64), nullable(s, 10, s.ColumnInt64), nullable(s, 11, s.ColumnBool)
	c.LastUpdated, c.Directors = time.Unix(s.ColumnInt64(21), 0).UTC(), []plainDirector{}
	for d, rest, ok := directors.Next(s.ColumnText(20)); ok; d, rest, ok = directors.Next(rest) {
		made := plainDirector{DIN: d.DIN, Name: d.Name}
		if d.Designation != "" {
			made.Designation = &d.Designation
		}
		if d.Appointed != "" {
			made.Appointed = &d.Appointed
		}
		c.Directors = append(c.Directors, made)
	}
	return c, s.ColumnText(0), nil
}

func (p *plain) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/companies/{cin}", p.lookUp)
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // it is ready
	return mux
}

func (p *plain) lookUp(w http.ResponseWriter, r *http.Request) {
	cin, ok := ident.CIN(r.PathValue("cin"))
	key, present := ident.Bearer(r.Header["Authorization"])
	if !ok || !present || !ident.ValidKey(key) {
		http.Error(w, "not a lookup", http.StatusBadRequest)
		return
	}
	second, id := time.Now().Unix(), rand.Text()
	reader := <-p.readers
	account, perMinute, err := reader.authenticate(key)
	company, release, failed := reader.read(cin)
	p.readers <- reader
	if err := errors.Join(err, failed); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	rate, credits := p.admit(account, perMinute, second/60)
	charge := &plainCharge{id, account, make(chan error, 1)}
	p.charges <- charge
	if err := <-charge.done; err != nil || rate < 0 || credits < 0 {
		http.Error(w, "not charged", http.StatusServiceUnavailable)
		return
	}
	body, err := json.Marshal(map[string]any{"data": &company, "meta": &plainMeta{id, credits, false}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, field := range [...][2]string{
		{"Content-Type", "application/json"}, {"Content-Length", strconv.Itoa(len(body))}, {"X-Request-Id", id},
		{"Cache-Control", "private, no-store"}, {"X-Content-Type-Options", "nosniff"}, {"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Expose-Headers", plainExposed}, {"X-Registry-Release", release},
		{"Ratelimit-Limit", strconv.FormatInt(perMinute, 10)}, {"Ratelimit-Remaining", strconv.FormatInt(rate, 10)},
		{"Ratelimit-Reset", strconv.FormatInt(60-second%60, 10)}, {"X-Credits-Remaining", strconv.FormatInt(credits, 10)},
	} {
		w.Header()[field[0]] = []string{field[1]}
	}
	_, _ = w.Write(body)
}
