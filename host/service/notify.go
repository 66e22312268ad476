package service

import (
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// tellInit tells the init system a state, if that asked for it (sd_notify(3)). It would notice a lost
// message: the start or the watchdog times out.
func tellInit(state string) { _, _ = daemon.SdNotify(false, state) }

// watchdog returns a channel that ticks twice within the time in which the init system wants to hear
// from this process, and its stop function. The channel is nil when nobody asks.
func watchdog() (<-chan time.Time, func()) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(max(within/2, time.Millisecond))
	return ticker.C, ticker.Stop
}
