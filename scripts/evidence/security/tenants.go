package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
)

// The attacks of this file are about who somebody is.

// Where the canary's volume has what others must neither read nor change, and how much.
const (
	treasureLBA    = canary.Blocks + 1024
	treasureBlocks = 8
)

// theft is a victim's session, with her treasure planted, and the thief's, who claims
// her name where nobody asks for a proof.
type theft struct {
	victim, thief         *initiator.Conn
	victimUnit, thiefUnit []byte // designators
	treasure              []byte
}

func (s *scene) stealing(ctx context.Context) (*theft, error) {
	victim, err := s.ready(ctx, honestAddress, as(canaryName, canaryTarget, &canaryCHAP, 7))
	if err != nil {
		return nil, fmt.Errorf("the victim: %w", err)
	}
	t := &theft{victim: victim, treasure: bytes.Repeat([]byte("treasure"), treasureBlocks*512/8)}
	if t.victimUnit, err = designator(victim, 0); err != nil {
		return nil, err
	}
	if _, err = good(victim, cdb16(0x8a, treasureLBA, treasureBlocks), 0, t.treasure, 0); err != nil {
		return nil, err
	}
	t.thief, err = s.login(ctx, malloryAddress, as(canaryName, openTarget, nil, 8))
	if err != nil {
		return t, nil // not even that
	}
	if err := t.thief.Ready(0); err != nil {
		return nil, err
	}
	t.thiefUnit, err = designator(t.thief, 0)
	if err == nil {
		_, err = good(t.thief, cdb16(0x8a, 0, treasureBlocks), 0, make([]byte, treasureBlocks*512), 0)
	}
	return t, err
}

// count returns how much has been stolen and overwritten.
func (t *theft) count() (figures, error) {
	f := figures{}
	if t.thief != nil {
		own, err := good(t.thief, cdb16(0x88, 0, treasureBlocks), 0, nil, treasureBlocks*512)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(own, t.treasure) {
			f[stolen] = treasureBlocks
		}
	}
	left, err := good(t.victim, cdb16(0x88, treasureLBA, treasureBlocks), 0, nil, treasureBlocks*512)
	if err == nil && !bytes.Equal(left, t.treasure) {
		f[overwritten] = treasureBlocks
	}
	return f, err
}

// copyAcross copies the treasure out, and something else over it.
func copyAcross(ctx context.Context, s *scene) (figures, error) {
	t, err := s.stealing(ctx)
	if err != nil {
		return nil, err
	}
	if t.thief != nil {
		units := [][]byte{t.victimUnit, t.thiefUnit}
		_, out := extendedCopy(t.thief, units, copySegment(0, 1, treasureBlocks, treasureLBA, 0))
		_, in := extendedCopy(t.thief, units, copySegment(1, 0, treasureBlocks, 4096, treasureLBA))
		if err := errors.Join(out, in); err != nil {
			return nil, err
		}
	}
	f, err := t.count()
	<-ctx.Done()
	return f, err
}

// extendedCopy sends EXTENDED COPY(LID1) with its CSCD and segment descriptors, and
// reports whether it was done. That it was not is no error.
func extendedCopy(c *initiator.Conn, units [][]byte, segments ...[]byte) (bool, error) {
	list := make([]byte, 16)
	list[1] = 0x18 // no list identifier
	descriptors, segs := cscds(units), bytes.Join(segments, nil)
	binary.BigEndian.PutUint16(list[2:], uint16(len(descriptors)))
	binary.BigEndian.PutUint32(list[8:], uint32(len(segs)))
	list = append(append(list, descriptors...), segs...)
	r, err := c.Command(listCDB(0x83, 0, 0, len(list)), 0, list, 0)
	return err == nil && r.Status == initiator.StatusGood, err
}

// cscds are identification descriptors (SPC-4 6.4.5.4) of units with 512-byte blocks.
func cscds(units [][]byte) (all []byte) {
	for _, naa := range units {
		d := make([]byte, 32)
		d[0], d[4], d[5], d[7] = 0xe4, 1, 3, byte(len(naa))
		copy(d[8:28], naa)
		d[30] = 2
		all = append(all, d...)
	}
	return all
}

