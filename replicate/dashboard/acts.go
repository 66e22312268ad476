package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// acts are the words for what was done through the writer's API, whose requests the audit
// log holds as they came: method and path. A * in the path stands at the words' end.
var acts = []struct {
	request, words string
	named          bool // by what stands for the *
}{
	{"POST /v1/accounts", "add account", false},
	{"PATCH /v1/accounts/*", "change account", false},
	{"POST /v1/accounts/*/keys", "make key", false},
	{"DELETE /v1/keys/*", "revoke key", true},
	{"POST /v1/accounts/*/credits", "change credits", false},
	{"PUT /v1/plans/*", "set plan", true},
	{"POST /v1/nodes", "add node", false},
	{"POST /v1/nodes/*/token", "give new token to node", true},
	{"POST /v1/nodes/*/retire", "retire node", true},
	{"POST /v1/invitations", "invite", false},
	{"POST /v1/unresolved/*/credit", "credit unresolved charge", true},
}

// Words say what was done: an act of the dashboard as it is, a request to the API in
// words, and a request that has none as it is.
func (a activity) Words() string {
	for _, known := range acts {
		if match, err := path.Match(known.request, a.Act); err != nil || !match {
			continue
		}
		if !known.named {
			return known.words
		}
		before, _, _ := strings.Cut(known.request, "*")
		name, _, _ := strings.Cut(strings.TrimPrefix(a.Act, before), "/")
		return known.words + " " + name
	}
	return a.Act
}

// Particulars are the members of the detail that say something, or the detail itself when
// it is no JSON object.
func (a activity) Particulars() string {
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(a.Detail))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return a.Detail
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch value := members[name]; value {
		case nil, "", json.Number("0"), false:
		default:
			said = append(said, fmt.Sprintf("%s: %v", name, value))
		}
	}
	return strings.Join(said, ", ")
}
