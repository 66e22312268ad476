package dashboard

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"
)

// Hashes is how many hashes of passwords were computed.
func (d *Dashboard) Hashes() int64 { return d.passwords.computed.Load() }

// CheapPasswords makes hashes cost next to nothing: what is tested is when they are made.
func (d *Dashboard) CheapPasswords() {
	d.passwords = newPasswords(d.config.Random, cost{memoryKiB: 64, passes: 1, lanes: 1})
}

// DearPasswords makes hashes cost what they do in use.
func (d *Dashboard) DearPasswords() { d.passwords = newPasswords(d.config.Random, standardCost) }

// Hashing is how many places at the hashing lane are taken.
func (d *Dashboard) Hashing() int { return len(d.passwords.lane.places) }

// Crowd takes all places at the hashing lane, until the returned function is called.
func (d *Dashboard) Crowd() (end func()) {
	for range hashPlaces {
		d.passwords.lane.places <- struct{}{}
	}
	return func() {
		for range hashPlaces {
			<-d.passwords.lane.places
		}
	}
}

// HashAt is the stored form of a password at another cost.
func (d *Dashboard) HashAt(password string, passes, memoryKiB uint32, lanes uint8) string {
	salt := []byte("a salt for tests")
	c := cost{memoryKiB: memoryKiB, passes: passes, lanes: lanes}
	return encodeHash(c, salt, argon2.IDKey([]byte(password), salt, passes, memoryKiB, lanes, hashBytes))
}

func newTestPasswords() *passwords {
	return newPasswords(func(p []byte) { rand.Read(p) }, cost{memoryKiB: 64, passes: 1, lanes: 1})
}

func TestPasswordsMatchThemselvesOnly(t *testing.T) {
	p := newTestPasswords()
	own, err := p.enter()
	require.NoError(t, err)
	stored, err := own.hash(t.Context(), "four plain words here")
	require.NoError(t, err)
	again, err := own.hash(t.Context(), "four plain words here")
	require.NoError(t, err)
	require.NotEqual(t, stored, again, "each has a salt of its own")
	for password, want := range map[string]bool{"four plain words here": true, "four plain words herE": false, "": false} {
		got, err := own.matches(t.Context(), stored, password)
		require.NoError(t, err)
		require.Equal(t, want, got, password)
	}
	got, err := own.matches(t.Context(), p.decoy, "four plain words here")
	require.NoError(t, err)
	require.False(t, got)
}

// TestAHashOfAnotherCostIsOutdated, a dearer one too.
func TestAHashOfAnotherCostIsOutdated(t *testing.T) {
	p := newTestPasswords()
	for c, want := range map[cost]bool{p.cost: false, {64, 2, 1}: true, {64, 1, 2}: true, {128, 1, 1}: true, {32, 1, 1}: true} {
		require.Equal(t, want, p.outdated(encodeHash(c, make([]byte, saltBytes), make([]byte, hashBytes))), c)
	}
	require.False(t, p.outdated("no hash"))
}

// TestALaneThatHangsIsGivenUp by a request that nobody ends.
func TestALaneThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPasswords()
		own, err := p.enter()
		require.NoError(t, err)
		p.lane.one <- struct{}{}
		began := time.Now()
		_, err = own.hash(context.WithoutCancel(t.Context()), "four plain words here")
		require.ErrorIs(t, err, errBusy)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestSixteenWaitForTheLane, and no more: each holds a request and its memory.
func TestSixteenWaitForTheLane(t *testing.T) {
	p := newTestPasswords()
	for range 16 {
		_, err := p.enter()
		require.NoError(t, err)
	}
	_, err := p.enter()
	require.ErrorIs(t, err, errBusy)
	(&turn{p}).leave()
	_, err = p.enter()
	require.NoError(t, err)
}

func TestHashingWaitsForTheLaneAndGivesUp(t *testing.T) {
	p := newTestPasswords()
	p.lane.one <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	own, err := p.enter()
	require.NoError(t, err)
	_, err = own.hash(ctx, "four plain words here")
	require.ErrorIs(t, err, errBusy)
	require.Zero(t, p.computed.Load())
}

