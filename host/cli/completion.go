package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how the script is used.
func (c *completionCommand) Help() string {
	return `Load it in a shell:

  bash  source <(regedge completion bash)
  zsh   source <(regedge completion zsh)
  fish  regedge completion fish | source

Put that line into the shell's configuration to have it in every shell.`
}

// completionScripts ask the program itself for the candidates, so that they never get out of date.
var completionScripts = map[string]string{
	"bash": `_regedge() {
    local candidates last="${COMP_WORDS[COMP_CWORD]}"
    [[ $last != = ]] || last=
    candidates=$(regedge complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
    COMPREPLY=($(compgen -W "$candidates" -- "$last"))
}
complete -o default -F _regedge regedge
`,
	"zsh": `_regedge() {
    local -a candidates
    candidates=("${(@f)$(regedge complete -- "${(@)words[2,CURRENT]}" 2>/dev/null | sed 's/:/\\:/g; s/	$//; s/	/:/')}")
    if [[ -n $candidates ]]; then _describe regedge candidates; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
compdef _regedge regedge
`,
	"fish": `function __regedge_complete
    set -l found (regedge complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c regedge -f -a '(__regedge_complete)'
`,
}

// Run prints the script of a shell.
func (c *completionCommand) Run(m *Main) error {
	_, err := io.WriteString(m.Stdout, completionScripts[c.Shell])
	return err
}

// completeCommand is the command that the completion scripts call.
type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words typed so far; the last one is not complete."`
}

// Run prints the candidates for the last word, each with a tab and what it does.
func (c *completeCommand) Run(m *Main, line *kong.Context) error {
	for _, candidate := range candidates(line.Model.Node, c.Words) {
		if _, err := fmt.Fprintf(m.Stdout, "%s\t%s\n", candidate.word, candidate.does); err != nil {
			return err
		}
	}
	return nil
}

type candidate struct{ word, does string }

// candidates returns the completions of the last word: commands, flags, or values of a list. There
// are none for a file or free text.
func candidates(at *kong.Node, words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	typed, last := words[:len(words)-1], words[len(words)-1]
	flags := at.Flags
	var open *kong.Flag // the last typed word, when it is a flag that waits for its value
	for _, word := range typed {
		if open != nil {
			if word != "=" { // bash makes three words of --engine=native
				open = nil
			}
			continue
		}
		if strings.HasPrefix(word, "-") {
			open = waiting(flags, word)
			continue
		}
		for _, child := range at.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				at, flags = child, append(flags, child.Flags...)
				break
			}
		}
	}
	name, begun, joined := strings.Cut(last, "=")
	switch {
	case open != nil:
		return values(open.Value, strings.TrimPrefix(last, "="), "")
	case joined:
		if flag := waiting(flags, name); flag != nil {
			return values(flag.Value, begun, name+"=")
		}
		return nil
	case strings.HasPrefix(last, "-"):
		return flagsWith(flags, last)
	case len(at.Children) > 0:
		return commandsWith(at.Children, last)
	case len(at.Positional) > 0:
		return values(at.Positional[0], last, "")
	}
	return nil
}

// waiting returns the flag that a word such as --listen names, if it takes a value, or nil.
func waiting(flags []*kong.Flag, word string) *kong.Flag {
	for _, flag := range flags {
		if word == "--"+flag.Name && !flag.IsBool() {
			return flag
		}
	}
	return nil
}

// values returns the values of a list that begin with prefix, each with before in front, such as "--engine=".
func values(of *kong.Value, prefix, before string) (found []candidate) {
	for _, value := range of.EnumSlice() {
		if value != "" && strings.HasPrefix(value, prefix) {
			found = append(found, candidate{before + value, ""})
		}
	}
	return found
}

func flagsWith(flags []*kong.Flag, prefix string) (found []candidate) {
	for _, flag := range flags {
		if word := "--" + flag.Name; !flag.Hidden && strings.HasPrefix(word, prefix) {
			found = append(found, candidate{word, firstSentence(flag.Help)})
		}
	}
	return found
}

func commandsWith(nodes []*kong.Node, prefix string) (found []candidate) {
	for _, node := range nodes {
		if !node.Hidden && strings.HasPrefix(node.Name, prefix) {
			found = append(found, candidate{node.Name, firstSentence(node.Help)})
		}
	}
	return found
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}
