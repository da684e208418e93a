package confine

import (
	"fmt"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// Mode says what becomes of a system call that a server does not make.
type Mode seccomp.Action

// The modes. The kernel's audit log names each such call (type=1326) but those of Trap.
const (
	Enforce = Mode(seccomp.ActionErrno) // it fails with EPERM, so that a mistake in the list costs one operation and not the server
	Log     = Mode(seccomp.ActionLog)   // it is made
	Trap    = Mode(seccomp.ActionTrap)  // the process ends with the stack that made it: for tests
)

// speculative keeps kernels before 5.16 from taking speculation past stores from
// filtered threads, which would slow all of them down: it protects programs that run the
// code of strangers.
const speculative = seccomp.FilterFlag(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)

// Filter allows all threads of the process, those to come included, the system calls
// of a running server for good. Programs cannot be started any more.
func Filter(m Mode) error {
	known, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("system call filter: %w", err)
	}
	runtime.LockOSThread() // which takes no_new_privs, and gives it to the others
	defer runtime.UnlockOSThread()
	err = seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync | seccomp.FilterFlagLog | speculative,
		Policy:     policy(known, m),
	})
	if err != nil {
		return fmt.Errorf("system call filter: %w", err)
	}
	return nil
}

// bpfCommands are those of bpf(2) that a server makes: it opens a pinned map and writes to it.
var bpfCommands = []uint64{unix.BPF_OBJ_GET, unix.BPF_MAP_UPDATE_ELEM}

func policy(known *arch.Info, m Mode) seccomp.Policy {
	has := func(names []string) (out []string) {
		for _, name := range names {
			if _, ok := known.SyscallNames[name]; ok {
				out = append(out, name)
			}
		}
		return out
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	for _, group := range syscalls {
		allowed.Names = append(allowed.Names, has(group.names)...)
	}
	allowed.NamesWithCondtions = []seccomp.NameWithConditions{{Name: "clone", Conditions: seccomp.ArgumentConditions{
		{Argument: 0, Operation: seccomp.BitsNotSet, Value: namespaces},
		{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD},
	}}}
	for _, command := range bpfCommands {
		allowed.NamesWithCondtions = append(allowed.NamesWithCondtions, seccomp.NameWithConditions{Name: "bpf", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.Equal, Value: command},
		}})
	}
	p := seccomp.Policy{DefaultAction: seccomp.Action(m)}
	if names := has(retried); len(names) > 0 {
		p.Syscalls = append(p.Syscalls, seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: names})
	}
	p.Syscalls = append(p.Syscalls, allowed) // the last: its conditions do not leave the number where others look for it
	return p
}