// copySegment is a block to block segment descriptor (SPC-4 6.4.6.2).
func copySegment(source, dest, blocks uint16, from, to uint64) []byte {
	d := make([]byte, 28)
	d[0], d[3] = 0x02, 24
	binary.BigEndian.PutUint16(d[4:], source)
	binary.BigEndian.PutUint16(d[6:], dest)
	binary.BigEndian.PutUint16(d[10:], blocks)
	binary.BigEndian.PutUint64(d[12:], from)
	binary.BigEndian.PutUint64(d[20:], to)
	return d
}

// listCDB is a third-party copy command with a list identifier at byte 6 and a
// parameter list or allocation length at byte 10.
func listCDB(opcode, action byte, id uint32, n int) []byte {
	c := make([]byte, 16)
	c[0], c[1] = opcode, action
	binary.BigEndian.PutUint32(c[6:], id)
	binary.BigEndian.PutUint32(c[10:], uint32(n))
	return c
}

// tokenAcross uses a token of the victim's, which somebody has overheard.
func tokenAcross(ctx context.Context, s *scene) (figures, error) {
	t, err := s.stealing(ctx)
	if err != nil {
		return nil, err
	}
	token, err := populate(t.victim, 77, treasureLBA, treasureBlocks)
	if err != nil {
		return nil, fmt.Errorf("the victim's token: %w", err)
	}
	if t.thief != nil {
		list := make([]byte, 536, 552)
		list = append(list, blockRange(0, treasureBlocks)...)
		binary.BigEndian.PutUint16(list, uint16(len(list)-2))
		copy(list[16:528], token)
		binary.BigEndian.PutUint16(list[534:], 16)
		if _, err := t.thief.Command(listCDB(0x83, 0x11, 78, len(list)), 0, list, 0); err != nil {
			return nil, err
		}
	}
	f, err := t.count()
	<-ctx.Done()
	return f, err
}

// blockRange is a block device range descriptor (SBC-3 5.7).
func blockRange(lba, blocks int) []byte {
	d := make([]byte, 16)
	binary.BigEndian.PutUint64(d, uint64(lba))
	binary.BigEndian.PutUint32(d[8:], uint32(blocks))
	return d
}

// populate makes a ROD token.
func populate(c *initiator.Conn, id uint32, lba, blocks int) ([]byte, error) {
	list := append(make([]byte, 16), blockRange(lba, blocks)...)
	binary.BigEndian.PutUint16(list, uint16(len(list)-2))
	binary.BigEndian.PutUint16(list[14:], 16)
	if _, err := good(c, listCDB(0x83, 0x10, id, len(list)), 0, list, 0); err != nil {
		return nil, err
	}
	ask := make([]byte, 16)
	ask[0], ask[1] = 0x84, 0x07
	binary.BigEndian.PutUint32(ask[2:], id)
	binary.BigEndian.PutUint32(ask[10:], 1024)
	info, err := good(c, ask, 0, nil, 1024)
	if err == nil && len(info) < 38+512 {
		err = fmt.Errorf("%d bytes of ROD token information", len(info))
	}
	if err != nil {
		return nil, err
	}
	return info[38:][:512], nil
}

// takeName proves who she is, and says that she is somebody else.
func takeName(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	o := as(canaryName, canaryTarget, &malloryCHAP, 0)
	o.ISID = canaryISID
	for pause(ctx, 200*time.Millisecond) {
		c, err := s.login(ctx, malloryAddress, o)
		t.add("tried", 1)
		if err == nil {
			t.add(impersonated, 1)
			c.Close()
		}
	}
	return t.figures(), nil
}

// withMirror adds a target that proves itself by the canary's secret.
func withMirror(config string) string {
	config = strings.Replace(config, "\nvolumes:", `
  mirror:
    chap: [{user: mirrored, secret: mirrored-secret-1}]
    mutual: {user: lunar, secret: canary-secret-1}
volumes:`, 1)
	return strings.Replace(config, "\ntargets:", "\ntargets:\n  "+mirrorTarget+": {portal-groups: [public], auth-group: mirror, luns: [{lun: 0, volume: other}]}", 1)
}

