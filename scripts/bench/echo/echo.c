// echo is what the kernel's TCP and one thread let anyone reach: requests and
// replies of the lengths that commands have, without protocol or storage. Both
// sides sleep while there is nothing to do.
//
//	echo serve MIB: prints its port; replies come out of, and payload goes to,
//	random places of so much memory.
//	echo ring MIB: the same through io_uring.
//	echo drive PORT PID CONNECTIONS DEPTH BYTES READ-PERCENT WARMUP-MS
//	RUNTIME-MS: prints what tgtload --json prints, with PID's CPU time.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 48, BUFFER = 512 << 10, SLOT = 4096, PARTS = 1024, DEPTH = 1024, FINE = 32 };

// A request is a header and `in` bytes, its reply a header and `out` bytes.
struct header { uint32_t in, out; char rest[HEADER - 8]; };

struct connection {
	int fd, depth, first;         // requests outstanding, the oldest of them
	size_t have;                  // bytes in the buffer; the client: of a reply
	char *buffer;
	uint32_t out[DEPTH];          // the client's requests, a ring
	int64_t at[DEPTH], done;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	if (clock_gettime(clock, &t)) err(1, "clock");
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint64_t next_random(void)
{
	static uint64_t state = 1;
	state = state * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL;
	return state >> 33;
}

// add appends a part, and sends all when there is no more room.
struct batch { struct iovec parts[PARTS]; int count; };

static void flush(int fd, struct batch *b)
{
	struct msghdr m = { .msg_iov = b->parts, .msg_iovlen = b->count };
	while (m.msg_iovlen) {
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) break; // the peer has gone: the next receive tells
		for (; m.msg_iovlen && (size_t)n >= m.msg_iov->iov_len; m.msg_iov++, m.msg_iovlen--) n -= m.msg_iov->iov_len;
		if (m.msg_iovlen) { m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + n; m.msg_iov->iov_len -= n; }
	}
	b->count = 0;
}

static void add(int fd, struct batch *b, const void *from, size_t bytes)
{
	if (b->count == PARTS) flush(fd, b);
	b->parts[b->count++] = (struct iovec){ (void *)from, bytes };
}

static struct connection *adopt(int epoll, int fd)
{
	struct connection *c = calloc(1, sizeof *c);
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
	if (!c || !(c->buffer = malloc(BUFFER))) err(1, "memory");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	c->fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e)) err(1, "epoll");
	return c;
}

static void serve(size_t bytes)
{
	static const struct header reply;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	if (memory == MAP_FAILED) err(1, "memory");
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 'x', bytes);
	if (bind(listener, (void *)&a, length) || listen(listener, 128) || getsockname(listener, (void *)&a, &length)) err(1, "listen");
	struct epoll_event all = { .events = EPOLLIN }, events[256];
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &all)) err(1, "epoll");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, events, 256, -1);
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if (!c) { adopt(epoll, accept(listener, 0, 0)); continue; }
			ssize_t got = recv(c->fd, c->buffer + c->have, BUFFER - c->have, MSG_DONTWAIT);
			if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
			if (got <= 0) { close(c->fd); free(c->buffer); free(c); continue; }
			c->have += got;
			struct batch b = { .count = 0 };
			char *at = c->buffer;
			for (;;) {
				struct header h;
				if (c->have < HEADER) break;
				memcpy(&h, at, HEADER);
				if (c->have < HEADER + (size_t)h.in) break;
				size_t slots = (bytes - h.in - h.out) / SLOT + 1;
				char *data = memory + next_random() % slots * SLOT;
				if (h.in) memcpy(data, at + HEADER, h.in);
				add(c->fd, &b, &reply, HEADER);
				if (h.out) add(c->fd, &b, data, h.out);
				at += HEADER + h.in;
				c->have -= HEADER + h.in;
			}
			flush(c->fd, &b);
			memmove(c->buffer, at, c->have);
		}
	}
}

#include "ring.h"

// histogram of latencies in ns: FINE steps for each power of two.
static int64_t histogram[64 * FINE];

static void note(int64_t ns)
{
	int power = 63 - __builtin_clzll(ns | FINE);
	histogram[power * FINE + (ns >> (power - 5)) % FINE]++;
}

static double quantile(double q, int64_t count)
{
	int64_t seen = 0;
	for (int i = 0; i < 64 * FINE; i++)
		if ((seen += histogram[i]) > q * count) return (double)((int64_t)(FINE + i % FINE) << (i / FINE - 5)) / 1e3;
	return 0;
}

