//go:build !linux && !darwin

package doctor

import "errors"

func space(string) (diskSpace, error) { return diskSpace{}, errors.New("this system is not supported") }
