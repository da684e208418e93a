package writers

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"

	"lunar/scripts/evidence/generations"
)

// Ledger has of each block the last write that was acknowledged. When the writers have ended
// without a failure, it is the last one that was sent too.
type Ledger struct{ Disk, Files []uint32 }

// Nothing is an argument that says nothing.
type Nothing struct{}

// Serve answers the host until it says End.
func (w *Writers) Serve(host string) error {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := rpc.Register(w); err != nil {
		return err
	}
	lost := make(chan struct{})
	go func() {
		rpc.ServeConn(conn)
		close(lost)
	}()
	select {
	case <-w.over:
		<-lost // which the host closes when it has the answer
		return nil
	case <-lost:
		return errors.New("the host has gone away")
	}
}

// Begin begins to look for the longest gap.
func (w *Writers) Begin(Nothing, *Nothing) error {
	for _, p := range []*part{w.disk, w.files, w.paths} {
		p.begin()
	}
	return nil
}

// Read tells the figures since Begin.
func (w *Writers) Read(_ Nothing, f *Figures) error {
	f.Disk, f.Files, f.Paths = w.disk.figures(), w.files.figures(), w.paths.figures()
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Wrong = w.wrong
	return nil
}

// Run runs a command of the shell, and tells what it says.
func (w *Writers) Run(command string, said *string) error {
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	*said = string(out)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// Halt ends the writers, and tells their ledger.
func (w *Writers) Halt(_ Nothing, l *Ledger) error {
	w.ended.Store(true)
	w.group.Wait()
	for i := range w.disk.blocks {
		l.Disk = append(l.Disk, w.disk.blocks[i].Acked.Load())
	}
	for i := range w.files.blocks {
		l.Files = append(l.Files, w.files.blocks[i].Acked.Load())
	}
	return nil
}

// CompareDisk compares the disk with the ledger, over a device.
func (w *Writers) CompareDisk(device string, blocks *int) error {
	d, err := openDisk(device, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer d.file.Close()
	*blocks, err = w.disk.compare(d)
	return err
}

// CompareFiles compares the files with the ledger.
func (w *Writers) CompareFiles(dir string, blocks *int) (err error) {
	*blocks, err = w.files.compare(directory(dir))
	return err
}

// compare returns how many blocks had been written.
func (p *part) compare(at place) (blocks int, err error) {
	data, err := buffer()
	if err != nil {
		return 0, err
	}
	for n := range p.blocks {
		b := &p.blocks[n]
		if b.Acked.Load() == 0 {
			continue
		}
		if err := at.read(n, data); err != nil {
			return blocks, err
		}
		if err := generations.Judge(data, n, b.Acked.Load(), b.Sent.Load()); err != nil {
			return blocks, err
		}
		blocks++
	}
	return blocks, nil
}

// End lets Serve return.
func (w *Writers) End(Nothing, *Nothing) error {
	close(w.over)
	return nil
}
