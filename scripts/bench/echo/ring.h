// The echo's server with one ring of io_uring for all: multishot receives into provided
// buffers, replies by SENDMSG, one system call a pass.
#include <linux/io_uring.h>
#include <stdbool.h>
#include <sys/syscall.h>

// Completions run only while this thread waits.
enum { ENTRIES = 512, PIECES = 512, PIECE = 64 << 10, ACCEPT = 1, RECEIVE = 2, SEND = 3, KINDS = 3 };

static struct {
	int fd;
	unsigned *head, *tail, mask, *done, *ready, donemask, queued;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	struct io_uring_buf_ring *pieces;
	char *memory;
} ring;

static void open_ring(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE, .cq_entries = 4096 };
	if ((ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &p)) < 0) err(1, "io_uring");
	char *m = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	ring.sqes = mmap(0, ENTRIES * sizeof *ring.sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	ring.head = (void *)(m + p.sq_off.head);
	ring.tail = (void *)(m + p.sq_off.tail);
	ring.mask = p.sq_entries - 1;
	unsigned *array = (void *)(m + p.sq_off.array);
	for (unsigned i = 0; i < p.sq_entries; i++) array[i] = i;
	ring.done = (void *)(m + p.cq_off.head);
	ring.ready = (void *)(m + p.cq_off.tail);
	ring.donemask = p.cq_entries - 1;
	ring.cqes = (void *)(m + p.cq_off.cqes);
	ring.memory = mmap(0, (size_t)PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE | MAP_POPULATE, -1, 0);
	ring.pieces = mmap(0, PIECES * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE | MAP_POPULATE, -1, 0);
	struct io_uring_buf_reg r = { .ring_addr = (uintptr_t)ring.pieces, .ring_entries = PIECES, .bgid = 0 };
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &r, 1)) err(1, "buffers");
}

static void give(unsigned id)
{
	unsigned short tail = ring.pieces->tail;
	struct io_uring_buf *b = &ring.pieces->bufs[tail & (PIECES - 1)];
	b->addr = (uintptr_t)(ring.memory + (size_t)id * PIECE);
	b->len = PIECE;
	b->bid = id;
	__atomic_store_n(&ring.pieces->tail, tail + 1, __ATOMIC_RELEASE);
}

static void enter(unsigned wait)
{
	unsigned n = ring.queued;
	ring.queued = 0;
	while (syscall(SYS_io_uring_enter, ring.fd, n, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) < 0)
		if (errno != EINTR) err(1, "enter");
}

static struct io_uring_sqe *entry(int op, int fd, void *owner, int kind)
{
	if (ring.queued == ENTRIES) enter(0);
	struct io_uring_sqe *e = &ring.sqes[*ring.tail & ring.mask];
	memset(e, 0, sizeof *e);
	e->opcode = op;
	e->fd = fd;
	e->user_data = (uintptr_t)owner | kind;
	__atomic_store_n(ring.tail, *ring.tail + 1, __ATOMIC_RELEASE);
	ring.queued++;
	return e;
}

struct ringed {
	struct connection c;
	struct batch now[2];   // replies: of which one is being sent
	struct msghdr m;
	int sending, filling;
	bool gone;
};

static void receive(struct ringed *r)
{
	struct io_uring_sqe *e = entry(IORING_OP_RECV, r->c.fd, r, RECEIVE);
	e->ioprio = IORING_RECV_MULTISHOT;
	e->flags = IOSQE_BUFFER_SELECT;
}

static void send_ready(struct ringed *r)
{
	struct batch *b = &r->now[r->filling];
	if (r->sending || !b->count) return;
	r->m = (struct msghdr){ .msg_iov = b->parts, .msg_iovlen = b->count };
	struct io_uring_sqe *e = entry(IORING_OP_SENDMSG, r->c.fd, r, SEND);
	e->addr = (uintptr_t)&r->m;
	e->msg_flags = MSG_WAITALL | MSG_NOSIGNAL;
	r->sending = 1;
	r->filling ^= 1;
}

