package importer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	boardCompanies    = "CIN,CompanyName,CompanyStatus\nU11111GA2020PTC000001,MADE-UP ONE,Active\nU11111GA2020PTC000002,MADE-UP TWO,Active\n"
	boardDirectors    = "din,name,disqualified,designation,appointment_date\n1,MADE-UP ASHA,,Director,2019-01-01\n2,MADE-UP RAVI,,,\n"
	boardAppointments = "cin,din,designation,appointment_date,cessation_date,cessation_reason\n" +
		"U11111GA2020PTC000001,1,,,,\nU11111GA2020PTC000001,2,Manager,2018-01-01,,\nU11111GA2020PTC000002,2,,,,\n"
)

// boards are those of the register, and are held against the appointments.
func (w *world) boards() []string {
	w.t.Helper()
	return w.content()["board"]
}

func TestBoardsFollowWhatTheyAreMadeFrom(t *testing.T) {
	whole := []string{
		"U11111GA2020PTC000001|00000002\tMADE-UP RAVI\tManager\t2018-01-01\n00000001\tMADE-UP ASHA\tDirector\t2019-01-01",
		"U11111GA2020PTC000002|00000002\tMADE-UP RAVI\t\t",
	}
	t.Run("in one import", func(t *testing.T) {
		w := newWorld(t)
		w.run("2025-01-01", w.file(boardAppointments), w.file(boardDirectors), w.file(boardCompanies))
		require.Equal(t, whole, w.boards())
		require.Equal(t, "no row", w.row("SELECT * FROM unboarded"))
	})
	for name, texts := range map[string][]string{
		"when directors come last":    {boardCompanies, boardAppointments, boardDirectors},
		"when appointments come last": {boardCompanies, boardDirectors, boardAppointments},
		"when companies come last":    {boardAppointments, boardDirectors, boardCompanies},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, text := range texts {
				w.text("2025-01-01", text)
				w.boards()
			}
			require.Equal(t, whole, w.boards())
		})
	}
	t.Run("when a director is renamed", func(t *testing.T) {
		w := newWorld(t)
		w.run("2025-01-01", w.file(boardAppointments), w.file(boardDirectors), w.file(boardCompanies))
		w.text("2025-02-01", "din,name,disqualified,designation,appointment_date\n2,MADE-UP RAVI K,,,\n")
		require.Equal(t, "U11111GA2020PTC000002|00000002\tMADE-UP RAVI K\t\t", w.boards()[1])
	})
	t.Run("when an appointment ceases", func(t *testing.T) {
		w := newWorld(t)
		w.run("2025-01-01", w.file(boardAppointments), w.file(boardDirectors), w.file(boardCompanies))
		w.text("2025-02-01", "cin,din,designation,appointment_date,cessation_date,cessation_reason\nU11111GA2020PTC000002,2,,,2025-01-15,resigned\n")
		require.Equal(t, "U11111GA2020PTC000002|", w.boards()[1])
	})
}

func TestBoardsOfAnInterruptedImportAreMadeByTheNextRelease(t *testing.T) {
	w := newWorld(t)
	config := w.config("2025-01-01", w.file(boardAppointments), w.file(boardDirectors), w.file(boardCompanies))
	config.Random = failingReader{}
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, errNoRandom)
	require.Equal(t, "1", w.row("SELECT id FROM unboarded"))

	w.text("2025-02-01", "din,name,disqualified,designation,appointment_date\n2,MADE-UP RAVI K,,,\n")
	require.Len(t, w.boards(), 2)
	require.Equal(t, "no row", w.row("SELECT id FROM unboarded"))
}
