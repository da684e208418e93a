//go:build linux && cgo && rdma

#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#undef ibv_reg_mr
#undef ibv_query_port

_Static_assert(sizeof(rs_sge) == sizeof(struct ibv_sge) && offsetof(rs_sge, lkey) == offsetof(struct ibv_sge, lkey),
	"segments are handed over as they are");
_Static_assert(sizeof(rs_wr) == 24 && sizeof(rs_wc) == 32, "as package verbs has them");

enum { max_post = 64 };

// Functions of the libraries, by the types that the headers give them.
#define VERBS(X) \
	X(ibv_alloc_pd) X(ibv_dealloc_pd) X(ibv_reg_mr) X(ibv_dereg_mr) \
	X(ibv_create_comp_channel) X(ibv_destroy_comp_channel) X(ibv_create_cq) X(ibv_destroy_cq) \
	X(ibv_get_cq_event) X(ibv_ack_cq_events) X(ibv_query_device) X(ibv_get_async_event) \
	X(ibv_ack_async_event) X(ibv_get_device_name) X(ibv_modify_qp)
#define RDMACM(X) \
	X(rdma_create_event_channel) X(rdma_destroy_event_channel) X(rdma_get_cm_event) X(rdma_ack_cm_event) \
	X(rdma_create_id) X(rdma_destroy_id) X(rdma_bind_addr) X(rdma_listen) X(rdma_accept) X(rdma_reject) \
	X(rdma_notify) X(rdma_disconnect) X(rdma_connect) X(rdma_create_qp) X(rdma_destroy_qp) X(rdma_get_devices) \
	X(rdma_free_devices) X(rdma_set_option) X(rdma_resolve_addr) X(rdma_resolve_route) X(rdma_migrate_id)

#define MEMBER(name) __typeof__(&name) name;
static struct {
	VERBS(MEMBER)
	RDMACM(MEMBER)
	// The symbol takes an older, shorter structure than the macro of its name.
	int (*ibv_query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
} lib;

static void *symbol(void *handle, const char *name, char *error, size_t n)
{
	void *found = dlsym(handle, name);
	if (!found && !error[0])
		snprintf(error, n, "%s", dlerror());
	return found;
}

static void *library(const char *name, char *error, size_t n)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		snprintf(error, n, "%s", dlerror());
	return handle;
}

int rs_load(char *error, size_t n)
{
	void *verbs, *rdmacm;

	error[0] = 0;
	verbs = library("libibverbs.so.1", error, n);
	if (!verbs)
		return -ENOENT;
	rdmacm = library("librdmacm.so.1", error, n);
	if (!rdmacm)
		return -ENOENT;
#define FROM_VERBS(name) lib.name = symbol(verbs, #name, error, n);
#define FROM_RDMACM(name) lib.name = symbol(rdmacm, #name, error, n);
	VERBS(FROM_VERBS)
	RDMACM(FROM_RDMACM)
	lib.ibv_query_port = symbol(verbs, "ibv_query_port", error, n);
	return error[0] ? -ENOSYS : 0;
}

// failure is what a function left in errno.
static int failure(void) { return errno ? -errno : -EIO; }

// result is for functions that return 0, -1 with errno, or an errno.
static int result(int r) { return r == 0 ? 0 : r > 0 ? -r : failure(); }

static int nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int rs_devices(void **verbs, int max)
{
	int n = 0, i;
	struct ibv_context **list = lib.rdma_get_devices(&n);

	if (!list)
		return failure();
	if (n > max)
		n = max;
	for (i = 0; i < n; i++)
		verbs[i] = list[i];
	lib.rdma_free_devices(list); // frees the list; the devices stay open
	return n;
}

const char *rs_name(void *verbs) { return lib.ibv_get_device_name(((struct ibv_context *)verbs)->device); }

