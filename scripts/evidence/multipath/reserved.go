package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/generations"
	"lunar/scripts/evidence/site"
)

// What a target answers (SAM-5).
const (
	checkCondition = 0x02
	conflict       = 0x18
)

// key is the guest's, as the lab's scenario tells multipath.
const key = "0xa1"

// reserved kills owners while the guest's paths are registered and one reservation of them
// all is there, which a stranger tries to write against.
func (r *run) reserved() error {
	if r.Reserved == 0 {
		return nil
	}
	disk, err := r.guest.run("multipath -l -v1")
	if err != nil {
		return err
	}
	disk = "/dev/mapper/" + strings.TrimSpace(disk)
	if _, err := r.guest.run(fmt.Sprintf("mpathpersist --out --register --param-sark=%[1]s %[2]s && mpathpersist --out --reserve --param-rk=%[1]s --prout-type=5 %[2]s", key, disk)); err != nil {
		return err
	}
	s := r.stranger()
	err = r.event(&event{"`kill -9` of the owner while the guest's paths are registered and reserve", r.Reserved, 7 * time.Second, func(at *site.Site) error {
		if err := errors.Join(at.Kill(8*time.Second), r.whole()); err != nil { // a path that is given up cannot be asked
			return err
		}
		return r.held()
	}})
	err = errors.Join(err, s.end(), r.held())
	_, e := r.guest.run(fmt.Sprintf("mpathpersist --out --release --param-rk=%[1]s --prout-type=5 %[2]s && mpathpersist --out --clear --param-rk=%[1]s %[2]s", key, disk))
	if err = errors.Join(err, e); err != nil {
		return err
	}
	r.registered = fmt.Sprintf("Reservations: after each of the kills all paths told the three registrations of the guest (`mpathpersist`, key %s) and its reservation for registrants alone. Another initiator tried to write over each node in turn: %d times the answer was RESERVATION CONFLICT, %d times there was none, for the node was killed, and never GOOD.", key, s.conflicts, s.failures)
	return nil
}

// held compares what each path tells with what the guest has registered.
func (r *run) held() error {
	said, err := r.guest.run("for disk in $(ls /sys/block/dm-0/slaves); do sg_turs /dev/$disk; sg_persist --no-inquiry --in --read-keys /dev/$disk && sg_persist --no-inquiry --in --read-reservation /dev/$disk || exit 1; done 2>&1")
	if err != nil {
		return err
	}
	n := len(r.site.Nodes)
	keys := regexp.MustCompile(`(?m)^\s*`+key+`$`).FindAllString(said, -1)
	if len(keys) != n*n || strings.Count(strings.ToLower(said), "registrants only") != n {
		return fmt.Errorf("found %d keys, expected %d, and a reservation on each of %d paths: %s", len(keys), n*n, n, said)
	}
	return nil
}

// stranger writes where nobody else does, which must not succeed.
type stranger struct {
	run                 *run
	stop                chan struct{}
	done                sync.WaitGroup
	conflicts, failures int
	err                 error
}

func (r *run) stranger() *stranger {
	s := &stranger{run: r, stop: make(chan struct{})}
	s.done.Go(s.write)
	return s
}

func (s *stranger) write() {
	for i := 0; ; i++ {
		select {
		case <-s.stop:
			return
		case <-time.After(time.Second):
		}
		node := s.run.site.Nodes[i%len(s.run.site.Nodes)]
		status, err := try(node)
		switch {
		case err != nil:
			s.failures++ // such as a node that was killed
		case status == conflict:
			s.conflicts++
		case status == 0:
			s.err = fmt.Errorf("a stranger wrote over %s", node.Name)
			return
		}
	}
}

// try has a new session write, once the unit attention of its beginning was told.
func try(node *site.Node) (status byte, err error) {
	socket, err := net.DialTimeout("tcp", node.Portal, time.Second)
	if err != nil {
		return 0, err
	}
	conn := initiator.NewConn(socket)
	defer conn.Close()
	conn.Timeout = 20 * time.Second
	if err := conn.Login(initiator.Options{Target: site.Target, Initiator: "iqn.2026-11.example.lunar:stranger"}); err != nil {
		return 0, err
	}
	write := make([]byte, 16)
	write[0], write[13] = 0x8a, generations.BlockBytes/512 // WRITE (16)
	binary.BigEndian.PutUint64(write[2:], diskBytes/512-2048)
	for range 3 {
		r, err := conn.Do(initiator.Command{CDB: write, Out: make([]byte, generations.BlockBytes)})
		if err != nil {
			return 0, err
		}
		if status = r.Status; status != checkCondition {
			return status, nil
		}
	}
	return status, nil
}

func (s *stranger) end() error {
	close(s.stop)
	s.done.Wait()
	if s.err == nil && s.conflicts == 0 {
		return errors.New("a stranger never had a conflict")
	}
	return s.err
}
