package handler

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/schema"
)

// tables runs statements on a database of the service's schema.
type tables struct{ *sql.DB }

func newTables(t *testing.T, database schema.Database, inserted string) tables {
	t.Helper()
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "tables.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(context.Background(), db, database))
	_, err = db.Exec(inserted)
	require.NoError(t, err)
	return tables{db}
}

func (d tables) Query(statement string, args []Value) (*Result, error) {
	list := make([]any, len(args))
	for i, v := range args {
		switch v.Kind {
		case Integer:
			list[i] = v.Int
		case Blob:
			list[i] = []byte(v.Text)
		default:
			list[i] = v.Text
		}
	}
	rows, err := d.DB.Query(statement, list...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	result := &Result{Columns: len(columns)}
	for rows.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for _, cell := range cells {
			switch v := cell.(type) {
			case int64:
				result.Values = append(result.Values, integer(v))
			case string:
				result.Values = append(result.Values, text(v))
			case []byte:
				result.Values = append(result.Values, Value{Kind: Blob, Text: string(v)})
			default:
				result.Values = append(result.Values, Value{})
			}
		}
	}
	return result, rows.Err()
}

// TestEachSecretOfAKeyHasItsOwnEnd: after a rotation the old secret stays valid until its own expiry.
func TestEachSecretOfAKeyHasItsOwnEnd(t *testing.T) {
	old := ident.NewKey(func(p []byte) { clear(p) })
	hash, oldHash := ident.Hash(liveKey), ident.Hash(old)
	b := newBench()
	b.Access = newTables(t, schema.Access, fmt.Sprintf(`
		INSERT INTO plan VALUES ('phone', 1, 60, 1000, 0, 1);
		INSERT INTO account (id, plan) VALUES (5, 'phone');
		INSERT INTO api_key VALUES (7, 5, x'%x', 400, x'0418c0000200', 9, 77, x'%x', 200);`, hash, oldHash))
	for _, c := range []struct {
		key   string
		now   int64
		valid bool
	}{{liveKey, 399, true}, {liveKey, 400, false}, {old, 199, true}, {old, 200, false}} {
		b.Clock = fixedClock(c.now)
		r := b.Serve(request("GET", "/v1/directors/1", "authorization", "Bearer "+c.key))
		require.Equal(t, c.valid, r.Status == 200, "%s at %d: %s", c.key, c.now, r.Body)
		if asked := b.meter.asked; c.valid {
			require.Equal(t, charge.Request{ID: asked[0].ID, Account: 5, Key: 7, PerMinute: 60, KeyPerMinute: 9, LimitedUntil: 77,
				Endpoint: charge.Directors, Outcome: charge.Found}, asked[0])
			b.meter.asked = nil
		}
	}
	b.Clock = fixedClock(1)
	for _, key := range []string{liveKey, old} {
		elsewhere := request("GET", "/v1/directors/1", "authorization", "Bearer "+key)
		elsewhere.ClientAddr = func() string { return "198.51.100.1" }
		require.Equal(t, 403, b.Serve(elsewhere).Status, "the networks are those of the key")
	}
	c := &call{Handler: b.Handler}
	c.Clock = fixedClock(1)
	of, refused := c.authenticate(request("GET", "/", "authorization", "Bearer "+liveKey))
	require.Zero(t, refused)
	require.Equal(t, []bool{false, true}, []bool{of.email, of.phone})
}