int rs_query(void *verbs, rs_caps *caps)
{
	struct ibv_context *context = verbs;
	struct ibv_device_attr attr = { 0 };
	struct ibv_port_attr port = { 0 };
	int r = nonblocking(context->async_fd);

	if (r == 0)
		r = result(lib.ibv_query_device(context, &attr));
	if (r == 0)
		r = result(lib.ibv_query_port(context, 1, &port));
	if (r)
		return r;
	*caps = (rs_caps){
		.max_region = attr.max_mr_size, .node_guid = be64toh(attr.node_guid), .max_message = port.max_msg_sz,
		.max_qp = attr.max_qp, .max_wr = attr.max_qp_wr, .max_send_sge = attr.max_sge,
		.max_read_sge = attr.max_sge_rd > 0 && attr.max_sge_rd < attr.max_sge ? attr.max_sge_rd : attr.max_sge,
		.max_cqe = attr.max_cqe, .max_responder = attr.max_qp_rd_atom, .max_initiator_depth = attr.max_qp_init_rd_atom,
		.comp_vectors = context->num_comp_vectors,
		.memory_management = !!(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS),
		.iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP,
	};
	memcpy(caps->firmware, attr.fw_ver, sizeof(caps->firmware) - 1);
	return 0;
}

int rs_async_fd(void *verbs) { return ((struct ibv_context *)verbs)->async_fd; }

int rs_async_next(void *verbs, rs_async_event *e)
{
	struct ibv_async_event event;

	errno = 0;
	if (lib.ibv_get_async_event(verbs, &event))
		return failure();
	*e = (rs_async_event){ .type = event.event_type };
	switch (event.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		e->qp_num = event.element.qp->qp_num;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		e->port = event.element.port_num;
		break;
	default:
		break;
	}
	lib.ibv_ack_async_event(&event);
	return 0;
}

int rs_pd(void *verbs, void **pd)
{
	*pd = lib.ibv_alloc_pd(verbs);
	return *pd ? 0 : failure();
}

int rs_pd_dealloc(void *pd) { return result(lib.ibv_dealloc_pd(pd)); }

int rs_register(void *pd, void *mem, size_t n, int access, void **mr, uint32_t *lkey, uint32_t *rkey)
{
	struct ibv_mr *made = lib.ibv_reg_mr(pd, mem, n, access);

	if (!made)
		return failure();
	*mr = made, *lkey = made->lkey, *rkey = made->rkey;
	return 0;
}

int rs_deregister(void *mr) { return result(lib.ibv_dereg_mr(mr)); }

int rs_channel(void *verbs, void **channel, int *fd)
{
	struct ibv_comp_channel *made = lib.ibv_create_comp_channel(verbs);
	int r;

	if (!made)
		return failure();
	r = nonblocking(made->fd);
	if (r) {
		lib.ibv_destroy_comp_channel(made);
		return r;
	}
	*channel = made, *fd = made->fd;
	return 0;
}

// rs_channel_drain acknowledges runs of events of one CQ together, because each
// acknowledgement takes a mutex.
int rs_channel_drain(void *channel)
{
	struct ibv_cq *cq, *run = NULL;
	unsigned int length = 0;
	void *unused;
	int n = 0;

	errno = 0;
	while (lib.ibv_get_cq_event(channel, &cq, &unused) == 0) {
		if (cq != run && length) {
			lib.ibv_ack_cq_events(run, length);
			length = 0;
		}
		run = cq, length++, n++;
	}
	if (length)
		lib.ibv_ack_cq_events(run, length);
	return n > 0 || errno == EAGAIN || errno == EINTR ? n : failure();
}

int rs_channel_destroy(void *channel) { return result(lib.ibv_destroy_comp_channel(channel)); }

int rs_cq(void *verbs, int cqe, void *channel, int vector, void **cq, int *size)
{
	struct ibv_cq *made = lib.ibv_create_cq(verbs, cqe, NULL, channel, vector);

	if (!made)
		return failure();
	*cq = made, *size = made->cqe;
	return 0;
}

