package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// yardstick is the subject that ratios are given to: native serves the same work.
const yardstick = 1

// printTable prints the medians of each subject's rounds.
func printTable(results []result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "subject\trequests/s\tmin\tmax\tof native\tCPU µs\tp50\tp99\tresident\twithout files\t")
	for _, r := range results {
		rates := r.rates()
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.1f\t%s\t%s\t%.0f MB\t%.0f MB\t\n", r.name,
			r.perSecond(), rates[0], rates[len(rates)-1], r.share(&results[yardstick]),
			r.median(func(o outcome) time.Duration { return o.processor }).Seconds()*1e6,
			r.median(func(o outcome) time.Duration { return o.p50 }).Round(time.Microsecond),
			r.median(func(o outcome) time.Duration { return o.p99 }).Round(10*time.Microsecond),
			float64(r.all)/(1<<20), float64(r.private)/(1<<20))
	}
	w.Flush()
}

// rates are the requests a second of the rounds, sorted.
func (r *result) rates() []float64 {
	var rates []float64
	for _, o := range r.outcomes {
		rates = append(rates, o.perSecond)
	}
	slices.Sort(rates)
	return rates
}

// share is the median of what the rounds gave of a yardstick's rate: those of one round were
// measured next to one another, on the same hour of a machine that others use too.
func (r *result) share(yardstick *result) float64 {
	var shares []float64
	for n, o := range r.outcomes {
		shares = append(shares, o.perSecond/yardstick.outcomes[n].perSecond)
	}
	slices.Sort(shares)
	return middle(shares)
}

func (r *result) perSecond() float64 { return middle(r.rates()) }

func (r *result) median(of func(outcome) time.Duration) time.Duration {
	var values []time.Duration
	for _, o := range r.outcomes {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return middle(values)
}

func middle[T cmp.Ordered](sorted []T) T { return sorted[len(sorted)/2] }
