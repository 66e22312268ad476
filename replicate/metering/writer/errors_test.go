package writer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
)

// TestErrorsOfTheLedgerAreThoseOfTheAPI, with the ledger's words.
func TestErrorsOfTheLedgerAreThoseOfTheAPI(t *testing.T) {
	for from, to := range map[error]error{
		ledger.ErrNoAccount: ErrNotFound, ledger.ErrNoEdge: ErrNotFound, ledger.ErrNoPlan: ErrUnknownPlan,
		ledger.ErrTaken: ErrTaken, ledger.ErrAmount: ErrMalformed, ledger.ErrFenced: ErrFenced,
	} {
		said := fmt.Errorf("of account 7: %w", from)
		require.ErrorIs(t, apiErrorOf(said), to)
		require.ErrorContains(t, apiErrorOf(said), said.Error())
	}
	other := errors.New("the disk is full")
	require.Equal(t, other, apiErrorOf(other))
}
