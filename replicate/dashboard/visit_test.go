package dashboard

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"billing", "a\r\nb", "\u202ex\u2066", "\xff\x00", "क्\u200dष", "日本語"} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), 1000)
		kept := printable(text, limit)
		require.True(t, writer.Printable(kept))
		require.LessOrEqual(t, utf8.RuneCountInString(kept), limit)
		require.Equal(t, kept, printable(kept, limit))
		if writer.Printable(text) && utf8.RuneCountInString(text) <= limit {
			require.Equal(t, text, kept)
		}
	})
}
