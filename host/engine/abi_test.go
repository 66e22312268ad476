package engine

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// idleInstance is an instance of the hostile guest with a request begun.
func idleInstance(t *testing.T) *instance {
	t.Helper()
	e := newEngine(t, hostileConfig(t, newLedger()))
	i, err := e.acquire(t.Context())
	require.NoError(t, err)
	i.steps.Set(DefaultStepLimit)
	i.begin(t.Context(), time.Minute, i.reserved, lookup("/o", ""), &handler.Response{})
	t.Cleanup(func() {
		i.end()
		e.release(context.Background(), i, false)
	})
	return i
}

func TestResultIsLaidOutAsTheCanonicalABISays(t *testing.T) {
	i := idleInstance(t)
	r := &handler.Result{Columns: 3, Values: []handler.Value{
		{Kind: handler.Integer, Int: -2}, {Kind: handler.Text, Text: "ab\xffc"}, {},
		{Kind: handler.Blob, Text: "\x00\xff"}, {Kind: handler.Text}, {Kind: handler.Integer, Int: 1 << 40},
	}}
	rows, columns := i.lowerResult(r)
	names := i.bytes(columns, 24)
	require.Equal(t, make([]byte, 24), names)

	read := func(row, column uint32) (which byte, content uint64) {
		list := i.bytes(rows+row*8, 8)
		require.Equal(t, uint32(3), get32(list, 4))
		v := i.list(get32(list, 0), 3, valueSize, 8)[column*valueSize:]
		return v[0], get64(v, 8)
	}
	str := func(content uint64) string { return string(i.bytes(uint32(content), uint32(content>>32))) }

	which, content := read(0, 0)
	require.Equal(t, []any{byte(valueInteger), int64(-2)}, []any{which, int64(content)})
	which, content = read(0, 1)
	require.Equal(t, []any{byte(valueText), "ab\uFFFDc"}, []any{which, str(content)})
	which, _ = read(0, 2)
	require.Equal(t, byte(valueNull), which)
	which, content = read(1, 0)
	require.Equal(t, []any{byte(valueBlob), "\x00\xff"}, []any{which, str(content)})
	which, content = read(1, 1)
	require.Equal(t, []any{byte(valueText), uint64(0)}, []any{which, content})
	which, content = read(1, 2)
	require.Equal(t, []any{byte(valueInteger), uint64(1 << 40)}, []any{which, content})
}

func TestParametersOfEveryKindAreRead(t *testing.T) {
	i := idleInstance(t)
	const list, text = 65536, 65536 + 256
	copy(i.bytes(text, 8), "a\xc3\xa9\x00")
	put := func(n int, which byte, content uint64) {
		v := i.bytes(list+uint32(n)*valueSize, valueSize)
		v[0] = which
		put64(v, 8, content)
	}
	put(0, valueInteger, 1<<63)
	put(1, valueText, pack(text, 3))
	put(2, valueBlob, pack(text, 4))
	put(3, valueNull, 7)
	i.liftParameters(list, 4)
	require.Equal(t, []handler.Value{
		{Kind: handler.Integer, Int: -1 << 63}, {Kind: handler.Text, Text: "aé"},
		{Kind: handler.Blob, Text: "aé\x00"}, {},
	}, i.parameters)

	put(0, valueText, pack(text+2, 1))
	require.PanicsWithError(t, "string is not UTF-8", func() { i.liftParameters(list, 1) })
	require.PanicsWithError(t, "over 64 parameters", func() { i.liftParameters(list, maxParameters+1) })
}

