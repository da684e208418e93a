//go:build linux && cgo && rdma

package native

// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"

	"lunar/iser/verbs"
)

// OpenCompletions implements verbs.Device.
func (d *device) OpenCompletions() (verbs.CompChannel, error) {
	var (
		channel unsafe.Pointer
		fd      C.int
	)
	if r := C.rs_channel(d.context, &channel, &fd); r != 0 {
		return nil, failed("ibv_create_comp_channel", r)
	}
	return &compChannel{channel, int(fd)}, nil
}

// compChannel implements verbs.CompChannel.
type compChannel struct {
	channel unsafe.Pointer
	fd      int
}

// FD implements verbs.CompChannel.
func (c *compChannel) FD() int { return c.fd }

// Drain implements verbs.CompChannel.
func (c *compChannel) Drain() (int, error) { return counted(C.rs_channel_drain(c.channel)) }

// Destroy implements verbs.CompChannel.
func (c *compChannel) Destroy() error {
	return failed("ibv_destroy_comp_channel", C.rs_channel_destroy(c.channel))
}

// counted is the result of a data path call that returns a number or -errno.
func counted(r C.int) (int, error) {
	if r < 0 {
		return 0, syscall.Errno(-r)
	}
	return int(r), nil
}

// CreateCQ implements verbs.Device.
func (d *device) CreateCQ(cqe int, ch verbs.CompChannel, vector int) (verbs.CQ, error) {
	var (
		cq   unsafe.Pointer
		size C.int
	)
	if r := C.rs_cq(d.context, C.int(cqe), ch.(*compChannel).channel, C.int(vector), &cq, &size); r != 0 {
		return nil, failed("ibv_create_cq", r)
	}
	return &compQueue{cq, int(size)}, nil
}

// compQueue implements verbs.CQ.
type compQueue struct {
	cq   unsafe.Pointer
	size int
}

// Poll implements verbs.CQ.
func (c *compQueue) Poll(out []verbs.WC) (int, error) {
	if len(out) == 0 {
		return 0, nil
	}
	return counted(C.rs_cq_poll(c.cq, (*C.rs_wc)(unsafe.Pointer(unsafe.SliceData(out))), C.int(len(out))))
}

// Arm implements verbs.CQ.
func (c *compQueue) Arm() error {
	_, err := counted(C.rs_cq_arm(c.cq))
	return err
}

// Size implements verbs.CQ.
func (c *compQueue) Size() int { return c.size }

// Destroy implements verbs.CQ.
func (c *compQueue) Destroy() error { return failed("ibv_destroy_cq", C.rs_cq_destroy(c.cq)) }

// CreateQP implements verbs.ID.
func (c *connectionID) CreateQP(pd verbs.PD, cq verbs.CQ, limits verbs.QPLimits) (verbs.QP, error) {
	granted := C.rs_limits{
		send_wr: C.int32_t(limits.SendWR), recv_wr: C.int32_t(limits.RecvWR),
		send_sge: C.int32_t(limits.SendSGE), inline_bytes: C.int32_t(limits.Inline),
	}
	q := &queuePair{id: c.id}
	var number C.uint32_t
	if r := C.rs_qp(c.id, pd.(*domain).pd, cq.(*compQueue).cq, &granted, &q.qp, &number); r != 0 {
		return nil, failed("rdma_create_qp", r)
	}
	q.number = uint32(number)
	q.limits = verbs.QPLimits{
		SendWR: int(granted.send_wr), RecvWR: int(granted.recv_wr), SendSGE: int(granted.send_sge), Inline: int(granted.inline_bytes),
	}
	return q, nil
}

// queuePair implements verbs.QP.
type queuePair struct {
	qp, id unsafe.Pointer
	number uint32
	limits verbs.QPLimits
}

// Number implements verbs.QP.
func (q *queuePair) Number() uint32 { return q.number }

// Limits implements verbs.QP.
func (q *queuePair) Limits() verbs.QPLimits { return q.limits }

// PostSend implements verbs.QP.
func (q *queuePair) PostSend(wrs []verbs.WR, sges []verbs.SGE) (posted int, err error) {
	for len(wrs) > 0 {
		now, segments := wrs[:min(len(wrs), verbs.MaxPost)], 0
		for i := range now {
			segments += int(now[i].NSGE)
		}
		if segments > len(sges) {
			return posted, syscall.EINVAL
		}
		var n C.int
		r := C.rs_post_send(q.qp, (*C.rs_wr)(unsafe.Pointer(unsafe.SliceData(now))), C.int(len(now)),
			(*C.rs_sge)(unsafe.Pointer(unsafe.SliceData(sges))), &n)
		posted += int(n)
		if r < 0 {
			return posted, syscall.Errno(-r)
		}
		wrs, sges = wrs[len(now):], sges[segments:]
	}
	return posted, nil
}

// PostRecv implements verbs.QP.
func (q *queuePair) PostRecv(ids []uint64, sges []verbs.SGE) (posted int, err error) {
	if len(ids) > len(sges) {
		return 0, syscall.EINVAL
	}
	for len(ids) > 0 {
		now := ids[:min(len(ids), verbs.MaxPost)]
		var n C.int
		r := C.rs_post_recv(q.qp, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(now))), C.int(len(now)),
			(*C.rs_sge)(unsafe.Pointer(unsafe.SliceData(sges))), &n)
		posted += int(n)
		if r < 0 {
			return posted, syscall.Errno(-r)
		}
		ids, sges = ids[len(now):], sges[len(now):]
	}
	return posted, nil
}

// Fail implements verbs.QP.
func (q *queuePair) Fail() error { return failed("ibv_modify_qp", C.rs_qp_fail(q.qp)) }

// Destroy implements verbs.QP.
func (q *queuePair) Destroy() error { return failed("rdma_destroy_qp", C.rs_qp_destroy(q.id)) }
