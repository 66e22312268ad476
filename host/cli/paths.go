package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"regedge/host/hint"
)

// checkPaths refuses a pipe, socket or device where a file is expected, and anything but a directory where
// that is expected: opening a pipe without a writer blocks for ever, and no signal ends that.
func checkPaths(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		if path, ok := flag.Target.Interface().(string); ok && !mayBePipe(flag) {
			if err := checkPath("--"+flag.Name, flag.PlaceHolder, path); err != nil {
				return err
			}
		}
	}
	for _, argument := range parsed.Selected().Positional {
		if path, ok := argument.Target.Interface().(string); ok && argument.Tag.Type == "path" {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return hint.With(fmt.Errorf("the file: %s is a directory", path), "name the file itself; an empty name, as of a variable of the shell that is not set, is the current directory")
			}
			if err := checkPath("the file", "FILE", path); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayBePipe: secrets may come from a shell's <(command), since readSecret has a timeout; rejects may go
// to /dev/stdout.
func mayBePipe(flag *kong.Flag) bool {
	return strings.HasSuffix(flag.Name, "-file") || flag.Name == "rejects"
}

func checkPath(what, meant, path string) error {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return nil // the command reports it
	}
	mode := info.Mode()
	switch {
	case (meant == "FILE" || meant == "FILE|URL") && !mode.IsRegular() && !mode.IsDir():
		return fmt.Errorf("%s: %s is %s, not a file", what, path, kindOf(mode))
	case meant == "DIR" && !mode.IsDir():
		return fmt.Errorf("%s: %s is %s, not a directory", what, path, kindOf(mode))
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

const (
	// maxSecret bounds the size of a secret's file, in bytes.
	maxSecret = 64 << 10
	// pipePatience is how long a pipe may be silent.
	pipePatience = 5 * time.Second
	pipePause    = 20 * time.Millisecond
)

// readSecret reads a secret from a file, or from a pipe until it is closed.
func readSecret(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	end := time.Now().Add(pipePatience)
	_ = file.SetReadDeadline(end) // fails for a regular file, which needs none
	for {
		content, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
		switch info, _ := file.Stat(); {
		case len(content) > maxSecret:
			return nil, fmt.Errorf("%s holds more than a secret: over %d bytes", path, maxSecret)
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil || len(content) > 0 || info == nil || info.Mode().IsRegular():
			return content, err
		case time.Now().Before(end): // nobody has opened the pipe to write yet
			time.Sleep(pipePause)
			continue
		}
		return nil, hint.With(fmt.Errorf("nothing came out of %s within %v", path, pipePatience),
			"it is a pipe: does something write to it, and close it?")
	}
}
