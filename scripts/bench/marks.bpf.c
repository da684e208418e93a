//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What RED does that marks all packets from a length of its queue on, for kernels without it: a
// classifier in front of a queue of 200 Mbit/s (network.sh) that reckons how long the queue is.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define NS_PER_BYTE 40
#define MARK 4000000 // ns that a packet has to wait

char _license[] SEC("license") = "Dual BSD/GPL";

// empty is when the queue will be.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} empty SEC(".maps");

SEC("tc")
int mark(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 now = bpf_ktime_get_ns(), *at = bpf_map_lookup_elem(&empty, &zero);

	if (!at)
		return TC_ACT_OK;
	if (*at < now)
		*at = now;
	if (*at - now > MARK)
		bpf_skb_ecn_set_ce(skb);
	__sync_fetch_and_add(at, (__u64)skb->wire_len * NS_PER_BYTE);
	return TC_ACT_OK;
}
