package ident

import (
	stdcrc32 "hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzChecksumIsThatOfTheStandard(f *testing.F) {
	f.Add("")
	f.Add("123456789")
	f.Add("reg_live_\x00\xff\x80é")
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, stdcrc32.ChecksumIEEE([]byte(text)), crc32(text))
	})
}