// TestRecordsAreReadAsTheContractSays: the first text that there is, and the order of lists.
func TestRecordsAreReadAsTheContractSays(t *testing.T) {
	b := newBench()
	b.Registry = newTables(t, schema.Registry, `
		INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners)
			VALUES (3, 'newest', 0, 0, 0, 0, 0, 0), (1, 'a', 0, 0, 0, 0, 0, 0), (2, 'z', 0, 0, 0, 0, 0, 0);
		INSERT INTO company (rowid, cin, company_name, status, main_division, business_activity, principal_business, state, district, pincode,
			address_line, city, email, phone, website, as_of, last_updated)
			VALUES (1, 'U72900ZZ2015PTC000001', 'A', 'ACTIVE', NULL, 'activity', 'principal', 's', 'd', '110001', '1 Road', 'Delhi', 'e', 'p', 'w', '', 0),
				(2, 'U72900ZZ2015PTC000002', 'B', 'ACTIVE', 'division', 'activity', 'principal', 's', 'd', '110001', NULL, 'Delhi', 'e', 'p', 'w', '', 0),
				(3, 'U72900ZZ2015PTC000003', 'C', 'STRUCK OFF', NULL, NULL, 'principal', 's', 'd', '110001', '1 Road', NULL, 'e', 'p', 'w', '', 0);
		INSERT INTO director (din, name, disqualified, as_of, last_updated)
			VALUES ('00000001', 'ASHA', 0, '', 0), ('00000002', 'RAVI', 1, '', 0), ('00000003', 'MIRA', 0, '', 0), ('00000004', 'NOOR', 0, '', 0);
		INSERT INTO appointment (cin, din, designation, appointment_date, cessation_date, cessation, as_of)
			VALUES ('U72900ZZ2015PTC000001', '00000001', 'd1', '2020-01-01', NULL, NULL, ''),
				('U72900ZZ2015PTC000002', '00000001', 'd2', NULL, NULL, NULL, ''), ('U72900ZZ2015PTC000003', '00000001', 'd3', '2021-01-01', NULL, NULL, ''),
				('U72900ZZ2015PTC000009', '00000001', 'd9', '2022-01-01', NULL, NULL, ''),
				('U72900ZZ2015PTC000001', '00000002', 'd1', '2020-01-01', NULL, NULL, ''),
				('U72900ZZ2015PTC000001', '00000003', 'd1', NULL, '2023-01-01', 'CEASED', ''),
				('U72900ZZ2015PTC000002', '00000003', 'd1', NULL, '2021-01-01', 'REMOVED', ''),
				('U72900ZZ2015PTC000003', '00000003', 'd1', NULL, '2020-01-01', 'RESIGNED', '');
		INSERT INTO llp (llpin, llp_name, status, main_division, business_activity, contribution, pincode, address_line, city, as_of, last_updated)
			VALUES ('AAA-0001', 'L', 'ACTIVE', 'division', 'activity', 5, '110001', '1 Road', 'Delhi', '', 0),
				('AAA-0002', 'M', 'ACTIVE', NULL, 'activity', NULL, '999999', NULL, 'Delhi', '', 0), ('AAA-0003', 'N', 'ACTIVE', NULL, NULL, NULL, NULL, '1 Road', NULL, '', 0);
		INSERT INTO pincode VALUES ('110001', 'New Delhi', 'Delhi');
		INSERT INTO partner (llpin, who, din, name, status, joined_on, left_on, as_of)
			VALUES ('AAA-0001', '1', '1', 'KIRAN', NULL, NULL, NULL, ''), ('AAA-0001', '2', '2', 'ZARA', 'ACTIVE', '2020-01-01', '2021-01-01', ''),
				('AAA-0001', '3', NULL, 'ADIL', 'INACTIVE', '2020-01-01', NULL, ''), ('AAA-0001', '4', '4', 'BEN', NULL, '2022-01-01', NULL, '');`)
	for target, want := range map[string]string{
		"companies/U72900ZZ2015PTC000001": `"activity":"activity","state":"s","district":"d","pincode":"110001","contact":{"address":"1 Road, Delhi","email":"e","phone":null,"website":"w"}`,
		"companies/U72900ZZ2015PTC000002": `"activity":"division","state":"s","district":"d","pincode":"110001","contact":{"address":"Delhi",`,
		"companies/U72900ZZ2015PTC000003": `"activity":"principal","state":"s","district":"d","pincode":"110001","contact":{"address":"1 Road",`,
		"directors/1": `"status":"ACTIVE","linked_companies":[` +
			`{"cin":"U72900ZZ2015PTC000003","company_name":"C","status":"STRUCK OFF","designation":"d3","appointment_date":"2021-01-01"},` +
			`{"cin":"U72900ZZ2015PTC000001","company_name":"A","status":"ACTIVE","designation":"d1","appointment_date":"2020-01-01"},` +
			`{"cin":"U72900ZZ2015PTC000002","company_name":"B","status":"ACTIVE","designation":"d2","appointment_date":null}],"linked_companies_total":3}`,
		"directors/2": `"status":"DISQUALIFIED",`,
		"directors/3": `"status":"REMOVED","linked_companies":[],"linked_companies_total":0}`,
		"directors/4": `"status":null,"linked_companies":[],`,
		"llps/AAA0001": `"district":"New Delhi","pincode":"110001","address":"1 Road, Delhi","activity":"division","contribution":5,"partners":[` +
			`{"din":"4","name":"BEN","status":"ACTIVE","joined_on":"2022-01-01","left_on":null},` +
			`{"din":null,"name":"ADIL","status":"INACTIVE","joined_on":"2020-01-01","left_on":null},` +
			`{"din":"2","name":"ZARA","status":"RETIRED","joined_on":"2020-01-01","left_on":"2021-01-01"},` +
			`{"din":"1","name":"KIRAN","status":"ACTIVE","joined_on":null,"left_on":null}],"partners_total":4,`,
		"llps/AAA0002": `"district":null,"pincode":"999999","address":"Delhi","activity":"activity","contribution":null,"partners":[],"partners_total":0,`,
		"llps/AAA0003": `"district":null,"pincode":null,"address":"1 Road","activity":null,`,
	} {
		r := b.get("/v1/" + target)
		require.Equal(t, 200, r.Status, "%s", r.Body)
		require.Equal(t, "newest", header(t, r, HeaderRegistryRelease))
		require.Contains(t, string(r.Body), want)
	}
	for target, want := range map[string]string{
		"companies/U72900ZZ2015PTC000009": CompanyNotFound, "directors/99999999": DirectorNotFound, "llps/ZZZ-9999": LLPNotFound,
		"search/companies?name=nowhere+to+be+found": "", "search/llps?llpin=ZZZ-9999": "",
		"search/companies?name=U72900ZZ2015PTC000009": "", "search/companies?name=U72900ZZ2015PTC00000": "", "search/companies?name=U72900ZZ2015PTC000001": "", "search/companies?name=ZZZ-9999": "",
	} {
		r := b.get("/v1/" + target)
		if want != "" {
			require.Equal(t, want, problemOf(t, r), target)
		}
		require.NotContains(t, string(r.Body), RegistryUnavailable, target)
		require.Equal(t, "newest", header(t, r, HeaderRegistryRelease), target)
	}
	found, err := b.Registry.Query(searchStatement, searchArgs("nowhere", 1))
	require.NoError(t, err)
	require.Equal(t, "newest", found.Row(0)[0].Text)
}
