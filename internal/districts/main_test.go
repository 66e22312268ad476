package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTableIsWhatItsSourcesMake where the official files are beside the checkout.
func TestTheTableIsWhatItsSourcesMake(t *testing.T) {
	const data = "../../../shared/data"
	if _, err := os.Stat(data); err != nil {
		t.Skip("the official files are not here: the table is not made again")
	}
	made, err := collect(data)
	require.NoError(t, err)
	held, err := os.ReadFile("../../schema/importer/source/districts.txt")
	require.NoError(t, err)
	require.Equal(t, string(held), made.text())
}

// TestSpellingsAreLearnt from addresses with pincodes of one district, if they are nearly its name.
func TestSpellingsAreLearnt(t *testing.T) {
	dir := t.TempDir()
	write := func(folder, name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
		file, err := os.Create(filepath.Join(dir, folder, name))
		require.NoError(t, err)
		z := gzip.NewWriter(file)
		_, err = z.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, file.Close())
	}
	write("pincodes", "p.gz", "Pincode,District,StateName\n173001,SIRMAUR,HIMACHAL PRADESH\n173001,Sirmaur,HIMACHAL PRADESH\n171001,Shimla,HIMACHAL PRADESH\n")
	address := func(place, pincode string, rows int) string {
		return strings.Repeat("\"1 ROAD,TOWN,"+place+",Himachal Pradesh,"+pincode+"-India\"\n", rows)
	}
	write("companies/now", "c.gz", "Registered_Office_Address\n"+address("Sirmour", "173001", 4)+address("Sirmoor", "173001", 2)+
		address("Simla", "171001", 1)+address("Simla", "173001", 3)+address("Nahan", "173001", 9)+address("SIRMUR", "173001", 9))
	made := newTable()
	require.NoError(t, made.readOffices(filepath.Join(dir, "pincodes", "*")))
	require.NoError(t, made.learn(filepath.Join(dir, "companies", "*", "*")))
	require.Equal(t, 1, made.learnt)
	require.Contains(t, made.text(), "Himachal Pradesh\tShimla\tshimla\nHimachal Pradesh\tSirmaur\tsirmaur sirmour\n")
}
