package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/internal/initiator/load"
)

// The loopback limit is what the kernel's TCP lets anyone reach on this machine:
// requests and replies of the lengths that reads of 4 KiB have, without protocol,
// storage or event loop. Both ends are this program, each a locked thread on its
// CPU that answers what one blocking read brought with one write.
const (
	loopRequest = 48
	loopReply   = 48 + loopData
	loopData    = 4096
	loopRead    = 256 << 10 // bytes that one read may bring
	// loopArena is the memory that replies come from: no more of it is in the CPU's
	// cache than of cached blocks.
	loopArena = 512 << 20
)

// loopServe is the server: it prints its port and serves one connection after the
// other until it is killed.
type loopServe struct{}

// Run serves.
func (loopServe) Run() error {
	runtime.LockOSThread()
	signal.Reset(os.Interrupt, unix.SIGTERM) // main waits for them
	arena, err := unix.Mmap(-1, 0, loopArena, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("memory of replies: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("loopback server: %w", err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("loopback server: %w", err)
		}
		fd, err := takeBlocking(conn)
		if err != nil {
			return err
		}
		answer(fd, arena)
		unix.Close(fd)
	}
}

// takeBlocking gets the socket out of the runtime's poller.
func takeBlocking(conn net.Conn) (fd int, err error) {
	defer conn.Close()
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	defer f.Close()
	if fd, err = unix.Dup(int(f.Fd())); err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, errors.Join(unix.SetNonblock(fd, false), evloop.SetNoDelay(fd))
}

// answer replies to requests until the peer closes.
func answer(fd int, arena []byte) {
	in, header := make([]byte, loopRead), make([]byte, loopReply-loopData)
	iov := make([]unix.Iovec, 0, 2*loopRead/loopRequest)
	random := uint64(1)
	for have := 0; ; {
		n, errno := evloop.Read(fd, in[have:])
		if errno != 0 || n == 0 {
			return
		}
		have += n
		for iov = iov[:0]; have >= loopRequest; have -= loopRequest {
			random = random*0x5851f42d4c957f2d + 0x14057b7ef767814f
			data := arena[random>>32%(loopArena/loopData)*loopData:]
			iov = append(iov, unix.Iovec{Base: &header[0], Len: uint64(len(header))}, unix.Iovec{Base: &data[0], Len: loopData})
		}
		if sendAll(fd, iov) != nil {
			return
		}
	}
}

// sendAll waits until all is sent.
func sendAll(fd int, iov []unix.Iovec) error {
	for len(iov) > 0 {
		n, errno := evloop.Sendmsg(fd, iov[:min(len(iov), 1024)], 0)
		if errno == unix.EAGAIN {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			continue
		}
		if errno != 0 {
			return syscall.Errno(errno)
		}
		for ; len(iov) > 0 && n >= int(iov[0].Len); iov = iov[1:] {
			n -= int(iov[0].Len)
		}
		if n > 0 {
			iov[0].Base = (*byte)(unsafe.Add(unsafe.Pointer(iov[0].Base), n))
			iov[0].SetLen(int(iov[0].Len) - n)
		}
	}
	return nil
}

// loopDrive is the client: it keeps requests outstanding and prints what
// tgtload prints of its own.
type loopDrive struct {
	Address         string        `arg:""`
	Depth           int           `default:"32"`
	Warmup, Runtime time.Duration `required:""`
	Pid             int           `required:"" help:"Of the server."`
}

// Run drives.
func (d *loopDrive) Run() error {
	runtime.LockOSThread()
	conn, err := net.Dial("tcp", d.Address)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	fd, err := takeBlocking(conn)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	c := loopClient{fd: fd, in: make([]byte, loopRead), out: make([]byte, loopRead)}
	err = errors.Join(c.ask(d.Depth), c.until(time.Now().Add(d.Warmup)))
	from, done, began := d.clocks(), c.done, time.Now()
	err = errors.Join(err, c.until(began.Add(d.Runtime)))
	seconds, to := time.Since(began).Seconds(), d.clocks()
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	n := float64(c.done - done)
	per := func(i int) load.CPU {
		spent := (to[i] - from[i]).Seconds()
		return load.CPU{Seconds: spent, PerIO: spent * 1e6 / n}
	}
	server, rate := per(0), n/seconds
	return json.NewEncoder(os.Stdout).Encode(load.Result{Seconds: seconds, Reads: uint64(n), IOPS: rate, BytesPerSecond: rate * loopData,
		Latency: load.Latency{Mean: float64(d.Depth) / rate * 1e6}, ServerCPU: &server, ClientCPU: per(1),
		Connections: load.Spread{Count: 1, Min: rate, Mean: rate, Max: rate}})
}

// clocks are the CPU times of server and client.
func (d *loopDrive) clocks() (t [2]time.Duration) {
	for i, pid := range []int{d.Pid, os.Getpid()} {
		t[i], _ = load.ProcessTime(pid) // 0 where there is none: the row says so
	}
	return t
}

type loopClient struct {
	fd      int
	in, out []byte
	have    int
	done    int
}

// ask sends n requests.
func (c *loopClient) ask(n int) error {
	iov := []unix.Iovec{{Base: &c.out[0]}}
	iov[0].SetLen(n * loopRequest)
	return sendAll(c.fd, iov)
}

// until sends a request for every reply.
func (c *loopClient) until(end time.Time) error {
	for time.Now().Before(end) {
		n, errno := evloop.Read(c.fd, c.in)
		if errno != 0 || n == 0 {
			return fmt.Errorf("receive: %w", syscall.Errno(errno))
		}
		c.have += n
		replies := c.have / loopReply
		if replies == 0 {
			continue
		}
		c.have -= replies * loopReply
		c.done += replies
		if err := c.ask(replies); err != nil {
			return err
		}
	}
	return nil
}

// loopServer is the running server of the loopback limit.
type loopServer struct {
	cmd     *exec.Cmd
	address string
}

// startLoop starts this program as the server on its CPU.
func startLoop(o *options) (*loopServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("loopback server: %w", err)
	}
	line := append(o.place(o.Server), self, "loop-serve")
	s := &loopServer{cmd: exec.Command(line[0], line[1:]...)}
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("loopback server: %w", err)
	}
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		s.stop()
		return nil, fmt.Errorf("port of the loopback server: %w", err)
	}
	s.address = fmt.Sprintf("127.0.0.1:%d", port)
	return s, nil
}

func (s *loopServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// run drives it as deep as the workload drives a target.
func (s *loopServer) run(ctx context.Context, c client, w workload) (*load.Result, float64, error) {
	from, err := look(&server{cmd: s.cmd})
	if err != nil {
		return nil, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	line := slices.Concat(c.place, []string{self, "loop-drive", s.address, "--depth", strconv.Itoa(w.depth), "--pid", strconv.Itoa(s.cmd.Process.Pid),
		"--warmup", c.plan.warmup.String(), "--runtime", c.plan.runtime.String()})
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", line, err)
	}
	to, err := look(&server{cmd: s.cmd})
	if err != nil {
		return nil, 0, err
	}
	r, err := parseResult(out)
	return r, foreign(from, to, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), err
}
