package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"regedge/internal/cluster"
)

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

// do calls f on a thread of the network: sockets that it opens and processes that it
// starts belong to there.
func (n *network) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the network: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// ip configures the network.
func (n *network) ip(arguments string) error {
	return n.do(func() error { return ip(arguments) })
}

// ip configures the network of this thread.
func ip(arguments string) error {
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
	}
	return nil
}

// tunnel is a network device whose packets this process carries.
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
	// underWay is how many packets may be under way in one direction.
	underWay = 1 << 14
)

// carry carries packets from one end to the other, each of which takes a time, until an
// end is closed.
func carry(from, to *os.File, takes time.Duration) {
	type packet struct {
		bytes []byte
		due   time.Time
	}
	line := make(chan packet, underWay)
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
		line <- packet{bytes[:n], time.Now().Add(takes)}
	}
}

// region makes a place that is so far from this process's network, there and back. Number
// is from 1; the place is 10.77.NUMBER.2, and this network 10.77.NUMBER.1 and 10.77.0.1.
func region(number int, away time.Duration) (place cluster.Place, end func(), err error) {
	n, err := newNetwork()
	if err != nil {
		return place, nil, err
	}
	here, err := tunnel(fmt.Sprintf("far%d", number))
	if err != nil {
		return place, nil, err
	}
	var there *os.File
	err = n.do(func() (err error) {
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
	go carry(here, there, away/2)
	go carry(there, here, away/2)
	return cluster.Place{Host: fmt.Sprintf("10.77.%d.2", number), Do: n.do}, func() {
		here.Close()
		there.Close()
		n.file.Close()
	}, nil
}
