package testkit

import "slices"

// Median sorts values, at least one, and returns the one in the middle.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
