package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The variables by which the test's own program is asked to confine itself as a unit says, and to
// become another program.
const (
	confinedProgram = "CONFINED_PROGRAM"
	confinedUnit    = "CONFINED_UNIT"
)

// becomeConfined does so, if it was asked.
func becomeConfined() {
	program := os.Getenv(confinedProgram)
	if program == "" {
		return
	}
	unit, err := os.ReadFile(os.Getenv(confinedUnit))
	if err == nil {
		runtime.LockOSThread() // the filter belongs to the thread that becomes the program
		err = confine(string(unit))
	}
	if err == nil {
		os.Unsetenv(confinedProgram)
		os.Unsetenv(confinedUnit)
		err = syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "confine:", err)
	os.Exit(125)
}

// confine filters system calls as systemd would for the unit.
func confine(unit string) error {
	allowed, err := allowedCalls(unit)
	if err != nil {
		return err
	}
	filter := refuseExecutable(strings.Contains(unit, "\nMemoryDenyWriteExecute=yes\n"))
	for _, number := range allowed {
		filter = append(filter, filterJump(unix.BPF_JEQ, uint32(number), 0, 1), filterReturn(unix.SECCOMP_RET_ALLOW))
	}
	filter = append(filter, filterReturn(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// The offsets of a system call's number and third argument in struct seccomp_data.
const (
	numberOffset = 0
	protOffset   = 32
)

// refuseExecutable begins a filter: memory that is writable and executable, or becomes executable, is
// refused. It leaves the call's number in the accumulator.
func refuseExecutable(refuse bool) []unix.SockFilter {
	filter := []unix.SockFilter{filterLoad(numberOffset)}
	if !refuse {
		return filter
	}
	for _, call := range []struct{ number, bits uint32 }{
		{unix.SYS_MMAP, unix.PROT_WRITE | unix.PROT_EXEC}, {unix.SYS_MPROTECT, unix.PROT_EXEC}, {unix.SYS_PKEY_MPROTECT, unix.PROT_EXEC},
	} {
		filter = append(filter, filterJump(unix.BPF_JEQ, call.number, 0, 4), filterLoad(protOffset),
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: call.bits},
			filterJump(unix.BPF_JEQ, call.bits, 0, 1), filterReturn(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)), filterLoad(numberOffset))
	}
	return filter
}

func filterLoad(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func filterJump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: yes, Jf: no}
}

func filterReturn(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}

// allowedCalls are the numbers of the system calls that a unit's SystemCallFilter lines allow: the
// first names a set, those with ~ take sets from it.
func allowedCalls(unit string) ([]int, error) {
	numbers, err := callNumbers()
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch("SystemCallFilter=@default\n"+unit, -1) {
		for _, set := range strings.Fields(line[2]) {
			if err := eachCall(set, func(call string) { allowed[call] = line[1] == "" }); err != nil {
				return nil, err
			}
		}
	}
	var list []int
	for call, ok := range allowed {
		if number, known := numbers[call]; ok && known {
			list = append(list, number)
		}
	}
	return list, nil
}

// eachCall calls f with every system call of a set of systemd.
func eachCall(set string, f func(string)) error {
	said, err := exec.Command("systemd-analyze", "syscall-filter", set).Output()
	if err != nil {
		return fmt.Errorf("systemd-analyze syscall-filter %s: %w", set, err)
	}
	for _, line := range strings.Split(string(said), "\n")[1:] {
		switch name := strings.TrimSpace(line); {
		case name == "" || strings.HasPrefix(name, "#"):
		case strings.HasPrefix(name, "@"):
			if err := eachCall(name, f); err != nil {
				return err
			}
		default:
			f(name)
		}
	}
	return nil
}

// callNumbers maps the names of system calls to their numbers, from the source of x/sys.
func callNumbers() (map[string]int, error) {
	dir := os.Getenv("XSYS")
	source, err := os.ReadFile(filepath.Join(dir, "zsysnum_linux_"+runtime.GOARCH+".go"))
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	for _, row := range regexp.MustCompile(`SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(string(source), -1) {
		numbers[strings.ToLower(row[1])], _ = strconv.Atoi(row[2])
	}
	return numbers, nil
}
