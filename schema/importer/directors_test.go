package importer

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

const (
	listCompanies    = "CIN,CompanyName,CompanyStatus\nU11111GA2020PTC000001,MADE-UP ONE,Active\nU11111GA2020PTC000002,MADE-UP TWO,Active\n"
	listDirectors    = "din,name,disqualified,designation,appointment_date\n1,MADE-UP ASHA,,Director,2019-01-01\n2,MADE-UP RAVI,,,\n"
	listAppointments = "cin,din,designation,appointment_date,cessation_date,cessation_reason\n" +
		"U11111GA2020PTC000001,1,,,,\nU11111GA2020PTC000001,2,Manager,2018-01-01,,\nU11111GA2020PTC000002,2,,,,\n"
)

// lists returns the directors lists, after checking them against the appointments.
func (w *fixture) lists() []string {
	w.t.Helper()
	return w.content()["list"]
}

func TestDirectorsListsFollowAppointments(t *testing.T) {
	whole := []string{
		"U11111GA2020PTC000001|00000002\tMADE-UP RAVI\tManager\t2018-01-01\n00000001\tMADE-UP ASHA\tDirector\t2019-01-01",
		"U11111GA2020PTC000002|00000002\tMADE-UP RAVI\t\t",
	}
	t.Run("in one import", func(t *testing.T) {
		w := newFixture(t)
		w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
		require.Equal(t, whole, w.lists())
	})
	for name, texts := range map[string][]string{
		"when directors come last":    {listCompanies, listAppointments, listDirectors},
		"when appointments come last": {listCompanies, listDirectors, listAppointments},
		"when companies come last":    {listAppointments, listDirectors, listCompanies},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			for _, text := range texts {
				w.text("2025-01-01", text)
				w.lists()
			}
			require.Equal(t, whole, w.lists())
		})
	}
	t.Run("when a director is renamed", func(t *testing.T) {
		w := newFixture(t)
		w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
		w.text("2025-02-01", "din,name,disqualified,designation,appointment_date\n2,MADE-UP RAVI K,,,\n")
		require.Equal(t, "U11111GA2020PTC000002|00000002\tMADE-UP RAVI K\t\t", w.lists()[1])
	})
	t.Run("when an appointment ceases", func(t *testing.T) {
		w := newFixture(t)
		w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
		w.text("2025-02-01", "cin,din,designation,appointment_date,cessation_date,cessation_reason\nU11111GA2020PTC000002,2,,,2025-01-15,resigned\n")
		require.Equal(t, "U11111GA2020PTC000002|", w.lists()[1])
	})
}

// TestTheAppointmentsOfADirectorAreFoundAfterEveryImport by their index: the first one builds it, later ones keep it.
func TestTheAppointmentsOfADirectorAreFoundAfterEveryImport(t *testing.T) {
	w := newFixture(t)
	for i, text := range []string{listAppointments, listDirectors, listAppointments, listCompanies,
		"cin,din,designation,appointment_date,cessation_date,cessation_reason\nU11111GA2020PTC000002,2,,,2025-01-15,resigned\n"} {
		w.text("2025-02-01", text)
		require.Equal(t, "1", w.row(`SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = 'appointment_by_director'`), i)
	}
}

// TestACompanyWithoutAListGetsOne with its next appointment: NULL stands for no directors, too.
func TestACompanyWithoutAListGetsOne(t *testing.T) {
	w := newFixture(t)
	w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
	whole := w.lists()
	w.exec(`UPDATE company SET directors = NULL; DELETE FROM appointment`)
	w.text("2025-02-01", listAppointments)
	require.Equal(t, whole, w.lists())
}

// TestWhatChangesAfterAClockWasAheadIsOfItsOwnTime, also where it changes through an appointment.
func TestWhatChangesAfterAClockWasAheadIsOfItsOwnTime(t *testing.T) {
	w := newFixture(t)
	w.now = w.now.AddDate(1, 0, 0)
	w.run("2025-01-01", w.file(listCompanies), w.file(listDirectors))
	w.now = w.now.AddDate(-1, 0, 0)
	w.text("2025-01-01", listAppointments)
	now := fmt.Sprint(w.now.Unix())
	require.Equal(t, now, w.row(`SELECT last_updated FROM company WHERE cin = 'U11111GA2020PTC000002'`))
	require.Equal(t, now, w.row(`SELECT last_updated FROM director WHERE din = '00000002'`))
}

// TestCompaniesAreInTheRowsOfTheirCINs also in a copy, as pushes and edges have one.
func TestCompaniesAreInTheRowsOfTheirCINs(t *testing.T) {
	w := newFixture(t)
	w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
	w.text("2025-02-01", "CIN,CompanyName,CompanyStatus\nU11111GA2020PTC000000,MADE-UP ZERO,Active\n")
	copied := filepath.Join(w.folder, "copy.db")
	db, err := schema.OpenFile(w.registry)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("VACUUM INTO ?1", copied)
	require.NoError(t, err)
	for _, w.registry = range []string{w.registry, copied} {
		require.Equal(t, "3", w.row("SELECT count(*) FROM company WHERE rowid = cin_number(cin)"))
	}
}

