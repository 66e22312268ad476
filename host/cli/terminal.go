package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminal reports whether an input or output of the program is a terminal.
func isTerminal(file any) bool {
	f, ok := file.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// asksAtTerminal reports whether a person can be asked.
func (m *Main) asksAtTerminal() bool { return isTerminal(m.Stdin) && isTerminal(m.Stderr) }

// ask prints a question and returns the line that is typed, without spaces around it. A read from a
// terminal can't be interrupted, so when ctx is done it is left running: the program is about to
// end.
func (m *Main) ask(ctx context.Context, question string) (string, error) {
	type line struct {
		text string
		err  error
	}
	fmt.Fprint(m.Stderr, question)
	typed := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(m.Stdin).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		typed <- line{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(m.Stderr) // what follows is on a line of its own
		return "", ctx.Err()
	case l := <-typed:
		return l.text, l.err
	}
}
