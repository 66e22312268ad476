package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"regedge/replicate/mail"
	"regedge/replicate/notice"
)

// mailPath is the page of an owner's notices by e-mail.
const mailPath = mail.SettingsPath

type mailData struct {
	On         bool
	Email      string
	Low        string // the balance in the form
	Deliveries []deliveryView
	Attempts   int // of each message
	PerDay     int
}

func (d *Dashboard) mailPage(v *visit) (answer, error) {
	low, err := d.proposedLow(v)
	if err != nil {
		return answer{}, err
	}
	return d.mailWith(v, "", low)
}

// mailWith shows the page. low is the balance that was typed or, for an owner without mail, the proposed
// one.
func (d *Dashboard) mailWith(v *visit, words, low string) (answer, error) {
	if !d.config.Mail {
		return answer{}, errMissing
	}
	target, err := notice.ReadMail(v.r.Context(), d.config.Ledger, v.user.ID)
	if err != nil {
		return answer{}, err
	}
	data := mailData{On: target != nil, Email: v.user.Email, Low: low, Attempts: notice.MaxAttempts, PerDay: mail.PerDay}
	if target != nil && (words == "" || low == "") {
		data.Low = strconv.FormatInt(target.Low, 10)
	}
	if data.Deliveries, err = d.deliveries(v.r.Context(), target); err != nil {
		return answer{}, err
	}
	a := answer{page: "mail", title: "E-mail notices", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// setMail switches the visitor's mail on, or sets its threshold.
func (d *Dashboard) setMail(v *visit) (answer, error) {
	typed := v.line("low")
	low, err := lowOf(typed)
	if err != nil {
		return d.mailWith(v, badLow, typed)
	}
	return d.changeMail(v, "set e-mail notices", fmt.Sprintf("below %d credits", low), "mail", func(ctx context.Context, tx *sql.Tx, now int64) error {
		return notice.SetMail(ctx, tx, now, v.user.ID, low)
	})
}

func (d *Dashboard) testMail(v *visit) (answer, error) {
	a, err := d.changeMail(v, "test e-mail notices", "", "tested", func(ctx context.Context, tx *sql.Tx, now int64) error {
		target, err := notice.ReadMail(ctx, tx, v.user.ID)
		if err == nil && target == nil {
			err = errMissing
		}
		if err != nil {
			return err
		}
		return notice.PutTest(ctx, tx, now, *target, testRequest(v))
	})
	if errors.Is(err, notice.ErrRepeated) {
		err = nil // the form was sent twice
	}
	if errors.Is(err, notice.ErrFull) {
		return d.mailWith(v, "Too many messages wait to be sent.", "")
	}
	return a, err
}

func (d *Dashboard) removeMail(v *visit) (answer, error) {
	return d.changeMail(v, "end e-mail notices", "", "mail-off", func(ctx context.Context, tx *sql.Tx, _ int64) error {
		return notice.RemoveMail(ctx, tx, v.user.ID)
	})
}

func (d *Dashboard) changeMail(v *visit, act, detail, done string, change func(context.Context, *sql.Tx, int64) error) (answer, error) {
	if !d.config.Mail {
		return answer{}, errMissing
	}
	return see(mailPath, done), d.config.Writer.Commit(v.r.Context(), v.act(act, v.user.Account, detail), change)
}
