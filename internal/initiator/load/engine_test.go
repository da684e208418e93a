package load

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/internal/initiator"
	"lunar/internal/numa"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var diskUnit = Unit{BlockSize: 512, Blocks: diskBlocks}

func quick() Workload {
	return Workload{Depth: 8, Sizes: []Share{{4096, 1}}, ReadPercent: 50, Random: true,
		Seed: 1, Warmup: 5 * time.Millisecond, Runtime: 60 * time.Millisecond, CPU: -1}
}

func runLoad(t *testing.T, d *diskTarget, n int, o initiator.Options, w Workload) *Result {
	t.Helper()
	conns := d.dial(n, o)
	r, err := Run(t.Context(), conns, diskUnit, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conns {
		if code, err := c.Logout(0); err != nil || code != 0 {
			t.Errorf("logout after the run: %d %v", code, err)
		}
	}
	return r
}

// runUntil gives a run four times as long, again and again, until it was enough: a busy
// machine may give it no time.
func runUntil(t *testing.T, d *diskTarget, n int, o initiator.Options, w Workload, enough func(*Result) bool) *Result {
	t.Helper()
	r := runLoad(t, d, n, o, w)
	for !enough(r) && w.Runtime < 20*time.Second {
		w.Runtime *= 4
		r = runLoad(t, d, n, o, w)
	}
	return r
}

func both(r *Result) bool { return r.Reads > 0 && r.Writes > 0 }

// TestVerifiedRuns moves data in every way that can be negotiated, and expects
// each block back as it was written.
func TestVerifiedRuns(t *testing.T) {
	keys := func(k ...initiator.Key) initiator.Options { return initiator.Options{Keys: k} }
	tests := []struct {
		name    string
		options initiator.Options
		sizes   []Share
		connections,
		depth int
	}{
		{"immediate", keys(), []Share{{4096, 1}}, 1, 8},
		{"R2T alone", keys(initiator.Key{Name: "ImmediateData", Value: "No"}, initiator.Key{Name: "InitialR2T", Value: "Yes"},
			initiator.Key{Name: "MaxBurstLength", Value: "16384"}), []Share{{65536, 1}}, 1, 4},
		{"unsolicited", keys(initiator.Key{Name: "ImmediateData", Value: "No"}, initiator.Key{Name: "FirstBurstLength", Value: "16384"}),
			[]Share{{32768, 1}}, 2, 4},
		{"small segments", keys(initiator.Key{Name: "MaxRecvDataSegmentLength", Value: "1024"}), []Share{{16384, 1}}, 1, 4},
		{"segments that need padding", keys(initiator.Key{Name: "MaxRecvDataSegmentLength", Value: "1022"},
			initiator.Key{Name: "FirstBurstLength", Value: "3001"}), []Share{{8192, 1}}, 1, 4},
		{"mix with digests", initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"}, []Share{{512, 1}, {12288, 2}, {131072, 1}}, 3, 4},
		{"digests and padding", initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C", Keys: initiator.Keys{
			{Name: "MaxRecvDataSegmentLength", Value: "1022"}, {Name: "FirstBurstLength", Value: "3001"}}}, []Share{{8192, 1}}, 1, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDiskTarget(t)
			w := quick()
			w.Verify, w.Sizes, w.Depth = true, test.sizes, test.depth
			r := runUntil(t, d, test.connections, test.options, w, both)
			if r.Verification.Miscompares != 0 || r.Verification.Checked == 0 {
				t.Errorf("verification %+v", r.Verification)
			}
			if r.Reads == 0 || r.Writes == 0 || len(r.Statuses) != 0 || r.Connections.Count != test.connections {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestSequentialFillIsReadBackWhole(t *testing.T) {
	d := newDiskTarget(t)
	w := quick()
	// 16 commands cover the range; the run writes it at least once.
	w.Verify, w.Random, w.ReadPercent, w.Sizes, w.FirstLBA, w.Blocks = true, false, 0, []Share{{8192, 1}}, 64, 256
	whole := func(r *Result) bool { return r.Verification.Checked == 256 }
	if r := runUntil(t, d, 2, initiator.Options{}, w, whole); !whole(r) {
		t.Errorf("%d blocks checked, expected 256", r.Verification.Checked)
	}
}

func TestVerificationFindsOneCorruptBlock(t *testing.T) {
	d := newDiskTarget(t)
	d.corrupt = func(lba uint64, data []byte) {
		if at := 100 - int(lba); at >= 0 && at*512 < len(data) {
			data[at*512+17] ^= 0x40
		}
	}
	w := quick()
	w.Verify, w.ReadPercent, w.Random = true, 0, false
	r := runUntil(t, d, 1, initiator.Options{}, w, func(r *Result) bool { return r.Verification.Miscompares > 0 })
	if r.Verification.Miscompares != 1 || !strings.HasPrefix(r.Verification.First, "LBA 100 byte 16:") {
		t.Errorf("verification %+v, expected one miscompare in LBA 100 byte 16", r.Verification)
	}
}

// TestWindowIsHonoured relies on the disk, which hangs up on an overrun.
func TestWindowIsHonoured(t *testing.T) {
	d := newDiskTarget(t)
	d.window = 2
	w := quick()
	w.Depth = 16
	if r := runUntil(t, d, 2, initiator.Options{}, w, both); !both(r) {
		t.Errorf("result %+v", r)
	}
}

func TestBadStatusIsCounted(t *testing.T) {
	d := newDiskTarget(t)
	d.status = initiator.StatusBusy
	w := quick()
	w.Verify = true
	r := runUntil(t, d, 1, initiator.Options{}, w, func(r *Result) bool { return len(r.Statuses) > 0 })
	if r.Statuses["0x08"] == 0 || r.Reads+r.Writes != 0 || r.FirstFailure == nil || r.FirstFailure.Status != initiator.StatusBusy {
		t.Errorf("statuses %v, first failure %+v", r.Statuses, r.FirstFailure)
	}
}

func TestTargetHangsUp(t *testing.T) {
	d := newDiskTarget(t)
	conns := d.dial(1, initiator.Options{})
	w := quick()
	w.Runtime = time.Minute
	time.AfterFunc(20*time.Millisecond, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conns[0].Close()
	})
	if r, err := Run(t.Context(), conns, diskUnit, w); err == nil {
		t.Errorf("got %+v, expected an error", r)
	}
}

func TestCancelReportsWhatWasMeasured(t *testing.T) {
	d := newDiskTarget(t)
	w := quick()
	w.Warmup, w.Runtime, w.ReadPercent = 0, time.Minute, 100
	ctx, cancel := context.WithCancel(t.Context())
	var served atomic.Int64
	d.corrupt = func(uint64, []byte) { // spoils nothing
		if served.Add(1) == 100 {
			cancel()
		}
	}
	r, err := Run(ctx, d.dial(1, initiator.Options{}), diskUnit, w)
	if err != nil || r.Reads == 0 || r.Seconds > 30 {
		t.Errorf("%+v %v", r, err)
	}
	w.Warmup = time.Minute
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, d.dial(1, initiator.Options{}), diskUnit, w); !errors.Is(err, errStopped) {
		t.Errorf("got %v, expected %v", err, errStopped)
	}
}

// TestRealTime: the event thread is a real-time one, and no other of the process is.
func TestRealTime(t *testing.T) {
	var err error
	if numa.OwnThread(func() { err = preferThread() }); errors.Is(err, unix.EPERM) {
		t.Skip("the real-time class needs CAP_SYS_NICE")
	}
	w, once := quick(), sync.Once{}
	w.RealTime = true
	w.Observe = func(int, int64, int64) {
		once.Do(func() {
			threads, err := os.ReadDir("/proc/self/task")
			if err != nil {
				t.Error(err)
			}
			for _, thread := range threads {
				id, _ := strconv.Atoi(thread.Name())
				a, err := unix.SchedGetAttr(id, 0)
				if err == nil && (a.Policy == unix.SCHED_RR) != (id == unix.Gettid()) {
					t.Errorf("thread %d has policy %d, the event thread is %d", id, a.Policy, unix.Gettid())
				}
			}
		})
	}
	runUntil(t, newDiskTarget(t), 1, initiator.Options{}, w, both)
}

func TestServerCPU(t *testing.T) {
	d := newDiskTarget(t)
	w := quick()
	w.ServerPIDs = []int{maxPID}
	if r := runUntil(t, d, 1, initiator.Options{}, w, both); r.ServerCPU != nil || r.ClientCPU.PerIO <= 0 {
		t.Errorf("server %+v of no process, client %+v", r.ServerCPU, r.ClientCPU)
	}
}

func TestWorkloadRules(t *testing.T) {
	spoil := map[string]func(w *Workload){
		"depth":           func(w *Workload) { w.Depth = 0 },
		"percentage":      func(w *Workload) { w.ReadPercent = 101 },
		"no size":         func(w *Workload) { w.Sizes = nil },
		"half a block":    func(w *Workload) { w.Sizes = []Share{{700, 1}} },
		"beyond range":    func(w *Workload) { w.Sizes = []Share{{diskBlocks * 1024, 1}} },
		"weight":          func(w *Workload) { w.Sizes = []Share{{512, 0}} },
		"runtime":         func(w *Workload) { w.Runtime = 0 },
		"range":           func(w *Workload) { w.FirstLBA, w.Blocks = 1, diskBlocks },
		"start after end": func(w *Workload) { w.FirstLBA = diskBlocks },
	}
	w := quick()
	if err := w.complete(diskUnit); err != nil || w.Blocks != diskBlocks {
		t.Fatal(w.Blocks, err)
	}
	for name, f := range spoil {
		w := quick()
		f(&w)
		if err := w.complete(diskUnit); err == nil {
			t.Errorf("%s: %+v was accepted", name, w)
		}
	}
}
