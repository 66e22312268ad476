package sqld

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give a server a process group of its own, since an interrupt from the terminal must reach
// its parent only, which stops its children in order. When the parent dies, the server is asked to end.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// birth tells a running process from others that have had its id: the boot of the machine, and the time
// since then. It is empty for a process that has ended.
func birth(pid int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The fields after the name, which stands in parentheses and may contain any character: the state
	// is the first, the number of threads the 18th, the start time the 20th (proc_pid_stat(5)). While
	// the first thread of a process is a zombie, others may still hold its files.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if len(fields) < 20 || fields[0] == "X" || fields[0] == "Z" && fields[17] <= "1" {
		return ""
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + " " + fields[19]
}

// freeSpace is what the disk of a directory has left for its user, in bytes.
func freeSpace(dir string) (int64, error) {
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		return 0, err
	}
	return int64(system.Bavail) * system.Bsize, nil
}
