// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// QTCP as a congestion control of the kernel (BPF struct_ops): DCTCP whose connections make
// way when they get more than the share that tgtd gives them. scheduler/qtcp has the rule
// (Flow.UpdateWeighed); shares of tgtd come by the map. Fractions are of 1024. build.sh compiles
// this file.
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;

enum { false, true };

char _license[] SEC("license") = "Dual BSD/GPL";

// What is used of the kernel's structures; offsets are found when it is loaded.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_nxt;
	u32 snd_una;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 delivered;
	u32 delivered_ce;
	u32 srtt_us;
	u32 mdev_us;
	u64 bytes_acked;
	u8 ecn_flags;
	struct minmax rtt_min;
};

struct tcp_congestion_ops {
	u32 flags;
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

#pragma clang attribute pop

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_OK 1
#define TCP_CA_Recovery 3
#define TCP_CA_Loss 4

enum {
	WHOLE = 1024,
	EPSILON = 10, // an alpha up to this is no congestion
	LEAST_CWND = 2,
	JITTER = 2, // mean deviations of the round trip that are no congestion
};

// What tgtd says of a connection.
struct share {
	u64 target;   // bytes per second; 0: nothing is known
	u64 delay_us; // beyond the shortest round trip, from which one counts as congested without ECN
	u64 weight;   // packets by which the window grows in a round trip; 0: nothing is known
	u64 hold;     // without ECN, the window is the least one until this is 0 again
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct share);
} lunar_shares SEC(".maps");

// In icsk_ca_priv, of at most 104 bytes.
struct flow {
	u64 began;     // of the round trip, ns
	u64 acked;     // bytes, then
	u64 measured;  // bytes per second
	u32 delivered; // packets, then
	u32 marked;
	u32 next;      // snd_nxt, then: its acknowledgement ends the round trip
	u32 alpha;
	u32 loss_cwnd;
	u32 quality;   // target / measured
	u32 fraction;  // of a packet that the window has beyond snd_cwnd
	u32 weight;
	u32 credit;    // of packets that were acknowledged and not counted yet
	u32 grows;     // the window does, in this round trip
	u32 cut;       // the last round trip did: packets of this one left before that
	u32 held;      // the window before it had to be the least one; 0: it has not
};

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp(struct sock *sk) { return (struct tcp_sock *)sk; }
static __always_inline struct flow *flow_of(struct sock *sk) { return (struct flow *)tcp(sk)->inet_conn.icsk_ca_priv; }
static __always_inline bool marks(struct sock *sk) { return tcp(sk)->ecn_flags & TCP_ECN_OK; }

static __always_inline void begin(struct sock *sk, struct flow *f)
{
	const struct tcp_sock *tp = tcp(sk);

	f->began = bpf_ktime_get_ns();
	f->acked = tp->bytes_acked;
	f->delivered = tp->delivered;
	f->marked = tp->delivered_ce;
	f->next = tp->snd_nxt;
}

SEC("struct_ops/lunar_init")
void BPF_PROG(lunar_init, struct sock *sk)
{
	struct flow *f = flow_of(sk);

	begin(sk, f);
	f->measured = 0;
	f->alpha = 0;
	f->loss_cwnd = 0;
	f->quality = f->weight = WHOLE;
	f->fraction = f->credit = 0;
	f->grows = 1;
	f->cut = f->held = 0;
}

static __always_inline u32 half(struct flow *f)
{
	return f->loss_cwnd / 2 < LEAST_CWND ? LEAST_CWND : f->loss_cwnd / 2;
}

SEC("struct_ops/lunar_ssthresh")
u32 BPF_PROG(lunar_ssthresh, struct sock *sk)
{
	struct flow *f = flow_of(sk);

	f->loss_cwnd = tcp(sk)->snd_cwnd;
	return marks(sk) ? f->loss_cwnd : half(f); // a mark: its round trip makes the cut
}

SEC("struct_ops/lunar_cong_avoid")
void BPF_PROG(lunar_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_sock *tp = tcp(sk);
	struct flow *f = flow_of(sk);

	if (!f->grows)
		return;
	if (tp->snd_cwnd >= tp->snd_ssthresh) {
		f->credit += acked * f->weight;
		acked = f->credit / WHOLE;
		f->credit %= WHOLE;
	}
	if (acked)
		tcp_reno_cong_avoid(sk, ack, acked);
}

