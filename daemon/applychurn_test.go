package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/conf"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// churnLUNs are the LUNs that come and go, besides LUN 0.
const churnLUNs = 4

// churnConfig is a configuration in which much is left to chance. Target t always
// has LUN 0, and everyone may use it.
func churnConfig(random *rand.Rand) string {
	kinds := []string{
		"{type: file, path: x1, size: %dMiB, " + pick(random, "write: sync", "write: through, threads: 2", "sanitize-rate: 1MiB") + "}",
		"{type: file, path: x2, size: %dMiB, " + pick(random, "cache: true", "cache: {min: 8MiB}", "cache: {max: 4MiB}", "direct: true") + "}",
		"{type: file, path: x3, size: %dMiB, cache: {admission: fussy}, write: sync}",
		"{type: ram, size: 1MiB}",
	}
	var volumes, luns []string
	for i, kind := range kinds {
		if random.IntN(3) == 0 {
			continue
		}
		if strings.Contains(kind, "%d") {
			kind = fmt.Sprintf(kind, 1+random.IntN(3))
		}
		volumes = append(volumes, fmt.Sprintf("  x%d: %s", i+1, kind))
		if random.IntN(4) > 0 {
			luns = append(luns, fmt.Sprintf("{lun: %d, volume: x%d, read-only: %t}", 1+(i+random.IntN(2))%churnLUNs, i+1, random.IntN(3) == 0))
		}
	}
	if len(luns) > 1 && luns[0][6] == luns[len(luns)-1][6] || len(luns) > 1 && clash(luns) {
		luns = luns[:1]
	}
	text := "portal-groups: {a: {listen: [\"127.0.0.1:0\"" + pick(random, "", `, "127.0.0.2:0"`) + "]}}\n"
	text += fmt.Sprintf("server: {limits: {sessions: %d}}\n", 20+random.IntN(9))
	text += "cache: {size: 16MiB, block-size: 16KiB, segment: SEGMENT}\n"
	text += fmt.Sprintf("auth-groups: {g: {chap: [{user: u, secret: \"a secret of chance %d\"}]}}\n", random.IntN(2))
	text += fmt.Sprintf("volumes:\n  zero: {type: file, path: zero, size: %dMiB, %s}\n%s\n", 1+random.IntN(3), pick(random, "write: through", "write: sync", "threads: 2, soft-threshold: 1MiB", "direct: true", "physical-block-size: 4096",
		"cache: true", "cache: {read-ahead: 64KiB, admission: fussy}", "write: back, cache: true", "write: back, cache: {min: 4MiB}, direct: false"), strings.Join(volumes, "\n"))
	text += "targets:\n  iqn.2026-11.test:t:\n    " + pick(random, "", "alias: text\n    ") +
		"luns: [" + strings.Join(append([]string{"{lun: 0, volume: zero}"}, luns...), ", ") + "]\n"
	if random.IntN(2) == 0 {
		text += "  iqn.2026-11.test:v:\n    access:\n" + pick(random, "", "      - {initiators: [\"iqn.2026-11.test:one\"], luns: {7: zero}}\n") +
			"      - {initiators: [\"iqn.2026-11.test:t*\"], luns: {0: zero}" + pick(random, "", ", auth-group: g") + "}\n"
	}
	return text
}

func clash(luns []string) bool {
	seen := map[byte]bool{}
	for _, l := range luns {
		if seen[l[6]] {
			return true
		}
		seen[l[6]] = true
	}
	return false
}

func pick(random *rand.Rand, words ...string) string { return words[random.IntN(len(words))] }

// churned is a daemon whose configuration changes at random.
type churned struct {
	*applier
	t       *testing.T
	portal  string
	segment string // directory
}

