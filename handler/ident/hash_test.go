package ident_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
)

func TestHashIsSHA256AtEveryLength(t *testing.T) {
	text := strings.Repeat("reg_live_0123456789", 20)
	for n := range len(text) {
		require.Equal(t, sha256.Sum256([]byte(text[:n])), ident.Hash(text[:n]), "%d bytes", n)
	}
}

func FuzzHashIsSHA256(f *testing.F) {
	f.Add("")
	f.Add("abc")
	f.Add(strings.Repeat("\xff", 119))
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, sha256.Sum256([]byte(text)), ident.Hash(text))
	})
}
