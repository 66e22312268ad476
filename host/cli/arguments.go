package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"regedge/host/hint"
)

// negative matches a number below zero, which kong takes for a flag. No flag of ours begins like it.
var negative = regexp.MustCompile(`^-\d`)

// prepareArguments prepares the arguments for kong. It joins a flag and a number below zero, so that the command can
// say which numbers are allowed. It refuses an empty value for a flag that would misread it; see needsText. It refuses a long
// flag with one hyphen, too, which kong takes for flags of one letter.
func prepareArguments(args []string, root *kong.Node) (joined []string, err error) {
	flags := flagsOf(root)
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...), nil
		}
		name, value, given := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if meant, _, _ := strings.Cut(strings.TrimPrefix(args[i], "-"), "="); len(meant) > 1 && strings.HasPrefix(args[i], "-") && flags[meant] != nil {
			return nil, hint.With(fmt.Errorf("unknown flag -%s, did you mean --%s?", meant, meant), "a flag of more than one letter begins with two hyphens")
		}
		flag := flags[name]
		if flag == nil || !strings.HasPrefix(args[i], "--") {
			joined = append(joined, args[i])
			continue
		}
		if !given && !flag.IsBool() && i+1 < len(args) && (args[i+1] == "" || negative.MatchString(args[i+1])) {
			i++
			value, given = args[i], true
		}
		if given && value == "" && needsText(flag) {
			return nil, hint.With(fmt.Errorf("--%s is empty: it takes a %s", name, flag.PlaceHolder), "is it from a variable of the shell that is not set?")
		}
		if given {
			joined = append(joined, "--"+name+"="+value)
		} else {
			joined = append(joined, args[i])
		}
	}
	return joined, nil
}

// flagsOf returns a flag of each name. Flags of one name are of one kind in all commands.
func flagsOf(root *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && (flags[flag.Name] == nil || needsText(flag)) {
			flags[flag.Name] = flag
		}
		return next(nil)
	})
	return flags
}

// needsText reports whether a flag needs a text that is not empty. Kong reads an empty path as the current directory. A
// command would read any other empty text as the flag left out: the day of an import, for example, as today.
func needsText(flag *kong.Flag) bool {
	return flag.Tag.Type == "path" || slices.Contains([]string{"FILE", "DIR", "FILE|URL", "DATE", "KEY", "RELEASE", "NETWORK", "NAME|IP"}, flag.PlaceHolder)
}
