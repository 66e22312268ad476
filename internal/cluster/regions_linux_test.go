package cluster_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// insideRegions marks the process that has a network of its own.
const insideRegions = "REGEDGE_REGIONS"

// far are the round-trip times between the regions and the centre.
var far = []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond}

// TestLookupsStayInTheirRegion runs a centre and three regions, each in a network of its own with a
// latency to the centre. Clients of each region send lookups to their edge and to one at the centre.
func TestLookupsStayInTheirRegion(t *testing.T) {
	if os.Getenv(insideRegions) == "" {
		t.Parallel()
		inANetworkOfItsOwn(t)
		return
	}
	if _, err := exec.LookPath("ip"); err != nil {
		testkit.MissingTool(t, "the program ip (Debian: iproute2) is not installed")
	}
	require.NoError(t, ip("link set lo up"))
	require.NoError(t, ip("addr add 10.77.0.1/32 dev lo"))
	places := make([]cluster.Place, len(far))
	for i, away := range far {
		place, end, err := region(i+1, away, loseNothing)
		if err != nil {
			t.Skip("networks can't be joined here: ", err)
		}
		t.Cleanup(end)
		places[i] = place
	}
	f := startAt(t, "10.77.0.1", []placed{
		{"centre", cluster.Place{Host: "10.77.0.1"}}, {"near", places[0]}, {"away", places[1]}, {"far", places[2]},
	})
	f.push(f.before)
	f.inStep()
	_, key := f.account(1)
	f.everywhere(t, "the key", func(e *cluster.Edge) bool {
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+f.watched()[0], key)
		return err == nil && a.status == 200
	})
	t.Logf("%-8s %10s  %-32s %-32s %s", "region", "round trip", "at its own edge: p50, p99", "at the centre: p50, p99", "first of an account at its own edge")
	var all sync.WaitGroup
	centre := f.edge("centre")
	for i, name := range []string{"near", "away", "far"} {
		all.Go(func() {
			client := clientAt(places[i])
			local := f.measure(t, client, f.edge(name), key, many(2000))
			remote := f.measure(t, client, centre, key, many(100))
			first := f.measureFirst(t, client, f.edge(name), i)
			t.Logf("%-8s %10v  %-32s %-32s %v", name, far[i], quantiles(local), quantiles(remote), first[len(first)/2].Round(100*time.Microsecond))
			assert.Less(t, local[len(local)/2], remote[len(remote)/2], name)
			assert.GreaterOrEqual(t, remote[0], far[i], "a packet takes its time")
		})
	}
	all.Wait()
}