func TestAHashThatAsksForTooMuchIsNotRead(t *testing.T) {
	const good = "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"
	_, _, _, err := decodeHash(good)
	require.NoError(t, err)
	for _, change := range [][2]string{
		{"argon2id", "argon2i"}, {"v=19", "v=18"}, {"m=64", "m=9999999"}, {"m=64", "m=0"}, {"m=64", "m=064"}, {"t=1", "t=99"}, {"t=1", "t=0"},
		{"p=1", "p=0"}, {"p=1", "p=300"}, {"p=1", "p=1,x"}, {"$AAAAAAAAAAAAAAAAAAAAAA$", "$AA$"}, {"AAAA$", "AA=A$"}, {"$v", "$$v"},
	} {
		_, _, _, err := decodeHash(strings.Replace(good, change[0], change[1], 1))
		require.Error(t, err, change)
	}
}

func FuzzDecodeHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=65536,t=3,p=4$$")
	f.Add("$$$$$")
	f.Fuzz(func(t *testing.T, stored string) {
		c, salt, hash, err := decodeHash(stored)
		if err != nil {
			return
		}
		require.Equal(t, stored, encodeHash(c, salt, hash), "one form for one meaning")
		require.LessOrEqual(t, c.memoryKiB, maxCost.memoryKiB)
	})
}

func TestWhatIsNoPassword(t *testing.T) {
	for password, fits := range map[string]bool{
		"four plain words here": true,
		"पासवर्ड बहुत लंबा है":  true,
		"elevenchars":                                      false,
		"aaaaaaaaaaaaaaaa":                                 false,
		"abacabadabac":                                     false, // four characters
		"abcabcabcabcabc":                                  false,
		"Someone@Example.com":                              false,
		strings.Repeat("words ", 40):                       false,
		strings.Repeat("wörds and ", 20):                   true, // 200 characters, and more bytes
		strings.Repeat("wörds and ", 20) + "x":             false,
		"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4": false,
	} {
		require.Equal(t, fits, fitPassword(password, "someone@example.com", "Acme Traders") == "", password)
	}
}

func TestAPasswordThatIsTriedFirstIsRefused(t *testing.T) {
	for _, password := range []string{
		"password1234", "Password1234!", "P@ssw0rd2026!", "passwordpassword", "PASSWORD password", "qwertyuiop123", "1qaz2wsx3edc",
		"123456789012", "abcdefghijkl", "ponmlkjihgfe", "abcdefg7654321xyz", "letmeinletmein", "ｐａｓｓｗｏｒｄ１２３４", "unbelievable", "administrator", "1234administrator",
		"ada.lovelace1", "AdaLovelace2026", "l0velaceAda!!", "Acme Traders 1", "acmetraders2026", "example.com12", "regedge-2026!", "regedgepassword",
		"acme20261234acme", "lovelace-lovelace-xyz",
	} {
		require.NotEmpty(t, fitPassword(password, "ada.lovelace@example.com", "Acme Traders"), password)
	}
	for _, password := range []string{
		"four plain words here", "correct horse battery", "ada likes cold tea", "acme buys rivers", "x7-kQ9-mmT-2pL", "monkey football rain", "lovelace-wxkq",
	} {
		require.Empty(t, fitPassword(password, "ada.lovelace@example.com", "Acme Traders"), password)
	}
}

func TestTheListOfCommonPasswordsIsWhole(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(commonPasswords, "\n"), "\n")
	require.Greater(t, len(lines), 10_000)
	for _, line := range lines {
		require.True(t, strings.HasPrefix(line, "#") || line == strings.ToLower(line) && len(line) >= minLeft, line)
	}
}

// NoteSignIn counts a sign-in of a person.
func (d *Dashboard) NoteSignIn(email string) { d.entries.note(email, d.now()) }
