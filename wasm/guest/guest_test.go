package main

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.bytecodealliance.org/cm"

	"regedge/handler"
	"regedge/wasm/bindings/fermyon/spin/sqlite"
	"regedge/wasm/bindings/wasi/http/types"
)

func TestClientAddr(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   string
	}{
		{"is empty when the host says nothing", nil, ""},
		{"drops the port of IPv4", []string{"192.0.2.7:50123"}, "192.0.2.7"},
		{"takes IPv4 without a port", []string{"192.0.2.7"}, "192.0.2.7"},
		{"drops the port and brackets of IPv6", []string{"[2001:db8::7]:50123"}, "2001:db8::7"},
		{"takes IPv6 without a port", []string{"2001:db8::7"}, "2001:db8::7"},
		{"drops the zone of IPv6", []string{"fe80::7%eth0"}, "fe80::7"},
		{"drops the zone of IPv6 with a port", []string{"[fe80::7%eth0]:50123"}, "fe80::7"},
		{"takes the last value, which is the host's", []string{"198.51.100.1:1", "192.0.2.7:2"}, "192.0.2.7"},
		{"is empty for an empty value", []string{""}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, clientAddr(test.values))
		})
	}
}

func FuzzClientAddr(f *testing.F) {
	for _, seed := range []string{"192.0.2.7:80", "[::1]:80", "::1", "[", ":", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := clientAddr([]string{value}); !strings.Contains(value, got) {
			t.Errorf("clientAddr(%q) = %q, which is not part of it", value, got)
		}
	})
}

func TestSplitURL(t *testing.T) {
	for _, test := range []struct{ name, url, scheme, authority string }{
		{"http", "http://127.0.0.1:8090", "HTTP", "127.0.0.1:8090"},
		{"https", "https://meter.example", "HTTPS", "meter.example"},
		{"a slash at the end", "http://meter.example:1/", "HTTP", "meter.example:1"},
		{"IPv6", "http://[::1]:8090", "HTTP", "[::1]:8090"},
	} {
		t.Run("takes "+test.name, func(t *testing.T) {
			scheme, authority, ok := splitURL(test.url)
			require.True(t, ok)
			require.Equal(t, test.scheme, scheme.String())
			require.Equal(t, test.authority, authority)
		})
	}
	for _, url := range []string{"", "http://", "http:///", "meter.example:1", "ftp://meter.example", "http://meter.example/path"} {
		t.Run("refuses "+url, func(t *testing.T) {
			_, _, ok := splitURL(url)
			require.False(t, ok)
		})
	}
}

func TestMethod(t *testing.T) {
	for want, of := range map[string]types.Method{
		"GET": types.MethodGet(), "HEAD": types.MethodHead(), "POST": types.MethodPost(), "PUT": types.MethodPut(), "DELETE": types.MethodDelete(),
		"CONNECT": types.MethodConnect(), "OPTIONS": types.MethodOptions(), "TRACE": types.MethodTrace(), "PATCH": types.MethodPatch(),
	} {
		require.Equal(t, want, method(of))
	}
	require.Equal(t, "BREW", method(types.MethodOther("BREW")))
}

func TestResult(t *testing.T) {
	answer := func(columns int, rows ...[]sqlite.Value) *sqlite.QueryResult {
		results := make([]sqlite.RowResult, len(rows))
		for i, row := range rows {
			results[i].Values = cm.ToList(row)
		}
		return &sqlite.QueryResult{Columns: cm.ToList(make([]string, columns)), Rows: cm.ToList(results)}
	}
	t.Run("converts every kind of value", func(t *testing.T) {
		got, err := result(answer(2,
			[]sqlite.Value{sqlite.ValueInteger(-7), sqlite.ValueText("seven")},
			[]sqlite.Value{sqlite.ValueNull(), sqlite.ValueBlob(cm.ToList([]byte{0, 255}))}))
		require.NoError(t, err)
		require.Equal(t, &handler.Result{Columns: 2, Values: []handler.Value{
			{Kind: handler.Integer, Int: -7}, {Kind: handler.Text, Text: "seven"},
			{Kind: handler.Null}, {Kind: handler.Blob, Text: "\x00\xff"},
		}}, got)
	})
	t.Run("converts a result without rows", func(t *testing.T) {
		got, err := result(answer(3))
		require.NoError(t, err)
		require.Zero(t, got.Rows())
	})
	t.Run("refuses a row of another length", func(t *testing.T) {
		_, err := result(answer(2, []sqlite.Value{sqlite.ValueNull()}))
		require.ErrorIs(t, err, errShape)
	})
	t.Run("refuses a kind that the schemas do not use", func(t *testing.T) {
		_, err := result(answer(1, []sqlite.Value{sqlite.ValueReal(0.5)}))
		require.ErrorIs(t, err, errShape)
	})
}

// TestBlocksForTheHost: a new one is aligned, one that grows keeps its content, and none is moved to shrink.
func TestBlocksForTheHost(t *testing.T) {
	require.Equal(t, uintptr(8), uintptr(cabiRealloc(nil, 0, 8, 0)), "no memory, at an aligned address")
	block := cabiRealloc(nil, 0, 8, 16)
	require.Zero(t, uintptr(block)%8)
	copy(unsafe.Slice((*byte)(block), 16), "0123456789abcdef")
	require.Equal(t, block, cabiRealloc(block, 16, 8, 16))
	require.Equal(t, block, cabiRealloc(block, 16, 8, 3))
	require.Equal(t, block, cabiRealloc(block, 16, 8, 0))
	grown := cabiRealloc(block, 16, 8, 5000)
	require.NotEqual(t, block, grown)
	require.Equal(t, "0123456789abcdef"+strings.Repeat("\x00", 4984), string(unsafe.Slice((*byte)(grown), 5000)))
}

func TestErrorsNameTheDatabase(t *testing.T) {
	for want, err := range map[string]sqlite.Error{
		"query database registry: disk I/O error":   sqlite.ErrorIO("disk I/O error"),
		"query database registry: no-such-database": sqlite.ErrorNoSuchDatabase(),
	} {
		require.EqualError(t, storeError("registry", "query", &err), want)
	}
}

// TestFieldsKeepTheirBytes, also those that are no text.
func TestFieldsKeepTheirBytes(t *testing.T) {
	f := newField("X-A", "a\x00\xff")
	require.Equal(t, "X-A", string(f.F0))
	require.Equal(t, "a\x00\xff", fieldText(f.F1))
	require.Empty(t, fieldText(newField("X-A", "").F1))
}

func TestParameter(t *testing.T) {
	integer := parameter(&handler.Value{Kind: handler.Integer, Int: 7})
	require.Equal(t, int64(7), *integer.Integer())
	text := parameter(&handler.Value{Kind: handler.Text, Text: "é"})
	require.Equal(t, "é", *text.Text())
	blob := parameter(&handler.Value{Kind: handler.Blob, Text: "\x00\xff"})
	require.Equal(t, []byte{0, 255}, blob.Blob().Slice())
	null := parameter(&handler.Value{})
	require.True(t, null.Null())
}
