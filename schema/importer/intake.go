package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"regedge/schema/extsort"
	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

// stage says which tables are complete once all files up to a rank have been read.
type stage struct {
	lastRank source.Rank
	names    []*record.Table // their names can be indexed
	tables   []*record.Table // they can be written
}

// usualStages are ordered by rank, their tables in the order of writing: each table is written
// while the files of later ranks are read.
var usualStages = []stage{
	{source.RankContacts, record.Searched, record.Searched},
	{source.RankDirectors, nil, []*record.Table{record.DirectorTable}},
	{source.RankAppointments, nil, []*record.Table{record.AppointmentTable}},
	{source.RankPartners, nil, []*record.Table{record.PartnerTable}},
}

// emptyStages are for a registry without companies: companies come after directors and
// appointments, so that each company is written once, with its directors list.
var emptyStages = []stage{
	{source.RankContacts, record.Searched, nil},
	{source.RankDirectors, nil, []*record.Table{record.DirectorTable}},
	{source.RankAppointments, nil, []*record.Table{record.AppointmentTable, record.CompanyTable, record.LLPTable}},
	{source.RankPartners, nil, []*record.Table{record.PartnerTable}},
}

// intake is the reading half of a run: one goroutine parses, another sorts. The next stage is
// read while the previous one is written.
type intake struct {
	run      *run
	stages   []stage
	messages chan message
	complete chan ordered  // to be written, in this order; closed at the end
	told     chan struct{} // has one element when there is progress to report
	stop     chan struct{} // closed to end both goroutines
	halt     func()        // closes stop
	wait     sync.WaitGroup
	parsing  error // valid after wait
	ordering error
}

// message passes from the parser to the sorter: a batch, or the end of a stage.
type message struct {
	batch *source.Batch
	endOf *stage
}

// ordered holds all records of a table, sorted.
type ordered struct {
	table  *record.Table
	sorter *extsort.Sorter
}

var errStopped = errors.New("stopped")

// newIntake makes the channels; begin starts the goroutines.
func newIntake(r *run) *intake {
	stop := make(chan struct{})
	return &intake{
		run: r, messages: make(chan message, 1), complete: make(chan ordered, len(record.Tables)),
		told: make(chan struct{}, 1), stop: stop, halt: sync.OnceFunc(func() { close(stop) }),
	}
}

func (k *intake) begin() {
	k.stages = usualStages
	if k.run.store.IsFresh(record.CompanyTable) {
		k.stages = emptyStages
	}
	k.wait.Go(func() {
		defer close(k.messages)
		k.parsing = k.parse()
	})
	k.wait.Go(func() {
		defer close(k.complete)
		if k.ordering = k.order(); k.ordering != nil {
			k.halt()
		}
	})
}

// end stops the goroutines and returns the first error.
func (k *intake) end() error {
	k.halt()
	k.wait.Wait()
	for left := range k.complete {
		left.sorter.Close()
	}
	for _, err := range []error{k.ordering, k.parsing} {
		if err != nil && !errors.Is(err, errStopped) {
			return err
		}
	}
	return nil
}

// send hands a batch to the sorter, in the parser's goroutine.
func (k *intake) send(b *source.Batch) error {
	return k.pass(message{batch: b})
}

func (k *intake) pass(m message) error {
	select {
	case k.messages <- m:
		return nil
	case <-k.stop:
		return errStopped
	}
}

// parse reads the files by rank, and signals the end of each stage.
func (k *intake) parse() error {
	sources := k.run.sources
	order := make([]int, len(sources))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) source.Rank { return sources[i].Format.Rank }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	for number, stage := range k.stages {
		for len(order) > 0 && rank(order[0]) <= stage.lastRank {
			if err := k.run.read(order[0]); err != nil {
				return fmt.Errorf("%s: %w", sources[order[0]].Name, err)
			}
			order = order[1:]
		}
		if err := k.pass(message{endOf: &k.stages[number]}); err != nil {
			return err
		}
	}
	return nil
}

// order adds the records of each batch to the sorters, and everything else to the report.
func (k *intake) order() error {
	gathered := merge.NewSorters(k.run.config.Registry)
	defer gathered.Close()
	for m := range k.messages {
		if m.endOf != nil {
			if err := k.handOver(gathered, m.endOf); err != nil {
				return err
			}
			continue
		}
		b := m.batch
		for i := range b.Records {
			if err := gathered.Add(&b.Records[i]); err != nil {
				return fmt.Errorf("sort %s: %w", k.run.sources[b.File].Name, err)
			}
		}
		k.run.tally.read(b)
		select {
		case k.told <- struct{}{}:
		default:
		}
	}
	return nil
}

// handOver hands the tables of a stage to the writer.
func (k *intake) handOver(gathered *merge.Sorters, done *stage) error {
	if done.names != nil && k.run.store.BuildsIndex() {
		lists, err := gathered.Read(done.names)
		if err != nil {
			return fmt.Errorf("read the names: %w", err)
		}
		k.run.store.StartIndex(lists, k.run.config.AsOf)
	}
	for _, t := range done.tables {
		if sorter := gathered.Take(t); sorter != nil {
			k.complete <- ordered{t, sorter} // its buffer has room for every table
		}
	}
	return nil
}

// next waits for the next complete table, and reports progress meanwhile. It returns false
// after the last.
func (k *intake) next(ctx context.Context) (ordered, bool, error) {
	for {
		select {
		case <-ctx.Done():
			return ordered{}, false, ctx.Err()
		case list, more := <-k.complete:
			return list, more, nil
		case <-k.told:
			k.run.tally.tell()
		}
	}
}

// errChanged is the error of a file that is of another format when it is read. Its records might come after their stage, and be lost.
var errChanged = errors.New("has changed since this import began: run the same import again")

func (r *run) read(i int) error {
	s := r.sources[i]
	defer s.Close()
	if !s.Once {
		was := s.Format
		if err := r.open(i); err != nil {
			return err
		}
		if s.Format != was {
			return errChanged
		}
	}
	return s.Read(r.config.AsOf)
}