// reflect has the server answer its own challenge.
func reflect(ctx context.Context, s *scene) (figures, error) {
	f := figures{without: 0}
	asked, err := s.challenged(ctx, canaryTarget)
	if err != nil {
		return nil, err
	}
	helped, err := s.challenged(ctx, mirrorTarget)
	if err != nil {
		return nil, err
	}
	mine, err := helped.prove("mirrored", "mirrored-secret-1")
	if err != nil {
		return nil, err
	}
	answer, class, err := helped.say(0x81, append(mine, initiator.Key{Name: "CHAP_I", Value: asked.identifier}, initiator.Key{Name: "CHAP_C", Value: asked.challenge}))
	if proof, ok := answer.Get("CHAP_R"); err == nil && class == 0 && ok {
		_, class, err = asked.say(0x81, initiator.Keys{{Name: "CHAP_N", Value: canaryCHAP.User}, {Name: "CHAP_R", Value: proof}})
		if err == nil && class == 0 {
			f[without] = 1
		}
	}
	<-ctx.Done()
	return f, err
}

// challenged is a login that has been asked for a proof.
type challenged struct {
	conn                  *initiator.Conn
	isid                  [6]byte
	identifier, challenge string
}

// challenged begins a login with CHAP and MD5.
func (s *scene) challenged(ctx context.Context, target string) (*challenged, error) {
	nc, err := dialFrom(ctx, malloryAddress, s.Portal)
	if err != nil {
		return nil, err
	}
	l := &challenged{conn: initiator.NewConn(nc), isid: [6]byte{0x80, 9}}
	l.conn.Timeout, l.conn.CmdSN = answerTime, 1
	if _, _, err := l.say(0, initiator.Keys{{Name: "InitiatorName", Value: malloryName}, {Name: "TargetName", Value: target},
		{Name: "SessionType", Value: "Normal"}, {Name: "AuthMethod", Value: "CHAP"}}); err != nil {
		return nil, err
	}
	keys, class, err := l.say(0, initiator.Keys{{Name: "CHAP_A", Value: "5"}})
	if err != nil || class != 0 {
		return nil, fmt.Errorf("no challenge: class %d, %w", class, err)
	}
	l.identifier, _ = keys.Get("CHAP_I")
	l.challenge, _ = keys.Get("CHAP_C")
	return l, nil
}

// say sends a login request with the flags of byte 1.
func (l *challenged) say(flags byte, keys initiator.Keys) (answer initiator.Keys, class byte, err error) {
	if err := l.conn.Send(loginRequest(flags, keys, l.isid)); err != nil {
		return nil, 0, err
	}
	p, err := l.conn.Receive(0)
	if err != nil {
		return nil, 0, err
	}
	answer, err = initiator.ParseKeys(p.Data)
	return answer, p.BHS[36], err
}

// prove answers the challenge.
func (l *challenged) prove(user, secret string) (initiator.Keys, error) {
	id, err := strconv.ParseUint(l.identifier, 0, 8)
	if err != nil {
		return nil, err
	}
	challenge, err := hex.DecodeString(strings.TrimPrefix(l.challenge, "0x"))
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(append(append([]byte{byte(id)}, secret...), challenge...))
	return initiator.Keys{{Name: "CHAP_N", Value: user}, {Name: "CHAP_R", Value: "0x" + hex.EncodeToString(sum[:])}}, nil
}

// revoked works on, deaf to requests to leave, after an administrator has removed its user.
func revoked(ctx context.Context, s *scene) (figures, error) {
	text, err := os.ReadFile(s.Config)
	if err != nil {
		return nil, err
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.Contains(l, "user: mallory") })
	poorer := filepath.Join(s.Scratch, "without-mallory.yaml")
	if err := os.WriteFile(poorer, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), mostRevoked+5*time.Second)
	defer stop()
	c, err := s.ready(ctx, malloryAddress, mallory(canaryTarget, 6))
	if err != nil {
		return nil, err
	}
	if err := s.apply(poorer); err != nil {
		return nil, err
	}
	begin := time.Now()
	for pause(ctx, 50*time.Millisecond) {
		if ok, _ := worked(c, make([]byte, 6), nil); !ok {
			break
		}
	}
	return figures{afterRevoked: hundredths(time.Since(begin).Seconds())}, s.apply(s.Config)
}

// mostRevoked is how long a session may go on that is asked to leave: 10 s, and what the
// machine takes.
const mostRevoked = 12 * time.Second

// apply puts a configuration into force.
func (s *scene) apply(file string) error {
	said, err := exec.Command(daemon.Lunar(s.Binary), "apply", file, "--socket", s.Socket, "--yes").CombinedOutput()
	if err != nil {
		return fmt.Errorf("apply: %w: %s", err, said)
	}
	return nil
}
