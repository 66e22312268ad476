package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
)

// peopleRows is how many people a page lists.
const peopleRows = 50

type peopleData struct {
	People      []person
	Self        int64
	Link, Email string
	Query       string
	After       string // the cursor of the next page, empty on the last one
}

func (d *Dashboard) peoplePage(v *visit) (answer, error) { return d.people(v, "", peopleData{}) }

func (d *Dashboard) people(v *visit, words string, data peopleData) (answer, error) {
	query := v.r.URL.Query()
	data.Self, data.Query = v.user.ID, strings.TrimSpace(printable(query.Get("q"), maxName))
	var err error
	data.People, data.After, err = d.readPeoplePage(v.r.Context(), data.Query, query.Get("after"))
	a := answer{page: "people", title: "People", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, err
}

// readPeoplePage lists everybody whose e-mail address contains search, operators first. The cursor of the next page is
// the position of the last person listed: 0 for an operator or 1 for an owner, then the address.
func (d *Dashboard) readPeoplePage(ctx context.Context, search, after string) (people []person, next string, err error) {
	if after == "" {
		after = "0"
	}
	const statement = selectPerson + ` WHERE instr(u.email, lower(?1)) > 0 AND (1 - u.operator, u.email) > (?2, ?3)
		ORDER BY 1 - u.operator, u.email LIMIT ?4`
	role, err := strconv.Atoi(after[:1])
	if err != nil {
		return nil, "", errMissing
	}
	people, err = d.queryPeople(ctx, statement, search, role, after[1:], peopleRows+1)
	if len(people) <= peopleRows {
		return people, "", err
	}
	people = people[:peopleRows]
	last := people[peopleRows-1]
	if next = "1"; last.Operator {
		next = "0"
	}
	return people, next + last.Email, err
}

func (d *Dashboard) inviteOperator(v *visit) (answer, error) {
	i, words, err := d.invite(v, 0)
	if err != nil {
		return answer{}, err
	}
	return d.people(v, words, peopleData{Link: d.invitationLink(v, i.Token), Email: i.Email})
}

// somebodyElse finds the person of the path, unless it is the visitor: the last operator
// must not remove themselves.
func (d *Dashboard) somebodyElse(v *visit) (person, error) {
	id, err := v.id()
	if err != nil {
		return person{}, err
	}
	const query = selectPerson + ` WHERE u.id = ? AND u.id <> ?`
	p, err := scanPerson(d.config.Ledger.QueryRowContext(v.r.Context(), query, id, v.user.ID))
	if errors.Is(err, sql.ErrNoRows) {
		return person{}, errMissing
	}
	return p, err
}

func (d *Dashboard) removePage(v *visit) (answer, error) {
	p, err := d.somebodyElse(v)
	return answer{page: "remove", title: "Remove a person", data: p}, err
}

// endInvitations ends the invitation of a person, and those that the person made: the audit log shows who invited an
// address last.
const endInvitations = `DELETE FROM invitation WHERE email = ?1 OR ?1 = (SELECT a.actor FROM audit a
	WHERE a.account IS invitation.account AND a.act = ?2 AND a.detail = invitation.email ORDER BY a.id DESC LIMIT 1)`

// removeUser removes a person, unless the visitor was removed at the same moment: two operators who remove each other
// must not leave none.
const removeUser = `DELETE FROM user WHERE id = ?1 AND EXISTS (SELECT 1 FROM user WHERE id = ?2)`

func (d *Dashboard) removePerson(v *visit) (answer, error) {
	p, err := d.somebodyElse(v)
	if id, _ := v.id(); errors.Is(err, errMissing) && id > 0 && id != v.user.ID {
		return see("/people", "removed"), nil // the form was sent twice
	}
	if err != nil {
		return answer{}, err
	}
	act := v.act("remove person", p.Account, p.Email)
	err = d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) error {
		if err := errors.Join(writer.EndOwnerTokensOf(ctx, tx, now, p.Email), notice.RemoveMail(ctx, tx, p.ID), endSessions(ctx, tx, p.ID), forgetDevices(ctx, tx, p.ID), dropTwoFactor(ctx, tx, p.ID)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, endInvitations, p.Email, inviteAct); err != nil {
			return err
		}
		removed, err := tx.ExecContext(ctx, removeUser, p.ID, v.user.ID)
		if err != nil {
			return err
		}
		if n, err := removed.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errMissing)
		}
		return nil
	})
	if errors.Is(err, errMissing) {
		err = nil // nothing was changed
	}
	return see("/people", "removed"), err
}

// hostForm is a host with an optional port: names, IPv4 and IPv6 in brackets.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// base is the base of invitation links: as configured, else the host that the page was
// requested from, if that is a valid host.
func (d *Dashboard) base(v *visit) string {
	switch {
	case d.config.URL != "":
		return d.config.URL
	case !hostForm.MatchString(v.r.Host):
		return ""
	case d.secure(v.r):
		return "https://" + v.r.Host
	}
	return "http://" + v.r.Host
}
