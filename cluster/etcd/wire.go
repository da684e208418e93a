package etcd

import "lunar/cluster"

// The messages of etcdserverpb that are used here, in protobuf's JSON: 64-bit integers
// are strings, bytes are base64, and what is zero is left out.

type header struct {
	Revision int64 `json:"revision,string"`
}

type rangeRequest struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
	Limit    int64  `json:"limit,string,omitempty"`
	Revision int64  `json:"revision,string,omitempty"`
}

type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value"`
	ModRevision int64  `json:"mod_revision,string"`
	Lease       int64  `json:"lease,string"`
}

// item has never a nil Value, so that an empty one is no missing one.
func (kv *keyValue) item() cluster.Item {
	if kv.Value == nil {
		kv.Value = []byte{}
	}
	return cluster.Item{Key: string(kv.Key), Value: kv.Value, Modified: cluster.Revision(kv.ModRevision), Lease: cluster.LeaseID(kv.Lease)}
}

type rangeAnswer struct {
	Header header     `json:"header"`
	KVs    []keyValue `json:"kvs"`
	More   bool       `json:"more"`
}

type compare struct {
	Key         []byte `json:"key"`
	Target      string `json:"target"`
	Result      string `json:"result"`
	ModRevision int64  `json:"mod_revision,string"`
}

type put struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
	Lease int64  `json:"lease,string,omitempty"`
}

type requestOp struct {
	Put    *put          `json:"request_put,omitempty"`
	Delete *rangeRequest `json:"request_delete_range,omitempty"`
}

type txnRequest struct {
	Compare []compare   `json:"compare,omitempty"`
	Success []requestOp `json:"success,omitempty"`
}

type txnAnswer struct {
	Header    header `json:"header"`
	Succeeded bool   `json:"succeeded"`
}

type watchCreate struct {
	Key           []byte `json:"key"`
	RangeEnd      []byte `json:"range_end,omitempty"`
	StartRevision int64  `json:"start_revision,string"`
}

type watchRequest struct {
	Create watchCreate `json:"create_request"`
}

type watchEvent struct {
	Type string   `json:"type"`
	KV   keyValue `json:"kv"`
}

type watchAnswer struct {
	Header          header       `json:"header"`
	Created         bool         `json:"created"`
	Canceled        bool         `json:"canceled"`
	CancelReason    string       `json:"cancel_reason"`
	CompactRevision int64        `json:"compact_revision,string"`
	Events          []watchEvent `json:"events"`
}

type leaseRequest struct {
	ID  int64 `json:"ID,string,omitempty"`
	TTL int64 `json:"TTL,string,omitempty"`
}

type leaseAnswer struct {
	ID  int64 `json:"ID,string"`
	TTL int64 `json:"TTL,string"`
}

// streamed is one message of a stream.
type streamed[T any] struct {
	Result T        `json:"result"`
	Error  *refusal `json:"error"`
}

func (m *streamed[T]) failure() error {
	if m.Error == nil {
		return nil
	}
	return m.Error
}

// above is the end of the range of keys that begin with prefix; all keys have the range
// from a zero byte to a zero byte.
func above(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0}
}

// within are the keys that begin with prefix.
func within(prefix string) (key, end []byte) {
	if prefix == "" {
		return []byte{0}, []byte{0}
	}
	return []byte(prefix), above(prefix)
}