// inANetworkOfItsOwn runs this test again in another process, in a network of its own.
// When that ends, however it does, so do the processes that it started: it is the first of
// its process namespace.
func inANetworkOfItsOwn(t *testing.T) {
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.count", "1")
	if testing.Short() {
		again.Args = append(again.Args, "-test.short")
	}
	again.Env = append(os.Environ(), insideRegions+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var said strings.Builder
	again.Stdout, again.Stderr = &said, &said
	runtime.LockOSThread() // the signal for the parent's death is sent when this thread ends
	defer runtime.UnlockOSThread()
	if err := again.Start(); err != nil {
		t.Skip("networks can't be made here: ", err)
	}
	err := again.Wait()
	if strings.Contains(said.String(), "--- SKIP") {
		t.Skip(said.String())
	}
	t.Log(said.String())
	require.NoError(t, err)
}

// many is a number of lookups, fewer in a short run.
func many(n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// clientAt is a client in a place.
func clientAt(place cluster.Place) *http.Client {
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = place.Run(func() error {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: clientsInRegion}}
}

const (
	// clientsInRegion is how many clients a region has.
	clientsInRegion = 4
	// betweenLookups is the pause of a client between lookups, so that the machine, which runs all
	// regions, is not busy, and the latency is measured rather than a queue.
	betweenLookups = 20 * time.Millisecond
)

// measure sends lookups and returns their times, sorted, without the first ones, which connect and
// fetch leases.
func (f *fixture) measure(t *testing.T, client *http.Client, e *cluster.Edge, key string, lookups int) []time.Duration {
	cins := f.watched()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for range clientsInRegion {
		all.Go(func() {
			tick := time.NewTicker(betweenLookups)
			defer tick.Stop()
			for n := range lookups/clientsInRegion + 2 {
				<-tick.C
				began := time.Now()
				a, err := fetch(client, e.URL, "/v1/companies/"+cins[n%len(cins)], key)
				if !assert.NoError(t, err) || n >= 2 && !assert.Equal(t, 200, a.status) {
					return
				}
				if n >= 2 {
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took
}

// measureFirst measures lookups of accounts that have no lease at the edge yet, on open connections.
func (f *fixture) measureFirst(t *testing.T, client *http.Client, e *cluster.Edge, region int) []time.Duration {
	var took []time.Duration
	for n := range 10 {
		_, key, err := f.addAccount(1000*(region+1) + n)
		if !assert.NoError(t, err) {
			break
		}
		// An invalid lookup shows that the key has arrived, without a lease.
		assert.Eventually(t, func() bool {
			a, err := fetch(client, e.URL, "/v1/companies/no-cin", key)
			return err == nil && a.status == 400
		}, patience, 5*time.Millisecond)
		began := time.Now()
		a, err := fetch(client, e.URL, "/v1/companies/"+f.watched()[0], key)
		assert.NoError(t, err)
		assert.Equal(t, 200, a.status)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

func quantiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	return fmt.Sprintf("%v, %v (%d lookups)", sorted[len(sorted)/2].Round(10*time.Microsecond),
		sorted[len(sorted)*99/100].Round(10*time.Microsecond), len(sorted))
}

// network is a network of its own on this machine (network_namespaces(7)).
type network struct{ file *os.File }

// newNetwork makes a network with nothing but a loopback in it.
func newNetwork() (*network, error) {
	n := &network{}
	made := make(chan error)
	go func() {
		// The thread ends with the goroutine: nothing else runs in the new network by chance.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.file, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("make a network: %w", err)
	}
	return n, n.ip("link set lo up")
}

// place is the network, with the address that processes there listen on.
func (n *network) place(host string) cluster.Place {
	return cluster.Place{Host: host, Enter: func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network: %w", err)
		}
		return nil
	}}
}

// ip configures the network.
func (n *network) ip(arguments string) error {
	return n.place("").Run(func() error { return ip(arguments) })
}

// ip configures the network of this thread.
func ip(arguments string) error {
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
	}
	return nil
}

// tunnel creates a network device (TUN) whose packets this process forwards.
func tunnel(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make the device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

const (
	// packetBytes is more than a packet of these devices has.
	packetBytes = 2048
	// inFlight is how many packets may be in flight in one direction.
	inFlight = 1 << 14
)

// forward forwards packets from one end to the other with a delay, until an end is closed. Those that lose
// drops are lost.
func forward(from, to *os.File, takes time.Duration, lose func(packet []byte) bool) {
	type packet struct {
		bytes []byte
		due   time.Time
	}
	line := make(chan packet, inFlight)
	go func() {
		for p := range line {
			time.Sleep(time.Until(p.due))
			to.Write(p.bytes)
		}
	}()
	defer close(line)
	for {
		bytes := make([]byte, packetBytes)
		n, err := from.Read(bytes)
		if err != nil {
			return
		}
		if !lose(bytes[:n]) {
			line <- packet{bytes[:n], time.Now().Add(takes)}
		}
	}
}

func loseNothing([]byte) bool { return false }

// forgetful is a network that forgets the connections to a port, as a router does that starts anew: their
// packets are lost, and neither end is told.
type forgetful struct {
	port             uint16
	mu               sync.Mutex
	known, forgotten map[uint16]bool // ports of the other ends
}

// lose takes a packet of IPv4 with TCP, and reports whether it is lost.
func (f *forgetful) lose(packet []byte) bool {
	header := int(packet[0]&15) * 4 // RFC 791, section 3.1
	if len(packet) < header+4 || packet[9] != unix.IPPROTO_TCP {
		return false
	}
	end, other := binary.BigEndian.Uint16(packet[header:]), binary.BigEndian.Uint16(packet[header+2:]) // RFC 9293
	if end != f.port {
		end, other = other, end
	}
	if end != f.port {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[other] = true
	return f.forgotten[other]
}

// forget returns how many connections there were.
func (f *forgetful) forget() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten, f.known = f.known, map[uint16]bool{}
	return len(f.forgotten)
}

// TestAReplicaFollowsOnceItsNetworkForgotItsConnection: nothing ever comes from its old connection, and
// sqld's own probes would take over ten minutes to say so.
func TestAReplicaFollowsOnceItsNetworkForgotItsConnection(t *testing.T) {
	if os.Getenv(insideRegions) == "" {
		t.Parallel()
		inANetworkOfItsOwn(t)
		return
	}
	require.NoError(t, ip("link set lo up"))
	require.NoError(t, ip("addr add 10.77.0.1/32 dev lo"))
	between := &forgetful{port: 5001, known: map[uint16]bool{}}
	place, end, err := region(1, 0, between.lose)
	if err != nil {
		t.Skip("networks can't be joined here: ", err)
	}
	t.Cleanup(end)
	primary := sqldtest.Start(t, sqld.Config{HTTP: place.Host + ":8080", GRPC: place.Host + ":5001", Enter: place.Enter})
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	replica := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), Primary: "http://" + primary.GRPC, Relay: true})
	db := sqldtest.Open(t, replica)
	follows := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var n int
			return db.QueryRowContext(t.Context(), "SELECT n FROM probe").Scan(&n) == nil && n == want
		}, 3*time.Minute, 50*time.Millisecond)
	}
	follows(1)
	require.NotZero(t, between.forget())
	sqldtest.Exec(t, primary, "UPDATE probe SET n = 2")
	follows(2)
}

// region creates a network with a round-trip time of away to this process's network. Number counts
// from 1; the address there is 10.77.NUMBER.2, and here 10.77.NUMBER.1 and 10.77.0.1.
func region(number int, away time.Duration, lose func(packet []byte) bool) (place cluster.Place, end func(), err error) {
	n, err := newNetwork()
	if err != nil {
		return place, nil, err
	}
	here, err := tunnel(fmt.Sprintf("far%d", number))
	if err != nil {
		return place, nil, err
	}
	var there *os.File
	err = n.place("").Run(func() (err error) {
		there, err = tunnel("centre")
		return err
	})
	if err != nil {
		return place, nil, err
	}
	for _, command := range []string{
		fmt.Sprintf("addr add 10.77.%d.1/24 dev far%d", number, number), fmt.Sprintf("link set far%d up", number),
	} {
		if err := ip(command); err != nil {
			return place, nil, err
		}
	}
	for _, command := range []string{
		fmt.Sprintf("addr add 10.77.%d.2/24 dev centre", number), "link set centre up",
		fmt.Sprintf("route add 10.77.0.1 via 10.77.%d.1", number),
	} {
		if err := n.ip(command); err != nil {
			return place, nil, err
		}
	}
	go forward(here, there, away/2, lose)
	go forward(there, here, away/2, lose)
	return n.place(fmt.Sprintf("10.77.%d.2", number)), func() {
		here.Close()
		there.Close()
		n.file.Close()
	}, nil
}