// TestAnImportGoesOnIfARowidIsTaken as after a copy that numbered the rows anew.
func TestAnImportGoesOnIfARowidIsTaken(t *testing.T) {
	w := newFixture(t)
	w.text("2025-01-01", "CIN,CompanyName,CompanyStatus\nU11111GA2020PTC000009,MADE-UP NINE,Active\n")
	w.exec("UPDATE company SET rowid = cin_number('U11111GA2020PTC000002')")
	w.text("2025-01-01", listCompanies)
	w.text("2025-01-01", listDirectors)
	w.text("2025-01-01", listAppointments)
	require.Equal(t, "3", w.row("SELECT count(*) FROM company"))
	require.Equal(t, "1|2", w.row("SELECT sum(rowid = cin_number(cin)), sum(rowid <> cin_number(cin)) FROM company"))
}

// TestDirectorsListsOfAnInterruptedImportFollow interrupts one before its release, and goes on with a
// director of another name.
func TestDirectorsListsOfAnInterruptedImportFollow(t *testing.T) {
	w := newFixture(t)
	config := w.config("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))
	config.Random = failingReader{}
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, errNoRandom)
	w.run("2025-01-01", w.file(listAppointments), w.file(listDirectors), w.file(listCompanies))

	config = w.config("2025-02-01", w.file("din,name,disqualified,designation,appointment_date\n2,MADE-UP RAVI K,,,\n"))
	config.Random = failingReader{}
	_, err = Run(t.Context(), config)
	require.ErrorIs(t, err, errNoRandom)
	require.Contains(t, w.lists()[1], "MADE-UP RAVI\t")
	w.run("2025-02-01", config.Files...)
	require.Contains(t, w.lists()[1], "MADE-UP RAVI K\t")
}

// TestTheLastDayOfDatabasesEndsNothing: they want a day for what goes on.
func TestTheLastDayOfDatabasesEndsNothing(t *testing.T) {
	w := newFixture(t)
	f := w.text("2025-05-05", "cin,din,appointment_date,cessation_date\nU55101GA2006PTC900001,1,2020-01-01,9999-12-31\n"+
		"U55101GA2006PTC900001,2,2020-01-01,31-12-9999\nU55101GA2006PTC900001,3,2020-01-01,12/31/9999 00:00:00\n"+
		"U55101GA2006PTC900001,4,2020-01-01,31-Dec-9999\nU55101GA2006PTC900001,5,2020-01-01,9999-12-30\n")
	require.Equal(t, map[string]int64{"invalid date": 1}, f.Rejected)
	require.Equal(t, []string{"-|-", "-|-", "-|-", "-|-"}, w.rows("SELECT cessation_date, cessation FROM appointment"))
	w.text("2025-05-05", "llpin,name,joined_on,left_on\nABD-0345,A ONE,2020-01-01,9999-12-31\n")
	require.Equal(t, "2020-01-01|-", w.row("SELECT joined_on, left_on FROM partner"))

	w = newFixture(t)
	f = w.text("2025-05-05", `{"companyData":{"company":"A","cin":"U55101GA2006PTC900001","companyStatus":"Active"},"directorData":[{"DIN":"1","FirstName":"B",`+
		`"MCAUserRole":[{"cin":"U55101GA2006PTC900001","cessationDate":"12/31/9999"},{"cin":"ABD-0345","cessationDate":"9999-12-31"}]}]}`)
	require.Empty(t, f.Rejected)
	require.Equal(t, "-|-|-", w.row("SELECT cessation_date, cessation, left_on FROM appointment, partner"))
}

// TestWhatStandsForNoValueEndsNothing: an appointment, or a partner's time, goes on.
func TestWhatStandsForNoValueEndsNothing(t *testing.T) {
	for _, none := range []string{"", "NULL", "nan", "None", `\N`, "-"} {
		for _, date := range []string{"", "NULL", "1900-01-01", "1/1/1970", "0000-00-00", "1969-12-31T18:30:00Z"} {
			w := newFixture(t)
			w.text("2025-05-05", "cin,din,designation,appointment_date,cessation_date,cessation_reason\n"+
				"U55101GA2006PTC900001,12,Director,2020-01-01,"+date+","+none+"\n")
			require.Equal(t, "2020-01-01|-|-", w.row("SELECT appointment_date, cessation_date, cessation FROM appointment"), "%q %q", date, none)
			w.text("2025-05-05", "llpin,din,name,status,joined_on,left_on\nABD-0345,12,A ONE,"+none+","+date+","+date+"\n")
			require.Equal(t, "-|-|-", w.row("SELECT status, joined_on, left_on FROM partner"), "%q %q", date, none)
		}
	}
}
