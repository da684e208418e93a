package confine

// syscalls are those that a running server makes, by what makes them, the most
// frequent first: kernels before 5.11 compare one after the other. Names that an
// architecture does not have are left out there.
//
// The tests of daemon run their servers with this list, and any other call ends
// them with a stack trace (Trap): serving, live changes, encryption, caches, NVMe
// and loop devices, the end. iSER's libraries are in the lab's guest.
var syscalls = []struct {
	why   string
	names []string
}{
	{"event threads", []string{"epoll_pwait", "epoll_pwait2", "io_uring_enter", "read", "readv", "write", "sendmsg", "recvfrom", "recvmsg", "sendto", "epoll_ctl", "futex"}},
	{"volumes", []string{"pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "writev", "fdatasync", "fsync", "sync_file_range", "fallocate", "ftruncate", "lseek", "fadvise64", "copy_file_range", "ioctl"}},
	{"the Go runtime", []string{
		"nanosleep", "clock_nanosleep", "sched_yield", "tgkill", "getpid", "gettid", "rt_sigreturn", "rt_sigprocmask", "rt_sigaction", "sigaltstack", "rt_sigtimedwait",
		"madvise", "mmap", "munmap", "mprotect", "mremap", "mincore", "brk", "clock_gettime", "clock_getres", "gettimeofday", "time", "getcpu", "getrandom", "futex_waitv",
		"timer_create", "timer_settime", "timer_delete", "setitimer", "sched_getaffinity", "exit", "exit_group", "restart_syscall", "uname", "sysinfo", "prlimit64", "getrlimit", "setrlimit", "getrusage", "times",
	}},
	{"threads, also of C libraries", []string{"set_robust_list", "get_robust_list", "rseq", "set_tid_address", "arch_prctl", "membarrier", "sched_setaffinity", "sched_getparam", "sched_getscheduler", "sched_getattr", "sched_setattr", "setpriority", "prctl"}},
	{"rings, events and pipes", []string{"io_uring_setup", "io_uring_register", "eventfd2", "epoll_create1", "epoll_create", "epoll_wait", "pipe2", "poll", "ppoll", "pselect6", "select", "timerfd_create", "timerfd_settime", "memfd_create"}},
	{"memory of a node, locked memory, the segment", []string{"mbind", "move_pages", "get_mempolicy", "set_mempolicy", "mlock", "mlock2", "munlock", "msync"}},
	{"files", []string{
		"openat", "open", "openat2", "close", "close_range", "fstat", "stat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "fcntl", "flock", "dup", "dup2", "dup3",
		"access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "link", "linkat",
		"fchmod", "chmod", "fchown", "fchmodat", "utimensat", "umask", "name_to_handle_at", "fgetxattr", "getxattr", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	}},
	{"sockets", []string{"socket", "socketpair", "bind", "listen", "accept4", "accept", "connect", "getsockname", "getpeername", "getsockopt", "setsockopt", "shutdown", "sendmmsg", "recvmmsg", "sendfile", "splice"}},
	{"who it is", []string{"getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "getppid", "capget", "getpgrp"}},
}

// retried are calls whose callers go another way if the kernel does not have them.
// The flags of clone3 lie where a filter cannot look at them; with clone they can be.
var retried = []string{"clone3"}

// namespaces are the flags of clone(2) for which the process would leave those that it
// is in: CLONE_NEWTIME is not among them, for clone(2) takes it for a signal.
const namespaces = 0x7e020000
