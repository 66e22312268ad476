package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wholeFiles is how many of the smallest official files are taken whole. Of the others, only rows
// with a value or a damage not seen before are taken.
const wholeFiles = 4

// perValue is the number of rows taken for each combination of values.
const perValue = 2

var (
	// atHome matches addresses that may be a person's home or contain a person's name.
	atHome = regexp.MustCompile(`(?i)\b[cswdh]\s*/\s*o|\bc o\b|house|\bvilla\b|\bniwas\b|\bh\.?\s*no\b|residen|\b(smt|shri|late|mrs?|dr)\b`)
	sound  = regexp.MustCompile(`^[LU]\d{5}[A-Z]{2}\d{4}[A-Z]{3}\d{6}$`)
	pin    = regexp.MustCompile(`\b[1-9]\d{5}\b`)
)

// writeReal picks the sample's real rows from the official files in data.
func writeReal(data, out string) error {
	current, err := pickCurrent(filepath.Join(data, "companies/datagov-rocwise-2025"))
	if err != nil {
		return err
	}
	resaved, err := pickFirst(filepath.Join(data, "companies/excel-resaved"), "Delhi.csv.gz", 40)
	if err != nil {
		return err
	}
	resaved.crlf = true
	older, variant, err := pickOlder(filepath.Join(data, "companies/datagov-statewise-2021"))
	if err != nil {
		return err
	}
	pincodes, err := pickPincodes(filepath.Join(data, "pincodes"), current, resaved, older, variant, madeUpCompanies())
	if err != nil {
		return err
	}
	for name, t := range map[string]table{
		"companies-2025.csv.gz":         current,
		"companies-2025-resaved.csv.gz": resaved,
		"companies-2021.csv.gz":         older,
		"companies-2021-variant.csv.gz": variant,
		"pincodes.csv.gz":               pincodes,
	} {
		if err := writeFile(out, name, t.encode()); err != nil {
			return err
		}
	}
	return nil
}

// pickCurrent takes the smallest files whole, and from the larger ones rows of kinds not seen yet.
func pickCurrent(folder string) (table, error) {
	names, err := bySize(folder)
	if err != nil {
		return table{}, err
	}
	var picked table
	seen := map[string]int{}
	for i, name := range names {
		t, err := readTable(folder, name)
		if err != nil {
			return table{}, err
		}
		picked.header = t.header
		for _, row := range t.rows {
			if i >= wholeFiles && !shows(seen, kindsOf(t, row)) {
				continue
			}
			if personal(row) || !sound.MatchString(strings.ToUpper(row[t.column("CIN")])) {
				continue
			}
			picked.rows = append(picked.rows, row)
			for _, kind := range kindsOf(t, row) {
				seen[kind]++
			}
		}
	}
	return picked, nil
}

// shows reports whether fewer than perValue rows were taken for one of the kinds.
func shows(seen map[string]int, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return seen[kind] < perValue })
}

// kindsOf returns the kinds of row that a row is an example of: one for its registrar, and one for
// its damage or, if it has none, for its combination of values.
func kindsOf(t table, row []string) []string {
	cin, address := row[t.column("CIN")], row[t.column("Registered_Office_Address")]
	kinds := []string{row[t.column("CompanyROCcode")]}
	switch {
	case strings.ToUpper(cin) != cin:
		return append(kinds, "lower-case cin")
	case strings.Contains(strings.Join(row, ""), "\uFFFD"):
		return append(kinds, "replacement character")
	case strings.TrimSpace(address) == "":
		return append(kinds, "no address")
	case !pin.MatchString(address):
		return append(kinds, "no pincode")
	}
	var values []string
	for _, name := range []string{"CompanyCategory", "CompanySubCategory", "CompanyClass", "Listingstatus", "CompanyStatus"} {
		values = append(values, row[t.column(name)])
	}
	return append(kinds, strings.Join(values, "|"))
}

// personal reports whether a row is a one-person company's or its address may be a home. No other
// column of the official formats has personal data.
func personal(row []string) bool {
	line := strings.Join(row, "\n")
	upper := strings.ToUpper(line)
	return strings.Contains(upper, "OPC") || strings.Contains(upper, "ONE PERSON") || atHome.MatchString(line)
}

func bySize(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		sizes[entry.Name()] = info.Size()
	}
	names := slices.Collect(maps.Keys(sizes))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	return names, nil
}

// pickFirst takes the first limit rows of a file without personal data.
func pickFirst(folder, name string, limit int) (table, error) {
	t, err := readTable(folder, name)
	if err != nil {
		return table{}, err
	}
	t.rows = slices.DeleteFunc(t.rows, personal)
	t.rows = t.rows[:min(limit, len(t.rows))]
	return t, nil
}

// pickOlder takes rows of the older files: one table as it is, with the empty trailing columns that
// one of the files has, and one with the header and dates of other published copies.
func pickOlder(folder string) (older, variant table, err error) {
	for _, name := range []string{"Sikkim.csv.gz", "Mizoram.csv.gz"} {
		t, err := pickFirst(folder, name, 100)
		if err != nil {
			return older, variant, err
		}
		older.header, older.crlf = append(slices.Clone(t.header), "", "", ""), true
		for _, row := range t.rows {
			older.add(append(slices.Clone(row), "", "", "")...)
		}
	}
	t, err := pickFirst(folder, "Nagaland.csv.gz", 20)
	if err != nil {
		return older, variant, err
	}
	return older, asVariant(t), nil
}

// asVariant rewrites a table of format B like other published copies: header in capitals, two columns
// renamed, years of four digits, Latin-1.
func asVariant(t table) table {
	rename := map[string]string{"AUTHORIZED_CAP": "AUTHORIZED_CAPITAL", "COMPANY_SUB_CATEGORY": "SUB_CATEGORY"}
	variant := table{crlf: true, latin1: true}
	for _, name := range t.header {
		name = strings.ToUpper(name)
		variant.header = append(variant.header, cmp.Or(rename[name], name))
	}
	date := t.column("DATE_OF_REGISTRATION")
	for _, row := range t.rows {
		day, year := row[date][:6], row[date][6:]
		row[date] = day + century(year) + year
		variant.add(row...)
	}
	variant.add("U55101GA2011PTC990090", "CAFÉ SÃO JOÃO (MADE-UP) PRIVATE LIMITED", "Active", "Private",
		"Company limited by Shares", "Non-govt company", "11-11-2011", "Goa", "500000", "100000", "55101",
		"Hotels and restaurants", "1 MADE-UP ROAD PANAJI , North Goa GA 403001", "RoC-Goa",
		"cafe@example.com", "NA", "NA")
	return variant
}

// century of a two-digit year in files of 2021.
func century(year string) string {
	if year > "21" {
		return "19"
	}
	return "20"
}

// pickPincodes takes the post offices of every pincode that the tables name.
func pickPincodes(folder string, tables ...table) (table, error) {
	wanted := map[string]bool{"403001": true, "400001": true, "560001": true, "110001": true, "600001": true}
	for _, t := range tables {
		for _, row := range t.rows {
			for _, code := range pin.FindAllString(strings.Join(row, "\n"), -1) {
				wanted[code] = true
			}
		}
	}
	t, err := readTable(folder, "all_india_pincode_directory.csv.gz")
	if err != nil {
		return table{}, fmt.Errorf("pick pincodes: %w", err)
	}
	code := t.column("Pincode")
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return !wanted[row[code]] })
	return t, nil
}
