package journal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

const archiveDay = 20_000

// FuzzArchive opens an archive whose file of the day holds anything. It must find the batches of
// the whole frames at the start, and keep those and the next one that is stored.
func FuzzArchive(f *testing.F) {
	f.Add(archived(1, &syncproto.Batch{Seq: 1, Of: 1}, &syncproto.Batch{Seq: 2, Of: 1}))
	f.Add(append(archived(1, &syncproto.Batch{Seq: 1, Of: 1}), 5, 0, 0, 0, 1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		d := newDisk()
		_, err := d.Append(archiveName(archiveDay))
		require.NoError(t, err)
		d.files[archiveName(archiveDay)].Write(content)
		before := batches(t, content)
		a := reportArchive{dir: d, suspect: map[int32]bool{}}
		next := &syncproto.Batch{Seq: 1 << 40, Of: 7}
		require.NoError(t, a.add(7, next, archiveDay))
		require.NoError(t, a.close())
		require.Equal(t, append(before, next), batches(t, d.files[archiveName(archiveDay)].Bytes()))
	})
}

// archived is the content of an archive's file.
func archived(epoch uint64, list ...*syncproto.Batch) (content []byte) {
	for _, b := range list {
		var e syncproto.Encoder
		e.Uint(epoch)
		b.Encode(&e)
		at := len(content)
		content = appendFrame(content, frameRecord, e.Bytes)
		archiveFile(archiveDay).place(content[at:], int64(at))
	}
	return content
}

// batches reads what an archive's file holds.
func batches(t *testing.T, content []byte) (list []*syncproto.Batch) {
	good, err := eachBatch(archiveFile(archiveDay), bytes.NewReader(content), func(_ uint64, b *syncproto.Batch) { list = append(list, b) })
	require.NoError(t, err)
	require.LessOrEqual(t, good.end, int64(len(content)))
	return list
}
