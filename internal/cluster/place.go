package cluster

import "regedge/internal/testkit/freeport"

// loopback is where everything listens unless it is told otherwise.
const loopback = "127.0.0.1"

// Place is where processes run: a network of its own on this machine, or, its zero value,
// the one of this process.
type Place struct {
	// Host is the address that processes there listen on.
	Host string
	// Do calls a function whose sockets and child processes are of the place.
	Do func(func() error) error
}

func (p Place) host() string {
	if p.Host == "" {
		return loopback
	}
	return p.Host
}

func (p Place) do(f func() error) error {
	if p.Do == nil {
		return f()
	}
	return p.Do(f)
}

// address is an address of the place for what the cluster runs there.
func (c *Cluster) address(p Place) (reserved string, err error) {
	var release func()
	err = p.do(func() (err error) {
		reserved, release, err = freeport.Reserve(p.host())
		return err
	})
	if err == nil {
		c.reserved = append(c.reserved, release)
	}
	return reserved, err
}
