package push

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// linkKeys is the most keys of one query for links.
const linkKeys = 2000

// selectCompanies reads the companies of the directors ?1, as [din, cin].
const selectCompanies = `SELECT coalesce(json_group_array(json_array(din, cin)), '[]')
FROM appointment WHERE din IN (SELECT value FROM json_each(?1))`

// selectHolders reads which other entries have the places of the entries ?1, a JSON array of
// [place, value], as [value, holder].
const selectHolders = `SELECT coalesce(json_group_array(json_array(r.value ->> 1, n.value)), '[]')
FROM json_each(?1) r JOIN search_name n ON n.place = r.value ->> 0 WHERE n.value <> r.value ->> 1`

// findLinks finds the pairs of changed records that must be written in one transaction.
func (p *pusher) findLinks(ctx context.Context, changes []change) ([]link, error) {
	var dins, entries []string
	anyThere := false
	for _, c := range changes {
		switch {
		case c.Kind == director:
			dins = append(dins, c.Key)
		case c.Kind == entry && c.here:
			entries = append(entries, c.Key)
		}
		anyThere = anyThere || c.there
	}
	if !anyThere {
		return nil, nil // the primary is empty
	}
	var links []link
	for part := range chunks(dins, linkKeys) {
		for _, side := range []*side{p.here, p.there} {
			found, err := pairs(ctx, side, selectCompanies, part)
			if err != nil {
				return nil, fmt.Errorf("find the companies of directors: %w", err)
			}
			for _, f := range found {
				links = append(links, link{record{Kind: director, Key: f[0]}, record{Kind: company, Key: f[1]}})
			}
		}
	}
	holders, err := p.findHolders(ctx, entries)
	return append(links, holders...), err
}

// findHolders links entries with the entries whose places they take over.
func (p *pusher) findHolders(ctx context.Context, values []string) (links []link, err error) {
	for part := range chunks(values, linkKeys) {
		places, err := p.readEntries(ctx, p.local, part, p.generation)
		if err != nil {
			return nil, err
		}
		asked := make([][2]any, len(places))
		for i, e := range places {
			asked[i] = [2]any{e.place, e.value}
		}
		found, err := pairs(ctx, p.there, selectHolders, asked)
		if err != nil {
			return nil, fmt.Errorf("find the holders of places: %w", err)
		}
		for _, f := range found {
			links = append(links, link{record{Kind: entry, Key: f[0]}, record{Kind: entry, Key: f[1]}})
		}
	}
	return links, nil
}

func pairs(ctx context.Context, a *side, query string, parameter any) (list [][2]string, err error) {
	text, err := ask(ctx, a, query, parameter)
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal([]byte(text), &list)
}

// named is a search entry.
type named struct {
	place       int64
	value, name string
	label       any // a string or nil
}

const selectEntries = `SELECT coalesce(json_group_array(json_array(place, value, name, label)), '[]')
FROM search_name WHERE value IN (SELECT value FROM json_each(?1))`

// readEntries reads entries from the snapshot, with the places that they have at the primary in a
// generation.
func (p *pusher) readEntries(ctx context.Context, db *sql.DB, values []string, generation int64) ([]named, error) {
	list, err := readEntries(ctx, &side{db: db}, values)
	for i := range list {
		list[i].place += generation << generationBits
	}
	return list, err
}

func readEntries(ctx context.Context, a *side, values []string) ([]named, error) {
	text, err := ask(ctx, a, selectEntries, values)
	if err != nil {
		return nil, fmt.Errorf("read search entries: %w", err)
	}
	var rows [][4]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&rows); err != nil {
		return nil, fmt.Errorf("read search entries: %w", err)
	}
	list := make([]named, len(rows))
	for i, row := range rows {
		number, _ := row[0].(json.Number)
		value, _ := row[1].(string)
		name, _ := row[2].(string)
		place, err := number.Int64()
		if err != nil {
			return nil, fmt.Errorf("read search entries: %w", err)
		}
		list[i] = named{place, value, name, row[3]}
	}
	return list, nil
}
