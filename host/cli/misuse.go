package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"regedge/host/hint"
)

// misuse adds a hint: the help of the command, and what was probably meant.
func misuse(err error) error {
	advice, isSearched := "see regedge --help", false
	var parse *kong.ParseError
	var command *kong.Node
	if errors.As(err, &parse) && parse.Context != nil {
		command, err = unknownCommand(err, parse.Context)
	}
	if command != nil {
		advice = "see " + command.FullPath() + " --help"
		isSearched = slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "search" })
	}
	switch text := err.Error(); {
	case isSearched && strings.HasPrefix(text, "unexpected argument "):
		advice = "--search TEXT shows only what contains a text; " + advice
	case negativeNumber.MatchString(text):
		advice = "no number here is negative; " + advice
	case strings.Contains(text, "expected "+digits):
		advice = whereIDsAre(text, parse) + advice
	}
	if flag, _, found := strings.Cut(err.Error(), ": expected "); found && strings.HasSuffix(err.Error(), "but got \"EOL\" (<EOL>)") {
		err = fmt.Errorf("%s needs a value", flag)
	}
	// Help is the only flag of one letter, so every other letter would be like it.
	if unknown, _, found := strings.Cut(err.Error(), `, did you mean "-h"?`); found {
		err = errors.New(unknown)
	}
	if hint.Of(err) != "" {
		return err
	}
	return hint.With(err, "%s", advice)
}

// negativeNumber matches kong's error about a negative number where it expects a flag.
var negativeNumber = regexp.MustCompile(`^unknown flag -[0-9]`)

// unknownCommand returns err, or what takes its place when a word stands where a command is expected, and the command or group
// whose help says more, or nil. Kong calls such a word an argument, and suggests commands of that place that are written almost
// so: not DEV for dev, and not invite for account invite.
func unknownCommand(err error, line *kong.Context) (*kong.Node, error) {
	selected := line.Selected()
	at := selected
	switch {
	case at == nil:
		at = line.Model.Node
	case at.Parent != nil && at.Parent.DefaultCmd == at && !slices.Contains(line.Args, at.Name): // as in doctor edgy
		at = at.Parent
		at.DefaultCmd = nil // else kong looks at no other
		if again, failed := kong.Trace(line.Kong, line.Args); failed == nil && again.Error != nil && strings.HasPrefix(again.Error.Error(), err.Error()) {
			err, selected = again.Error, at
		}
	}
	word, found := strings.CutPrefix(err.Error(), "unexpected argument ")
	if !found || len(at.Children) == 0 {
		return selected, err
	}
	word, similar, _ := strings.Cut(word, ", did you mean ")
	if named := commandsNamed(at, word); len(named) > 0 && len(named) < 4 {
		similar = strings.Join(named, " or ") + "?"
	}
	if similar != "" {
		similar = ", did you mean " + similar
	}
	return selected, fmt.Errorf("unknown command %s%s", word, similar)
}

// commandsNamed returns the commands in a group that have a name in other letters, or, without one, those below it.
func commandsNamed(group *kong.Node, name string) (named []string) {
	var below []string
	for _, child := range group.Children {
		if strings.EqualFold(child.Name, name) {
			named = append(named, fmt.Sprintf("%q", strings.TrimPrefix(child.FullPath(), "regedge ")))
		} else if !child.Hidden {
			below = append(below, commandsNamed(child, name)...)
		}
	}
	if named == nil {
		return below
	}
	return named
}

// whereIDsAre says which command shows the ids of what was given by its name or, a key, by itself; or "".
func whereIDsAre(text string, parse *kong.ParseError) string {
	const ofAccount = "regedge account list --search NAME shows an account's id; "
	switch {
	case strings.HasPrefix(text, "--account: "):
		return ofAccount
	case parse == nil || parse.Context == nil || parse.Context.Selected() == nil:
		return ""
	}
	for _, argument := range parse.Context.Selected().Positional {
		switch {
		case !strings.HasPrefix(text, "<"+argument.Name+">: "):
		case strings.HasPrefix(argument.Help, "Id of the account"):
			return ofAccount
		case strings.HasPrefix(argument.Help, "Id of the key"):
			return "regedge key list ACCOUNT shows the ids of an account's keys; "
		}
	}
	return ""
}
