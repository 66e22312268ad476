package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// headerBytes is the length of a database's header (https://sqlite.org/fileformat2.html, 1.3).
const headerBytes = 100

// CutShort fails if a file is empty, or is a database that has no table or is shorter than its header says, as after
// a copy onto a full disk. It reads only the header, and accepts what is not a database, such as a compressed or
// encrypted one.
func CutShort(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(file, header); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	} else if err != nil {
		return err
	}
	pageSize, pages := sizeInHeader(header)
	if whole := pageSize * pages; info.Size() < whole {
		return fmt.Errorf("it has %d of %d bytes", info.Size(), whole)
	}
	if pages == 1 { // every table has a page of its own
		return errors.New("it holds no table: the file of a running database was copied, without its log (-wal)")
	}
	return nil
}

// sizeInHeader reads the page size and the number of pages from a database's header. It returns 0 if there is no
// database, or its header does not say.
func sizeInHeader(header []byte) (pageSize, count int64) {
	const magic, changes, pages, pagesOf = "SQLite format 3\x00", 24, 28, 92
	number := func(at int) uint32 { return binary.BigEndian.Uint32(header[at:]) }
	if !strings.HasPrefix(string(header), magic) || number(changes) != number(pagesOf) {
		return 0, 0
	}
	pageSize = int64(binary.BigEndian.Uint16(header[16:]))
	if pageSize == 1 { // 65536 does not fit
		pageSize = 1 << 16
	}
	return pageSize, int64(number(pages))
}