static void ask(struct connection *c, int count, uint32_t bytes, int read_percent, int64_t now)
{
	static char payload[BUFFER];
	static struct header headers[DEPTH];
	struct batch b = { .count = 0 };
	for (int i = 0; i < count; i++) {
		int reads = (int)(next_random() % 100) < read_percent, place = (c->first + c->depth++) % DEPTH;
		headers[i] = (struct header){ .in = reads ? 0 : bytes, .out = reads ? bytes : 0 };
		c->out[place] = headers[i].out;
		c->at[place] = now;
		add(c->fd, &b, &headers[i], HEADER);
		if (!reads) add(c->fd, &b, payload, bytes);
	}
	flush(c->fd, &b);
}

static void drive(char **v)
{
	int port = atoi(v[0]), pid = atoi(v[1]), count = atoi(v[2]), depth = atoi(v[3]), reads = atoi(v[5]), epoll = epoll_create1(0);
	uint32_t bytes = atoi(v[4]);
	int64_t from = clock_ns(CLOCK_MONOTONIC), begin = from + atoll(v[6]) * 1000000, end = begin + atoll(v[7]) * 1000000;
	clockid_t server;
	if (depth > DEPTH || bytes > BUFFER / 2 || clock_getcpuclockid(pid, &server)) errx(1, "depth, bytes or process");
	struct connection *all[count];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port) };
	for (int i = 0; i < count; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&a, sizeof a)) err(1, "connect");
		all[i] = adopt(epoll, fd);
		ask(all[i], depth, bytes, reads, from);
	}
	int64_t now = from, idle = 0, began = 0, spent = 0, mine = 0, sum = 0, total = 0, least = INT64_MAX, most = 0;
	while (now < end) {
		struct epoll_event events[256];
		int64_t slept = clock_ns(CLOCK_MONOTONIC);
		int n = epoll_wait(epoll, events, 256, 1000);
		now = clock_ns(CLOCK_MONOTONIC);
		if (began) idle += now - slept;
		if (!began && now >= begin) {
			began = now;
			spent = clock_ns(server);
			mine = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		}
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			ssize_t got = recv(c->fd, c->buffer, BUFFER, MSG_DONTWAIT);
			if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
			if (got <= 0) errx(1, "the server has gone");
			int ended = 0;
			for (c->have += got; c->depth && c->have >= HEADER + (size_t)c->out[c->first]; ended++) {
				c->have -= HEADER + c->out[c->first];
				if (began) { note(now - c->at[c->first]); sum += now - c->at[c->first]; c->done++; }
				c->first = (c->first + 1) % DEPTH;
				c->depth--;
			}
			ask(c, ended, bytes, reads, now);
		}
	}
	spent = clock_ns(server) - spent;
	mine = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - mine;
	double seconds = (now - began) / 1e9;
	for (int i = 0; i < count; i++) {
		total += all[i]->done;
		if (all[i]->done < least) least = all[i]->done;
		if (all[i]->done > most) most = all[i]->done;
	}
	printf("{\"seconds\":%f,\"iops\":%f,\"bytes_per_second\":%f,\"client_busy\":%f,"
	       "\"latency_us\":{\"mean\":%f,\"p50\":%f,\"p99\":%f},\"connections\":{\"count\":%d,\"min_iops\":%f,\"mean_iops\":%f,\"max_iops\":%f},"
	       "\"client_cpu\":{\"seconds\":%f,\"us_per_io\":%f},\"server_cpu\":{\"seconds\":%f,\"us_per_io\":%f}}\n",
	       seconds, total / seconds, total / seconds * bytes, 1 - idle / 1e9 / seconds, sum / 1e3 / total, quantile(.5, total), quantile(.99, total),
	       count, least / seconds, total / seconds / count, most / seconds, mine / 1e9, mine / 1e3 / total, spent / 1e9, spent / 1e3 / total);
}

int main(int count, char **v)
{
	if (count == 3 && !strcmp(v[1], "serve")) serve(strtoull(v[2], 0, 10) << 20);
	if (count == 3 && !strcmp(v[1], "ring")) serve_ring(strtoull(v[2], 0, 10) << 20);
	if (count == 10 && !strcmp(v[1], "drive")) { drive(v + 2); return 0; }
	errx(2, "echo serve|ring MIB | drive PORT PID CONNECTIONS DEPTH BYTES READ-PERCENT WARMUP-MS RUNTIME-MS");
}