int rs_cq_poll(void *cq, rs_wc *out, int max)
{
	struct ibv_wc wc[max_post];
	int n = ibv_poll_cq(cq, max < max_post ? max : max_post, wc), i;

	if (n < 0)
		return n == -1 ? failure() : n;
	for (i = 0; i < n; i++)
		out[i] = (rs_wc){
			.wr_id = wc[i].wr_id, .status = wc[i].status, .opcode = wc[i].opcode, .byte_len = wc[i].byte_len,
			.qp_num = wc[i].qp_num, .flags = wc[i].wc_flags, .inv = wc[i].invalidated_rkey,
		};
	return n;
}

int rs_cq_arm(void *cq) { return result(ibv_req_notify_cq(cq, 0)); }

int rs_cq_destroy(void *cq) { return result(lib.ibv_destroy_cq(cq)); }

int rs_events(void **channel, int *fd)
{
	struct rdma_event_channel *made;
	int r;

	errno = 0;
	made = lib.rdma_create_event_channel();
	if (!made)
		return failure();
	r = nonblocking(made->fd);
	if (r) {
		lib.rdma_destroy_event_channel(made);
		return r;
	}
	*channel = made, *fd = made->fd;
	return 0;
}

static void address(uint8_t *to, const struct sockaddr *from)
{
	memset(to, 0, 28);
	if (from->sa_family == AF_INET)
		memcpy(to, from, sizeof(struct sockaddr_in));
	else if (from->sa_family == AF_INET6)
		memcpy(to, from, sizeof(struct sockaddr_in6));
}

int rs_events_next(void *channel, rs_event *e)
{
	struct rdma_cm_event *event;

	errno = 0;
	if (lib.rdma_get_cm_event(channel, &event))
		return failure();
	*e = (rs_event){
		.id = event->id, .listener = event->listen_id, .verbs = event->id->verbs,
		.type = event->event, .status = event->status,
	};
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
		e->responder = event->param.conn.responder_resources;
		e->initiator_depth = event->param.conn.initiator_depth;
		e->rnr_retry = event->param.conn.rnr_retry_count;
		e->private_len = event->param.conn.private_data_len;
		if (e->private_len > sizeof(e->private_data))
			e->private_len = sizeof(e->private_data);
		if (event->param.conn.private_data)
			memcpy(e->private_data, event->param.conn.private_data, e->private_len);
		break;
	default:
		break;
	}
	address(e->local, &event->id->route.addr.src_addr);
	address(e->peer, &event->id->route.addr.dst_addr);
	lib.rdma_ack_cm_event(event);
	return 0;
}

void rs_events_destroy(void *channel) { lib.rdma_destroy_event_channel(channel); }

static int bind_and_listen(struct rdma_cm_id *id, const void *addr, int v6, int backlog)
{
	int on = 1;

	// A restarted target finds its predecessor's connections still ending.
	if (lib.rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)))
		return failure();
	if (v6 && lib.rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)))
		return failure();
	if (lib.rdma_bind_addr(id, (struct sockaddr *)addr) || lib.rdma_listen(id, backlog))
		return failure();
	return 0;
}

int rs_listen(void *channel, const void *addr, int v6, int backlog, void **id, uint8_t *local)
{
	struct rdma_cm_id *made;
	int r;

	if (lib.rdma_create_id(channel, &made, NULL, RDMA_PS_TCP))
		return failure();
	r = bind_and_listen(made, addr, v6, backlog);
	if (r) {
		lib.rdma_destroy_id(made);
		return r;
	}
	address(local, &made->route.addr.src_addr);
	*id = made;
	return 0;
}

// rs_resolve uses an id without a channel, whose calls wait for their results.
int rs_resolve(void *channel, const void *addr, int ms, void **id, void **verbs, uint8_t *local)
{
	struct rdma_cm_id *made;
	int r = 0;

	if (lib.rdma_create_id(NULL, &made, NULL, RDMA_PS_TCP))
		return failure();
	if (lib.rdma_resolve_addr(made, NULL, (struct sockaddr *)addr, ms) || lib.rdma_resolve_route(made, ms) ||
	    lib.rdma_migrate_id(made, channel))
		r = failure();
	if (r) {
		lib.rdma_destroy_id(made);
		return r;
	}
	address(local, &made->route.addr.src_addr);
	*id = made, *verbs = made->verbs;
	return 0;
}