// take serves whole requests in [at, at+have) and returns how much they took.
static size_t take(struct ringed *r, char *memory, size_t bytes, char *at, size_t have)
{
	static const struct header reply;
	struct batch *b = &r->now[r->filling];
	size_t all = have;
	while (have >= HEADER) {
		struct header h;
		memcpy(&h, at, HEADER);
		if (have < HEADER + (size_t)h.in) break;
		if (b->count + 2 > PARTS) errx(1, "too deep");
		size_t slots = (bytes - h.in - h.out) / SLOT + 1;
		char *data = memory + next_random() % slots * SLOT;
		if (h.in) memcpy(data, at + HEADER, h.in);
		b->parts[b->count++] = (struct iovec){ (void *)&reply, HEADER };
		if (h.out) b->parts[b->count++] = (struct iovec){ data, h.out };
		at += HEADER + h.in;
		have -= HEADER + h.in;
	}
	return all - have;
}

static void serve_ring(size_t bytes)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	if (memory == MAP_FAILED) err(1, "memory");
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 'x', bytes);
	if (bind(listener, (void *)&a, length) || listen(listener, 128) || getsockname(listener, (void *)&a, &length)) err(1, "listen");
	open_ring();
	for (unsigned i = 0; i < PIECES; i++) give(i);
	entry(IORING_OP_ACCEPT, listener, NULL, ACCEPT)->ioprio = IORING_ACCEPT_MULTISHOT;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	struct ringed *ready[1024];
	for (;;) {
		int some = 0;
		enter(1);
		unsigned at = *ring.done, end = __atomic_load_n(ring.ready, __ATOMIC_ACQUIRE);
		for (; at != end; at++) {
			struct io_uring_cqe *q = &ring.cqes[at & ring.donemask];
			struct ringed *r = (void *)(uintptr_t)(q->user_data & ~(uint64_t)KINDS);
			switch (q->user_data & KINDS) {
			case ACCEPT:
				if (q->res < 0) errx(1, "accept: %s", strerror(-q->res));
				setsockopt(q->res, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
				if (!(r = calloc(1, sizeof *r)) || !(r->c.buffer = malloc(BUFFER))) err(1, "memory");
				r->c.fd = q->res;
				receive(r);
				break;
			case SEND:
				r->sending = 0;
				r->now[r->filling ^ 1].count = 0;
				if (!r->gone && q->res >= 0) send_ready(r);
				break;
			case RECEIVE:
				if (q->res > 0) {
					unsigned id = q->flags >> IORING_CQE_BUFFER_SHIFT;
					char *p = ring.memory + (size_t)id * PIECE;
					size_t n = q->res, used = 0;
					while (r->c.have && used < n) { // what began in another piece
						struct header h;
						size_t want = HEADER;
						if (r->c.have >= HEADER) { memcpy(&h, r->c.buffer, HEADER); want += h.in; }
						size_t more = want - r->c.have < n - used ? want - r->c.have : n - used;
						memcpy(r->c.buffer + r->c.have, p + used, more);
						used += more;
						r->c.have += more;
						if (take(r, memory, bytes, r->c.buffer, r->c.have)) r->c.have = 0;
					}
					used += take(r, memory, bytes, p + used, n - used);
					if (used < n) { memcpy(r->c.buffer, p + used, n - used); r->c.have = n - used; }
					give(id);
					if (some < 1024) ready[some++] = r;
				} else if (q->res != -ENOBUFS) {
					r->gone = true;
					close(r->c.fd);
					break;
				}
				if (!(q->flags & IORING_CQE_F_MORE)) receive(r);
			}
		}
		__atomic_store_n(ring.done, at, __ATOMIC_RELEASE);
		for (int i = 0; i < some; i++) if (!ready[i]->gone) send_ready(ready[i]);
	}
}
