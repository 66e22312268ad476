//go:build !linux && !darwin

package disk

import "errors"

// Of is not supported on this system.
func Of(string) (Space, error) { return Space{}, errors.New("this system is not supported") }
