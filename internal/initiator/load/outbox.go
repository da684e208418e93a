package load

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
)

var errOutboxFull = errors.New("the target asks for data in more pieces than the negotiated lengths explain")

// maxVectors is IOV_MAX.
const maxVectors = 1024

// outbox gathers the PDUs of a turn. Headers lie side by side in one buffer, so
// that commands without data become a single vector; data is referred to where
// it is.
//
// INVARIANT: headers[:used] and the data of iov[sent:] stay unchanged until
// they are sent.
type outbox struct {
	headers []byte
	used    int
	iov     []unix.Iovec
	sent    int  // vectors done
	joined  bool // the last vector ends at headers[used]
	most    int  // bytes of one system call; 0: any
}

func (o *outbox) empty() bool { return o.sent == len(o.iov) }

// header returns n bytes to write a header, digest or padding to, which will go
// out behind everything before; nil when full.
func (o *outbox) header(n int) []byte {
	if o.used+n > len(o.headers) {
		return nil
	}
	b := o.headers[o.used : o.used+n : o.used+n]
	o.used += n
	if o.joined {
		last := &o.iov[len(o.iov)-1]
		last.SetLen(int(last.Len) + n)
		return b
	}
	if !o.add(b) {
		return nil
	}
	o.joined = true
	return b
}

// data appends bytes by reference and reports whether there was room.
func (o *outbox) data(b []byte) bool {
	o.joined = false
	return o.add(b)
}

func (o *outbox) add(b []byte) bool {
	if len(o.iov) == cap(o.iov) {
		return false
	}
	o.iov = append(o.iov, unix.Iovec{Base: &b[0]})
	o.iov[len(o.iov)-1].SetLen(len(b))
	return true
}

// flush sends as much as the socket takes; done is false when it is full.
func (o *outbox) flush(fd int) (done bool, err error) {
	for !o.empty() {
		n, errno := o.send(fd)
		if errno == unix.EAGAIN {
			return false, nil
		}
		if errno != 0 {
			return false, fmt.Errorf("send: %w", errno)
		}
		o.advance(n)
	}
	o.used, o.sent, o.iov, o.joined = 0, 0, o.iov[:0], false
	return true, nil
}

// send makes one system call, for at most as many bytes as one may be for.
func (o *outbox) send(fd int) (int, unix.Errno) {
	iov := o.iov[o.sent:min(len(o.iov), o.sent+maxVectors)]
	if o.most == 0 {
		return evloop.Sendmsg(fd, iov, 0)
	}
	left := uint64(o.most)
	for i := range iov {
		v := &iov[i]
		if v.Len < left {
			left -= v.Len
			continue
		}
		whole := v.Len
		v.SetLen(int(left))
		n, errno := evloop.Sendmsg(fd, iov[:i+1], 0)
		v.SetLen(int(whole))
		return n, errno
	}
	return evloop.Sendmsg(fd, iov, 0)
}

// advance drops n sent bytes from the front.
func (o *outbox) advance(n int) {
	for n > 0 {
		v := &o.iov[o.sent]
		if n < int(v.Len) {
			v.Base = at(v, n)
			v.SetLen(int(v.Len) - n)
			return
		}
		n -= int(v.Len)
		o.sent++
	}
}