func serveChurned(t *testing.T, text string) *churned {
	t.Helper()
	dir := t.TempDir()
	c := &churned{t: t, segment: memoryDir(t)}
	cfg := c.parse(text, dir)
	log := slog.New(slog.DiscardHandler)
	d, err := assemble(cfg, dir, log)
	if err == nil {
		err = openPortals(d, cfg, log)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := d.Settings()
	settings.LogoutTime = 50 * time.Millisecond
	d.Reconfigure(settings)
	c.applier, c.portal = newApplier(d, Options{}, dir, log), d.Addrs(1)[0].String()
	t.Cleanup(func() {
		c.end()
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := d.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *churned) parse(text, dir string) *conf.Config {
	c.t.Helper()
	cfg, _, err := conf.Parse("chance", []byte(strings.Replace(text, "SEGMENT", c.segment, 1)))
	if err != nil {
		c.t.Fatalf("%v\n%s", err, text)
	}
	cfg.InStateDir(dir)
	return cfg
}

// to applies a configuration, once volumes that are being closed are. Files of
// volumes that are gone go, too, for a larger one would not be taken for a
// smaller volume.
func (c *churned) to(text string) {
	c.t.Helper()
	eventually.Holds(c.t, "volumes are closed", func() bool {
		for _, name := range []string{"x1", "x2", "x3"} {
			if c.daemon.config.Load().Volume(name) == nil && !slices.Contains(c.stillLeaving(), name) {
				os.Remove(filepath.Join(c.dir, name))
			}
		}
		cfg := c.parse(text, c.dir)
		_, err := c.apply(request{name: "chance", allowed: everythingIn(cfg)}, cfg)
		if err != nil && !strings.Contains(err.Error(), "still being closed") {
			c.t.Fatalf("%v\n%s", err, text)
		}
		return err == nil
	})
}

// everythingIn allows whatever a configuration destroys.
func everythingIn(cfg *conf.Config) conf.Allowed {
	all := conf.Allowed{Yes: true}
	for _, v := range cfg.Volumes {
		all.Shrink = append(all.Shrink, v.Name)
	}
	return all
}

// effect is what initiators find.
func (c *churned) effect() (out string) {
	c.t.Helper()
	for _, target := range []string{"t", "v"} {
		for _, name := range []string{"one", "two", "other"} {
			o := initiator.Options{Target: "iqn.2026-11.test:" + target, Initiator: "iqn.2026-11.test:" + name, ISID: [6]byte{0x80, 7}}
			conn, err := initiator.Dial(c.t.Context(), c.portal, o)
			var refused *initiator.LoginFailure
			if errors.As(err, &refused) {
				out += fmt.Sprintf("%s %s: %v\n", target, name, err)
				continue
			}
			if err != nil {
				c.t.Fatal(err)
			}
			out += fmt.Sprintf("%s %s: alias %q", target, name, conn.Identity.TargetAlias)
			for lun := range uint64(9) {
				if err := conn.Ready(lun); err != nil {
					continue
				}
				_, blocks, err := conn.Capacity(lun)
				if err != nil {
					c.t.Fatal(err)
				}
				out += fmt.Sprintf(" %d=%d", lun, blocks)
				for _, cdb := range [][]byte{
					{0x1a, 0, 0x3f, 0, 255, 0}, {0x12, 0, 0, 0, 255, 0}, {0x12, 1, 0xb0, 0, 255, 0}, {0x12, 1, 0xb2, 0, 255, 0}, {0x12, 1, 0x86, 0, 255, 0},
					{0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0},
				} {
					told, err := conn.Command(cdb, lun, nil, 255)
					if err != nil {
						c.t.Fatal(err)
					}
					out += fmt.Sprintf("/%x", told.In)
				}
			}
			if _, err := conn.Logout(0); err != nil {
				c.t.Fatal(err)
			}
			conn.Close()
			out += "\n"
		}
	}
	return out + fmt.Sprintf("%d portals, %d sessions", len(c.daemon.Addrs(1)), c.daemon.Settings().Limits.Sessions)
}

// TestApplyLeadsToTheSame: whatever ran before, what a configuration has been
// applied to is what a start with it gives.
func TestApplyLeadsToTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	c := serveChurned(t, churnConfig(random))
	for range 8 {
		text := churnConfig(random)
		c.to(text)
		if plan := conf.Between(c.daemon.config.Load(), c.parse(text, c.dir)); len(plan.Live)+len(plan.Restart) > 0 {
			t.Errorf("after applying it differs: %+v", plan)
		}
		got := c.effect()
		t.Run("fresh", func(t *testing.T) {
			if want := serveChurned(t, text).effect(); got != want {
				t.Errorf("found\n%s\nexpected\n%s\nfor\n%s", got, want, text)
			}
		})
	}
}

// TestApplyUnderLoad: sessions use what stays and what comes and goes while
// configurations follow each other; nothing of LUN 0 fails or is lost, and
// commands to the others end well or as those of LUNs that are not there.
func TestApplyUnderLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 143))
	c := serveChurned(t, churnConfig(random))
	stop := make(chan struct{})
	var using sync.WaitGroup
	for i := range 2 {
		conn := dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: fmt.Sprintf("iqn.2026-11.test:steady%d", i)})
		using.Go(func() { steady(t, conn, uint32(i)*512, stop) })
		roaming := dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: fmt.Sprintf("iqn.2026-11.test:roaming%d", i)})
		using.Go(func() { roam(t, roaming, uint64(i), stop) })
	}
	for range 30 {
		c.to(churnConfig(random))
	}
	close(stop)
	using.Wait()
}

// steady writes to LUN 0 and reads back.
func steady(t *testing.T, c *initiator.Conn, base uint32, stop <-chan struct{}) {
	model, random := map[uint32]byte{}, rand.New(rand.NewPCG(uint64(base), 1))
	for n := byte(1); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		lba := base + 8*random.Uint32N(64)
		data := bytes.Repeat([]byte{n}, 4096)
		if random.IntN(2) == 0 {
			if _, err := insist(c, 0, lba, data); err != nil {
				t.Error(err)
				return
			}
			model[lba] = n
		} else if got, err := insist(c, 0, lba, nil); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{model[lba]}, 4096)) {
			t.Errorf("LBA %d: found %x and %v, expected %x", lba, got[:min(len(got), 8)], err, model[lba])
			return
		}
	}
}

// insist writes or reads 4 KiB, again after unit attentions.
func insist(c *initiator.Conn, lun uint64, lba uint32, out []byte) ([]byte, error) {
	cdb := []byte{0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0}
	in := 4096
	if out != nil {
		cdb[0], in = 0x2a, 0
	}
	binary.BigEndian.PutUint32(cdb[2:], lba)
	for {
		res, err := c.Command(cdb, lun, out, in)
		if err != nil {
			return nil, err
		}
		key, asc, ascq := res.SenseKey()
		switch {
		case res.Status == 0:
			return res.In, nil
		case key != 6:
			return nil, fmt.Errorf("LUN %d: status %#x, sense %x/%02x%02x", lun, res.Status, key, asc, ascq)
		}
	}
}

// roam uses LUNs that may not be there.
func roam(t *testing.T, c *initiator.Conn, seed uint64, stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(seed, 2))
	allowed := []string{"/2500", "/2100", "/2700"} // not there, behind its end, read-only
	for {
		select {
		case <-stop:
			return
		default:
		}
		var out []byte
		if random.IntN(2) == 0 {
			out = make([]byte, 4096)
		}
		_, err := insist(c, 1+random.Uint64N(churnLUNs), 8*random.Uint32N(700), out)
		ok := err == nil
		for _, a := range allowed {
			ok = ok || strings.HasSuffix(err.Error(), a)
		}
		if !ok {
			t.Error(err)
			return
		}
	}
}
