package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = `# Head.

=== one
# A comment.
given plan=scale credits=10
client 192.0.2.1
outage writer
> GET /v1/x
> Authorization: Bearer {key}
< 200
< A: b
{
  "data": 1
}
advance 1m0s
times 3
> OPTIONS /v1/x
< 204

=== two
given plan=free credits=0 suspended
> GET /
< 404
`

func TestParseAndFormatAreInverse(t *testing.T) {
	f, err := Parse(strings.NewReader(sample))
	require.NoError(t, err)
	require.Len(t, f.Vectors, 2)
	require.Equal(t, `{"data":1}`, string(f.Vectors[0].Exchanges[0].Body))
	require.Equal(t, 3, f.Vectors[0].Exchanges[1].Times)
	require.Equal(t, 8, f.Vectors[0].Exchanges[0].line, "the line of the request")
	require.Equal(t, sample, string(f.Format()))
}

func TestMalformedFilesAreRefused(t *testing.T) {
	for _, text := range []string{
		"=== x\ngiven credits=1\n", "=== x\ngiven plan=a colour=b\n", "=== x\n< 200\n", "=== x\nnonsense\n",
		"=== x\n> GET /\n< 200\n{broken\n", "=== x\ntimes many\n",
	} {
		_, err := Parse(strings.NewReader(text))
		require.Error(t, err, text)
	}
}

func TestADifferenceNamesOnlyTheLinesThatDiffer(t *testing.T) {
	want := []string{"< 200", "{", `  "a": 1,`, `  "b": 2`, "}"}
	require.Empty(t, difference(want, want))
	require.Equal(t, "-  \"b\": 2\n+  \"b\": 3\n+  \"c\": 4\n",
		difference(want, []string{"< 200", "{", `  "a": 1,`, `  "b": 3`, `  "c": 4`, "}"}))
	require.Equal(t, "-{\n-  \"a\": 1,\n-  \"b\": 2\n-}\n", difference(want, want[:1]))
}