// FuzzLift passes arbitrary pointers and lengths to the host. Each gives a view inside the guest's memory
// or a trap.
func FuzzLift(f *testing.F) {
	f.Add(uint32(0), uint32(0))
	f.Add(uint32(131071), uint32(2))
	f.Add(^uint32(0), ^uint32(0))
	f.Add(uint32(4), uint32(0x10000001))
	e, err := New(context.Background(), hostileConfig(f, newLedger()))
	require.NoError(f, err)
	i, err := e.acquire(context.Background())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, ptr, count uint32) {
		for _, lift := range []func(){
			func() { require.Len(t, i.bytes(ptr, count), int(count)) },
			func() { require.Len(t, i.list(ptr, count, valueSize, 8), int(count)*valueSize) },
			func() { require.Len(t, i.text(ptr, count), int(count)) },
			func() { i.liftParameters(ptr, count) },
			func() { i.variant(methodCases[:], []uint64{uint64(count), uint64(ptr), uint64(count)}) },
		} {
			if failure := recovered(lift); failure != nil {
				require.IsType(t, &fault{}, failure)
			}
		}
	})
}

func recovered(f func()) (failure any) {
	defer func() { failure = recover() }()
	f()
	return nil
}

func TestHeaderFieldsAreChecked(t *testing.T) {
	for name, want := range map[string]bool{
		"x-field": true, "X_1": true, "": false, "a b": false, "a:": false, "a\r": false, "é": false, "a\x00": false,
	} {
		require.Equal(t, want, validName([]byte(name)), "%q", name)
	}
	for value, want := range map[string]bool{
		"": true, "a b\tc": true, "é": true, "\xff": true, "a\rb": false, "a\nb": false, "a\x00": false, "\x7f": false,
	} {
		require.Equal(t, want, validValue([]byte(value)), "%q", value)
	}
	for at := range 17 { // values are looked at eight bytes at a time
		for c := range 256 {
			value := []byte("a value of twenty b.")
			value[at] = byte(c)
			require.Equal(t, c >= 0x20 && c != 0x7f || c == '\t', validValue(value), "%q", value)
		}
	}
	for name, want := range map[string]bool{
		"Connection": true, "keep-alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "TE": true, "trailer": true,
		"Upgrade": true, "Host": true, "HTTP2-Settings": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
		"X-Request-Id": false, "Trailers": false,
	} {
		require.Equal(t, want, forbidden([]byte(name)), name)
	}
}

func TestTargetThatIsNotUTF8IsEscaped(t *testing.T) {
	require.Equal(t, "/é?a=%FF%80b%ED%A0%80", escapeInvalid("/é?a=\xff\x80b\xed\xa0\x80"))
}

// counting is randomness whose bytes are numbered.
type counting struct {
	reads int
	next  byte
}

func (c *counting) Read(p []byte) {
	c.reads++
	for n := range p {
		c.next++
		p[n] = c.next
	}
}

// TestEntropyIsUsedOnce, each byte in its turn, also where the buffer ends within what is asked for.
func TestEntropyIsUsedOnce(t *testing.T) {
	var e entropy
	var source, want counting
	for asked := 0; asked < 5*len(e.buffer); {
		got, next := make([]byte, 10+asked/4), make([]byte, 10+asked/4)
		e.read(got, &source)
		want.Read(next)
		require.Equal(t, next, got)
		asked += len(got)
		require.Equal(t, (asked+len(e.buffer)-1)/len(e.buffer), source.reads)
		used := len(e.buffer) - len(e.unused)
		require.Equal(t, make([]byte, used), e.buffer[:used], "used bytes are wiped")
	}
}

// TestTheGuestIsGivenAsManyRandomBytesAsItAsksFor, and no more than fit in its memory.
func TestTheGuestIsGivenAsManyRandomBytesAsItAsksFor(t *testing.T) {
	i := idleInstance(t)
	i.engine.config.Random = &counting{}
	out := i.alloc(8, 4)
	var want counting
	for _, size := range []uint32{0, 1, 10, 300, 1000, 5} {
		next := make([]byte, size)
		want.Read(next)
		randomBytes(i, []uint64{uint64(size), uint64(out)})
		view := i.bytes(out, 8)
		require.Equal(t, size, get32(view, 4))
		require.Equal(t, next, i.bytes(get32(view, 0), size))
	}
	require.Contains(t, trapOf(func() { randomBytes(i, []uint64{math.MaxUint64, uint64(out)}) }), "over the limit")
}