static struct rdma_conn_param conn_param(const rs_param *p)
{
	return (struct rdma_conn_param){
		.private_data = p->private_len ? p->private_data : NULL, .private_data_len = p->private_len,
		.responder_resources = p->responder, .initiator_depth = p->initiator_depth,
		.retry_count = p->retry, .rnr_retry_count = p->rnr_retry,
	};
}

int rs_accept(void *id, const rs_param *p)
{
	struct rdma_conn_param param = conn_param(p);
	return result(lib.rdma_accept(id, &param));
}

int rs_connect(void *id, const rs_param *p)
{
	struct rdma_conn_param param = conn_param(p);
	return result(lib.rdma_connect(id, &param));
}

int rs_reject(void *id, const uint8_t *private_data, int n) { return result(lib.rdma_reject(id, n ? private_data : NULL, n)); }

int rs_notify(void *id)
{
	int r = result(lib.rdma_notify(id, IBV_EVENT_COMM_EST));
	return r == -EISCONN ? 0 : r;
}

// rs_disconnect: EINVAL means that the connection is over already.
int rs_disconnect(void *id)
{
	int r = result(lib.rdma_disconnect(id));
	return r == -EINVAL || r == -ENOTCONN ? 0 : r;
}

int rs_id_destroy(void *id) { return result(lib.rdma_destroy_id(id)); }

int rs_qp(void *id, void *pd, void *cq, rs_limits *limits, void **qp, uint32_t *number)
{
	struct rdma_cm_id *on = id;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = limits->send_wr, .max_recv_wr = limits->recv_wr, .max_send_sge = limits->send_sge,
			 .max_recv_sge = 1, .max_inline_data = limits->inline_bytes },
	};

	if (lib.rdma_create_qp(on, pd, &attr))
		return failure();
	*limits = (rs_limits){ attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_send_sge, attr.cap.max_inline_data };
	*qp = on->qp, *number = on->qp->qp_num;
	return 0;
}

int rs_qp_fail(void *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	return result(lib.ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

int rs_qp_destroy(void *id)
{
	lib.rdma_destroy_qp(id);
	return 0;
}

static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

int rs_post_send(void *qp, const rs_wr *wrs, int n, const rs_sge *sges, int *posted)
{
	struct ibv_send_wr chain[max_post], *bad = NULL;
	int i, r;

	for (i = 0; i < n; i++) {
		const rs_wr *w = &wrs[i];
		struct ibv_send_wr *c = &chain[i];

		c->wr_id = w->wr_id;
		c->next = i + 1 < n ? c + 1 : NULL;
		c->sg_list = (struct ibv_sge *)sges;
		c->num_sge = w->nsge;
		c->opcode = opcodes[w->op & 3];
		c->send_flags = w->flags;
		c->invalidate_rkey = w->rkey; // the union of immediate data and key
		c->wr.rdma.remote_addr = w->raddr;
		c->wr.rdma.rkey = w->rkey;
		sges += w->nsge;
	}
	r = ibv_post_send(qp, chain, &bad);
	*posted = r && bad ? (int)(bad - chain) : r ? 0 : n;
	return r > 0 ? -r : r;
}

int rs_post_recv(void *qp, const uint64_t *ids, int n, const rs_sge *sges, int *posted)
{
	struct ibv_recv_wr chain[max_post], *bad = NULL;
	int i, r;

	for (i = 0; i < n; i++)
		chain[i] = (struct ibv_recv_wr){
			.wr_id = ids[i], .next = i + 1 < n ? &chain[i + 1] : NULL,
			.sg_list = (struct ibv_sge *)&sges[i], .num_sge = 1,
		};
	r = ibv_post_recv(qp, chain, &bad);
	*posted = r && bad ? (int)(bad - chain) : r ? 0 : n;
	return r > 0 ? -r : r;
}
