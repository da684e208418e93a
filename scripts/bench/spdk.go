package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/freeport"
)

var errNoSPDK = errors.New("no --spdk")

// spdkMemory is what SPDK takes in huge pages beside a volume in memory, in MiB.
const spdkMemory = 900

// startSPDK serves a volume made by the call that bdev is.
func startSPDK(ctx context.Context, o *options, v serving, bdev call, memory int64) (s *server, err error) {
	if o.SPDK == "" {
		return nil, errNoSPDK
	}
	pages, release, err := hugePages(v.work, (memory>>20+spdkMemory)/2)
	if err != nil {
		return nil, err
	}
	defer func() {
		if s == nil {
			release()
		}
	}()
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(v.work, "spdk.sock")
	s, err = spawn(spdkName, o, v.work, o.SPDK, "-m", "["+o.Server+"]", "--no-pci", "--wait-for-rpc", "-r", socket, "--huge-dir", pages)
	if err != nil {
		return nil, err
	}
	s.urls, s.size, s.spins, s.after = urls(port, 0, 1), v.bytes, true, release
	calls := []call{
		{"iscsi_set_options", object{"max_queue_depth": 256, "node_base": "iqn.2026-11.example.bench"}},
		{"framework_start_init", nil},
		bdev,
		{"iscsi_create_portal_group", object{"tag": 1, "portals": []object{{"host": "127.0.0.1", "port": strconv.Itoa(port)}}}},
		{"iscsi_create_initiator_group", object{"tag": 1, "initiators": []string{"ANY"}, "netmasks": []string{"127.0.0.1/32"}}},
		{"iscsi_create_target_node", object{"name": targetName, "alias_name": "bench", "luns": []object{{"bdev_name": spdkBdev, "lun_id": 0}},
			"pg_ig_maps": []object{{"pg_tag": 1, "ig_tag": 1}}, "queue_depth": 256, "disable_chap": true}},
	}
	if err := callAll(ctx, socket, calls); err != nil {
		output, _ := os.ReadFile(s.log.Name())
		return s, fmt.Errorf("%w: %s", err, output)
	}
	return s, s.rest()
}

const spdkBdev = "bench"

type object map[string]any

// call is one of SPDK's JSON-RPC.
type call struct {
	Method string `json:"method"`
	Params object `json:"params,omitempty"`
}

func callAll(ctx context.Context, socket string, calls []call) error {
	var conn net.Conn
	var err error
	for range 200 {
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err != nil {
		return fmt.Errorf("SPDK: %w", err)
	}
	defer conn.Close()
	answers := json.NewDecoder(conn)
	for i, c := range calls {
		request, err := json.Marshal(struct {
			Version string `json:"jsonrpc"`
			ID      int    `json:"id"`
			call
		}{"2.0", i + 1, c})
		if err != nil {
			return err
		}
		var answer struct{ Error json.RawMessage }
		_, err = conn.Write(request)
		if err = errors.Join(err, answers.Decode(&answer)); err != nil || answer.Error != nil {
			return fmt.Errorf("SPDK: %s: %s: %w", c.Method, answer.Error, err)
		}
	}
	return nil
}

const reservedPages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

// hugePages reserves so many of 2 MiB, until release is called. It needs root.
func hugePages(work string, count int64) (dir string, release func(), err error) {
	before, err := os.ReadFile(reservedPages)
	if err != nil {
		return "", nil, fmt.Errorf("huge pages: %w", err)
	}
	dir = filepath.Join(work, "huge")
	release = func() {
		_ = unix.Unmount(dir, 0)
		_ = os.WriteFile(reservedPages, before, 0)
	}
	_ = os.WriteFile("/proc/sys/vm/compact_memory", []byte("1"), 0)
	err = errors.Join(reserve(count), os.MkdirAll(dir, 0o700), unix.Mount("none", dir, "hugetlbfs", 0, ""))
	if err != nil {
		release()
		return "", nil, fmt.Errorf("huge pages: %w", err)
	}
	return dir, release, nil
}

// reserve asks again and again: the kernel gives up when a signal comes, and Go's
// runtime sends itself some.
func reserve(count int64) error {
	var have int64
	for range 100 {
		if err := os.WriteFile(reservedPages, []byte(strconv.FormatInt(count, 10)), 0); err != nil {
			return err
		}
		text, err := os.ReadFile(reservedPages)
		if err != nil {
			return err
		}
		if have, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || have >= count {
			return err
		}
	}
	return fmt.Errorf("found %d of 2 MiB, expected %d", have, count)
}