func TestDeadlineEndsWithItsTimeOrItsParent(t *testing.T) {
	past := &deadline{Context: t.Context(), limit: -time.Second}
	require.ErrorIs(t, past.Err(), context.DeadlineExceeded)
	<-past.Done()

	ctx, cancel := context.WithCancel(t.Context())
	far := &deadline{Context: ctx, limit: time.Hour}
	require.NoError(t, far.Err())
	at, ok := far.Deadline()
	require.True(t, ok)
	require.WithinRange(t, at, time.Now(), time.Now().Add(time.Hour))
	again, _ := far.Deadline()
	require.Equal(t, at, again, "the limit counts from the first call")
	cancel()
	require.ErrorIs(t, far.Err(), context.Canceled)
	<-far.Done()
	far.release()

	parent, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	at, _ = (&deadline{Context: parent}).Deadline()
	require.Equal(t, time.Unix(1, 0), at)
}

func TestReleasedDeadlineEndsItsChildren(t *testing.T) {
	d := &deadline{Context: t.Context(), limit: time.Hour}
	child, cancel := context.WithCancel(d)
	defer cancel()
	d.release()
	<-child.Done() // package context panics here when Done and Err of a parent disagree
	require.ErrorIs(t, child.Err(), context.Canceled)
	require.ErrorIs(t, d.Err(), context.Canceled)
}

// TestCachedFieldNamesAreStillChecked makes lists of the same length repeatedly, so that the names are
// cached after the first one.
func TestCachedFieldNamesAreStillChecked(t *testing.T) {
	i := idleInstance(t)
	const tuples, texts = 65536, 65536 + 1024
	lift := func(fields ...string) (got []handler.Header, problem int) {
		at := uint32(texts)
		put := func(out []byte, offset int, text string) {
			copy(i.bytes(at, uint32(len(text))), text)
			put64(out, offset, pack(at, uint32(len(text))))
			at += uint32(len(text))
		}
		for n := 0; n < len(fields); n += 2 {
			tuple := i.bytes(tuples+uint32(n)*8, 16)
			put(tuple, 0, fields[n])
			put(tuple, 8, fields[n+1])
		}
		list := &fieldList{}
		problem = i.liftFields(list, i.bytes(tuples, uint32(len(fields))*8))
		return list.entries, problem
	}
	long := strings.Repeat("n", maxKnownName+1)
	for _, test := range []struct {
		fields  []string
		problem int
	}{
		{[]string{"A", "1", "B", ""}, none},
		{[]string{"A", "2", "B", "3"}, none},
		{[]string{"B", "2", "A", "3"}, none},
		{[]string{"B", "2", "AA", "3"}, none},
		{[]string{long, "2", long, "3"}, none},
		{[]string{long, "2", "AA", "3"}, none},
		{[]string{"", "2", "AA", "3"}, headerInvalidSyntax},
		{[]string{"B", "2", "A A", "3"}, headerInvalidSyntax},
		{[]string{"B", "2\r\n", "AA", "3"}, headerInvalidSyntax},
		{[]string{"B", "2", "Host", "3"}, headerForbidden},
		{[]string{"B", "2", "AA", "3"}, none},
		{[]string{"C", "4"}, none},
		{nil, none},
	} {
		for range 2 {
			got, problem := lift(test.fields...)
			require.Equal(t, test.problem, problem, "%q", test.fields)
			if problem != none {
				continue
			}
			require.Len(t, got, len(test.fields)/2)
			for n, field := range got {
				require.Equal(t, handler.Header{Name: test.fields[2*n], Value: test.fields[2*n+1]}, field)
			}
		}
	}
	require.PanicsWithError(t, "name of a header field is not UTF-8", func() { lift("B", "2", "A\xff", "3") })
}