// What is lost is more than what is marked says, and counts while the window is held.
SEC("struct_ops/lunar_set_state")
void BPF_PROG(lunar_set_state, struct sock *sk, u8 new_state)
{
	if (new_state != TCP_CA_Recovery && new_state != TCP_CA_Loss)
		return;
	if (marks(sk))
		tcp(sk)->snd_ssthresh = half(flow_of(sk));
	flow_of(sk)->held /= 2;
}

// share_of is the marked share of a round trip.
static __always_inline u32 share_of(struct sock *sk, struct flow *f, u32 delivered, struct share *s)
{
	const struct tcp_sock *tp = tcp(sk);
	u64 m, took = tp->srtt_us >> 3, least = tp->rtt_min.s[0].v + JITTER * (tp->mdev_us >> 2), allowed = s ? s->delay_us : 1000;

	if (marks(sk)) {
		m = (u64)(tp->delivered_ce - f->marked) * WHOLE / delivered;
		return m > WHOLE ? WHOLE : m;
	}
	return took <= least + allowed ? 0 : WHOLE - allowed * WHOLE / (took - least);
}

// cut ends a round trip in which a share was marked.
static __always_inline void cut(struct sock *sk, struct flow *f, u32 share)
{
	struct tcp_sock *tp = tcp(sk);
	u64 w = (u64)tp->snd_cwnd * WHOLE + f->fraction;
	bool again = f->cut;

	f->cut = 0;
	f->grows = f->alpha <= EPSILON || (!share && f->quality >= WHOLE);
	if (f->grows || again)
		return;
	f->cut = 1;
	if (share)
		w = w * (2 * WHOLE - f->alpha) / (2 * WHOLE);
	w = w * f->quality / WHOLE;
	if (w < LEAST_CWND * WHOLE)
		w = LEAST_CWND * WHOLE;
	tp->snd_cwnd = w / WHOLE;
	tp->snd_ssthresh = tp->snd_cwnd;
	f->fraction = w % WHOLE;
}

// hold has the window be the least one while all that share the bottleneck hold back, so that each
// measures a round trip without a queue. It reports whether the round trip that ends was one of
// those, which tell nothing.
static __always_inline bool hold(struct sock *sk, struct flow *f, struct share *s)
{
	struct tcp_sock *tp = tcp(sk);

	if (s && s->hold && !marks(sk)) {
		if (!f->held)
			f->held = tp->snd_cwnd;
		f->grows = 0;
		tp->snd_cwnd = LEAST_CWND;
		return true;
	}
	if (!f->held)
		return false;
	if (tp->snd_cwnd < f->held)
		tp->snd_cwnd = f->held;
	f->held = 0;
	return true;
}

SEC("struct_ops/lunar_in_ack_event")
void BPF_PROG(lunar_in_ack_event, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp(sk);
	struct flow *f = flow_of(sk);
	struct share *s;
	u64 now, took, rate;
	u32 delivered, share;

	if ((int)(tp->snd_una - f->next) < 0)
		return;
	delivered = tp->delivered - f->delivered;
	now = bpf_ktime_get_ns();
	took = (now - f->began) / 1000;
	s = bpf_sk_storage_get(&lunar_shares, sk, 0, 0);
	if (!hold(sk, f, s) && delivered && took) {
		share = share_of(sk, f, delivered, s);
		f->alpha = (f->alpha + share) / 2;
		rate = (tp->bytes_acked - f->acked) * 1000000 / took;
		f->measured = f->measured ? (f->measured + rate) / 2 : rate;
		f->quality = f->weight = WHOLE;
		if (s && s->target && f->measured)
			f->quality = s->target >= f->measured ? WHOLE : s->target * WHOLE / f->measured;
		if (s && s->weight)
			f->weight = s->weight;
		cut(sk, f, share);
	}
	begin(sk, f);
}

SEC("struct_ops/lunar_undo_cwnd")
u32 BPF_PROG(lunar_undo_cwnd, struct sock *sk)
{
	const struct flow *f = flow_of(sk);
	u32 w = tcp(sk)->snd_cwnd;

	return w > f->loss_cwnd ? w : f->loss_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops lunar_qtcp = {
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	.init = (void *)lunar_init,
	.ssthresh = (void *)lunar_ssthresh,
	.cong_avoid = (void *)lunar_cong_avoid,
	.set_state = (void *)lunar_set_state,
	.in_ack_event = (void *)lunar_in_ack_event,
	.undo_cwnd = (void *)lunar_undo_cwnd,
	.name = "lunar_qtcp",
};
