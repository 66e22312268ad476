package ident

import (
	"crypto/rand"
	"crypto/sha256"
	stdcrc32 "hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	random := func(p []byte) { rand.Read(p) }
	seen := map[string]bool{}
	for range 200 {
		key := NewKey(random)
		require.True(t, ValidKey(key), key)
		require.False(t, seen[key])
		seen[key] = true
		require.Len(t, KeyShown(key), ShownLength)
	}
	key := NewKey(random)
	t.Run("one wrong character is detected", func(t *testing.T) {
		for i := len(LivePrefix); i < len(key); i++ {
			wrong := []byte(key)
			wrong[i] = base62[(strings.IndexByte(base62, wrong[i])+1)%62]
			require.False(t, ValidKey(string(wrong)), "character %d", i)
		}
	})
	t.Run("a checksum in capitals is another", func(t *testing.T) {
		key := NewKey(func(p []byte) { clear(p) })
		require.False(t, ValidKey(strings.Replace(key, "31Op7", "31OP7", 1)))
	})
	for _, in := range []string{"", SandboxKey, key[1:], key + "0", strings.ToUpper(key), key[:len(key)-1] + "é"} {
		require.False(t, ValidKey(in), in)
	}
	t.Run("fixed vector", func(t *testing.T) {
		key := NewKey(func(p []byte) { clear(p) })
		require.Equal(t, "reg_live_00000000000000000000000000000000031Op7", key)
	})
	t.Run("other characters are refused under a correct checksum", func(t *testing.T) {
		for _, c := range "-_ .:@[`{/\x00\x7f" {
			body := LivePrefix + strings.Repeat("a", 31) + string(c)
			require.False(t, ValidKey(body+checksum(body)), "%q", c)
		}
		body := LivePrefix + "azAZ09" + strings.Repeat("m", 26)
		require.True(t, ValidKey(body+checksum(body)))
	})
	t.Run("every character is as likely as another", func(t *testing.T) {
		key := NewKey(func(p []byte) {
			for i := range p {
				p[i] = byte(240 + i%16) // those from 248 on would come round again
			}
		})
		require.Equal(t, strings.Repeat("stuvwxyz", 4), key[len(LivePrefix):KeyLength-checksumLength])
	})
}

func TestBearer(t *testing.T) {
	for _, c := range []struct {
		headers []string
		key     string
		present bool
	}{
		{nil, "", false},
		{[]string{""}, "", false},
		{[]string{"Bearer"}, "", false},
		{[]string{"Bearer "}, "", false},
		{[]string{"Bearer k"}, "k", true},
		{[]string{"bearer   k "}, "k", true},
		{[]string{"\tBearer k\t"}, "k", true},
		{[]string{"Basic k"}, "", true},
		{[]string{"k"}, "", true},
		{[]string{"Bearer k", "Bearer k"}, "", true},
	} {
		key, present := Bearer(c.headers)
		require.Equal(t, c.present, present, "%q", c.headers)
		require.Equal(t, c.key, key, "%q", c.headers)
	}
}

func FuzzChecksumIsCRC32(f *testing.F) {
	f.Add("")
	f.Add("123456789")
	f.Add("reg_live_\x00\xff\x80é")
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, stdcrc32.ChecksumIEEE([]byte(text)), crc32(text))
	})
}

func TestHashIsSHA256AtEveryLength(t *testing.T) {
	text := strings.Repeat("reg_live_0123456789", 20)
	for n := range len(text) {
		require.Equal(t, sha256.Sum256([]byte(text[:n])), Hash(text[:n]), "%d bytes", n)
	}
}

func FuzzHashIsSHA256(f *testing.F) {
	f.Add("")
	f.Add("abc")
	f.Add(strings.Repeat("\xff", 119))
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, sha256.Sum256([]byte(text)), Hash(text))
	})
}
