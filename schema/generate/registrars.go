package generate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// companies writes the companies, with their directors and contacts: one file of format
// A for each Registrar, and one of format B.
func (g *generator) companies(ctx context.Context) error {
	counts := stateCounts(g.Companies)
	order := make([]int, len(states))
	for i := range order {
		order[i] = i
	}
	registrar := func(i int) string { return states[i].value.registrar }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(registrar(a), registrar(b)) })
	for len(order) > 0 {
		n := 1
		for n < len(order) && registrar(order[n]) == registrar(order[0]) {
			n++
		}
		if err := g.registrar(ctx, registrar(order[0]), order[:n], counts); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// stateCounts divides the companies among the states. The first also gets the rounding remainder.
func stateCounts(companies int) []int {
	counts, left := make([]int, len(states)), companies
	sum := 0.0
	for _, s := range states {
		sum += s.weight
	}
	for i, s := range states {
		counts[i] = int(float64(companies) * s.weight / sum)
		left -= counts[i]
	}
	counts[0] += left
	return counts
}

func (g *generator) registrar(ctx context.Context, name string, of []int, counts []int) error {
	file := strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".csv"
	current, err := g.create("companies-"+file, formatA, "\n")
	if err != nil {
		return err
	}
	older, err := g.create(OlderPrefix+file, formatB, "\r\n")
	if err != nil {
		return err
	}
	for _, state := range of {
		if err := g.state(ctx, state, counts[state], current, older); err != nil {
			return err
		}
	}
	return errors.Join(g.complete(current, lastDay), g.complete(older, olderDay))
}

// state writes the companies of one state, in an order that looks random.
func (g *generator) state(ctx context.Context, state, count int, current, older *output) error {
	step := coprime(count)
	for k := range count {
		i := g.done
		if err := g.report(ctx); err != nil {
			return err
		}
		c := g.company(i, state, 1+k*step%count, count)
		r := stream(g.seed, ofOlder, i)
		c.writeA(current, r)
		r.next()
		if c.date <= olderDay && r.chance(g.OlderShare) {
			c.writeB(older, r)
		}
		g.boards.seat(i, c.cin, c.kind.form, c.day)
		g.contact(i, c.cin)
	}
	return nil
}

// coprime returns a step that visits every number below n once, each far from the last.
func coprime(n int) int {
	for step := int(float64(n) * 0.618); step > 1; step-- {
		a, b := n, step
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
	}
	return 1
}

func (g *generator) contact(i int64, cin string) {
	r := stream(g.seed, ofContact, i)
	if !r.chance(0.2) {
		return
	}
	email, phone, website := "", "", ""
	if r.chance(0.9) {
		email = "made-up-" + cin[15:] + "@" + strings.ToLower(cin[6:8]) + ".example.com"
	}
	if r.chance(0.6) {
		phone = "+910" + padded(r.below(1_000_000_000), 9)
	}
	if r.chance(0.3) {
		website = "https://www.example.com/" + strconv.FormatInt(i, 36)
	}
	g.contacts.fields(cin, email, phone, website)
	g.contacts.finish()
}
