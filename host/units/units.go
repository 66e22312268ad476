// Package units reads the systemd units of this machine that run regedge: with which command, which
// arguments and which environment. It knows what the units in deploy/systemd use of systemd's language
// (systemd.service(5), systemd.exec(5)), not all of it.
package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Service is a regedge that a unit runs.
type Service struct {
	Name     string // of the unit, without .service
	Instance string // what follows the @ in it
	// Command is the command of regedge that the unit runs, such as edge.
	Command   string
	Arguments []string
	// Environment lists NAME=VALUE, as os.Environ does.
	Environment []string
	// Missing is the missing environment file that keeps systemd from starting this enabled service; empty if there is
	// none.
	Missing string
}

// commands are the commands of regedge that run as services of a cluster.
var commands = []string{"primary", "writer", "replica", "edge", "meter"}

// onceOnly are arguments that are given for a single start.
var onceOnly = []string{"--restored", "--take-over"}

// Read returns the services whose units are in dir, the centre's first. A unit without an environment file is left out,
// unless it is enabled: it was copied but is not used here. A template has one instance for each environment file, and
// one for each that is enabled.
func Read(dir string) (list []Service, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "regedge-*.service"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read unit: %w", err)
		}
		u := parse(string(content))
		for _, instance := range u.instances(file) {
			name := strings.TrimSuffix(filepath.Base(file), ".service")
			s, err := u.service(name, instance, slices.Contains(enabled(dir, name), instance))
			if err != nil {
				return nil, err
			}
			if s != nil {
				list = append(list, *s)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Service) int {
		return slices.Index(commands, a.Command) - slices.Index(commands, b.Command)
	})
	return list, nil
}

// Shipping returns the configuration file of the Litestream that ships a ledger from this machine, by a unit in
// dir; empty for none. A unit without its environment file is not used here.
func Shipping(dir string) (config string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "regedge-*.service"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read unit: %w", err)
		}
		u := parse(string(content))
		words := strings.Fields(last(u["ExecStart"]))
		if len(words) < 2 || filepath.Base(words[0]) != "litestream" || words[1] != "replicate" {
			continue
		}
		environment := strings.TrimPrefix(last(u["EnvironmentFile"]), "-")
		if _, err := os.Stat(environment); environment != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if at := slices.Index(words, "-config"); at > 0 && at+1 < len(words) {
			return words[at+1], nil
		}
	}
	return "", err
}

// unit holds the values of each setting of a unit file, in order.
type unit map[string][]string

// parse reads the settings of a unit. A line that ends in a backslash continues in the next that is no comment. An empty
// value takes back those before it.
func parse(content string) unit {
	u := unit{}
	var lines strings.Builder
	for line := range strings.Lines(content) {
		if line = strings.TrimLeft(line, " \t"); !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			lines.WriteString(line)
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(lines.String(), "\\\n", " ")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if value = strings.TrimSpace(value); ok && value == "" {
			delete(u, name)
		} else if ok {
			u[name] = append(u[name], value)
		}
	}
	return u
}

// instances lists the instances of a template that have an environment file or are enabled; for any other unit, one
// with an empty name.
func (u unit) instances(file string) (list []string) {
	if !strings.HasSuffix(file, "@.service") {
		return []string{""}
	}
	for _, pattern := range u["EnvironmentFile"] {
		before, after, ok := strings.Cut(strings.TrimPrefix(pattern, "-"), "%i")
		if !ok {
			continue
		}
		found, _ := filepath.Glob(before + "*" + after)
		for _, path := range found {
			list = append(list, strings.TrimSuffix(strings.TrimPrefix(path, before), after))
		}
	}
	list = append(list, enabled(filepath.Dir(file), strings.TrimSuffix(filepath.Base(file), ".service"))...)
	slices.Sort(list)
	return slices.Compact(list)
}

// enabled lists the instances of a template for which systemctl enable was called; for any other unit, an empty name if
// it was.
func enabled(dir, name string) (list []string) {
	found, _ := filepath.Glob(filepath.Join(dir, "*.wants", name+"*.service"))
	for _, link := range found {
		instance, _ := strings.CutPrefix(strings.TrimSuffix(filepath.Base(link), ".service"), name)
		if (instance != "") == strings.HasSuffix(name, "@") {
			list = append(list, instance)
		}
	}
	return list
}

// service returns the service that a unit runs, nil if it is no service of a cluster or not used here.
func (u unit) service(name, instance string, enabled bool) (*Service, error) {
	words := strings.Fields(strings.ReplaceAll(last(u["ExecStart"]), "%i", instance))
	if len(words) < 2 || !slices.Contains(commands, words[1]) {
		return nil, nil
	}
	s := &Service{Name: strings.TrimSuffix(name, "@") + suffix(instance), Instance: instance, Command: words[1]}
	for _, file := range u["EnvironmentFile"] {
		file = strings.ReplaceAll(file, "%i", instance)
		content, err := os.ReadFile(strings.TrimPrefix(file, "-"))
		switch optional := strings.HasPrefix(file, "-"); {
		case errors.Is(err, fs.ErrNotExist) && !enabled:
			return nil, nil
		case errors.Is(err, fs.ErrNotExist) && optional:
			continue
		case errors.Is(err, fs.ErrNotExist):
			s.Missing = file
			return s, nil
		case err != nil:
			return nil, fmt.Errorf("read the environment of %s: %w", s.Name, err)
		}
		s.Environment = append(s.Environment, variables(string(content))...)
	}
	for _, word := range words[2:] {
		if word = u.expand(word, instance, s.Environment); word != "" && !slices.Contains(onceOnly, word) {
			s.Arguments = append(s.Arguments, word)
		}
	}
	return s, nil
}

// expand substitutes the variables in a word, and a credential's source for its copy.
func (u unit) expand(word, instance string, environment []string) string {
	for _, credential := range u["LoadCredential"] {
		id, path, _ := strings.Cut(credential, ":")
		word = strings.ReplaceAll(word, "${CREDENTIALS_DIRECTORY}/"+id, strings.ReplaceAll(path, "%i", instance))
	}
	return os.Expand(word, func(name string) string {
		for _, variable := range slices.Backward(environment) { // the last one counts
			if key, value, _ := strings.Cut(variable, "="); key == name {
				return value
			}
		}
		return ""
	})
}

// variables reads an environment file.
func variables(content string) (list []string) {
	for line := range strings.Lines(content) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") || strings.HasPrefix(name, ";") {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		list = append(list, strings.TrimSpace(name)+"="+value)
	}
	return list
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func suffix(instance string) string {
	if instance == "" {
		return ""
	}
	return "@" + instance
}
