package generate

import "slices"

// random is SplitMix64 (Steele, Lea, Flood 2014). Its state is one word, so that every row can
// have a generator of its own, and it gives the same numbers in every version of Go.
type random uint64

// Each kind of item has streams of random numbers of its own.
const (
	ofCompany = iota + 1
	ofName
	ofBoard
	ofDirector
	ofLLP
	ofPlaces
	ofWords
	ofOrder
	ofContact
	ofOlder
)

// stream returns the generator of item number i of a kind.
func stream(seed uint64, kind int, i int64) random {
	r := random(seed ^ uint64(kind)<<56)
	r = random(r.next() ^ uint64(i))
	return random(r.next())
}

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// unit is in [0, 1).
func (r *random) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

// below is in [0, n), n > 0. The bias at n << 2^64 does not matter here.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// chance is true with probability p.
func (r *random) chance(p float64) bool { return r.unit() < p }

// skewed is in [0, n), with small numbers more likely: the density at x falls as 1/√x.
func (r *random) skewed(n int) int {
	u := r.unit()
	return int(u * u * float64(n))
}

func pick[T any](r *random, list []T) T { return list[r.below(len(list))] }

// share is a value and its weight among others.
type share[T any] struct {
	value  T
	weight float64
}

// shares draws values by weight.
type shares[T any] struct {
	values []T
	upTo   []float64 // running sum of the weights, scaled to end in 1
}

func newShares[T any](list []share[T]) shares[T] {
	var s shares[T]
	sum := 0.0
	for _, one := range list {
		sum += one.weight
		s.values, s.upTo = append(s.values, one.value), append(s.upTo, sum)
	}
	for i := range s.upTo {
		s.upTo[i] /= sum
	}
	return s
}

func (s *shares[T]) draw(r *random) T { return s.values[s.index(r.unit())] }

// index of the value that covers u, 0 <= u < 1.
func (s *shares[T]) index(u float64) int {
	i, found := slices.BinarySearch(s.upTo, u)
	if found {
		i++
	}
	return min(i, len(s.values)-1)
}
