// The part of libibverbs and librdmacm that iSER needs, for Go. The libraries
// are opened at run time, so a binary with this in it starts without them.
//
// All functions that return int return 0 or more, or -errno. Lists are flat,
// with the layouts of package verbs, and hold addresses as numbers.
#ifndef LUNAR_RDMA_SHIM_H
#define LUNAR_RDMA_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct { uint64_t addr; uint32_t len, lkey; } rs_sge;
typedef struct { uint64_t wr_id, raddr; uint32_t rkey; uint8_t op, flags; uint16_t nsge; } rs_wr;
typedef struct { uint64_t wr_id; uint32_t status, opcode, byte_len, qp_num, flags, inv; } rs_wc;

typedef struct {
	void *id, *listener, *verbs;
	uint32_t type;
	int32_t status;
	uint8_t responder, initiator_depth, rnr_retry, private_len;
	uint8_t private_data[56];
	uint8_t local[28], peer[28]; // sockaddr_in or sockaddr_in6
} rs_event;

typedef struct { uint32_t type, qp_num; uint8_t port; } rs_async_event;

typedef struct {
	uint64_t max_region, node_guid;
	uint32_t max_message;
	int32_t max_qp, max_wr, max_send_sge, max_read_sge, max_cqe, max_responder, max_initiator_depth, comp_vectors;
	uint8_t memory_management, iwarp;
	char firmware[64];
} rs_caps;

typedef struct { int32_t send_wr, recv_wr, send_sge, inline_bytes; } rs_limits;

typedef struct {
	const uint8_t *private_data;
	uint8_t private_len, responder, initiator_depth, rnr_retry, retry;
} rs_param;

int rs_load(char *error, size_t n);

int rs_devices(void **verbs, int max);
const char *rs_name(void *verbs);
int rs_query(void *verbs, rs_caps *caps);
int rs_async_fd(void *verbs);
int rs_async_next(void *verbs, rs_async_event *e);

int rs_pd(void *verbs, void **pd);
int rs_pd_dealloc(void *pd);
int rs_register(void *pd, void *mem, size_t n, int access, void **mr, uint32_t *lkey, uint32_t *rkey);
int rs_deregister(void *mr);

int rs_channel(void *verbs, void **channel, int *fd);
int rs_channel_drain(void *channel);
int rs_channel_destroy(void *channel);
int rs_cq(void *verbs, int cqe, void *channel, int vector, void **cq, int *size);
int rs_cq_poll(void *cq, rs_wc *out, int max);
int rs_cq_arm(void *cq);
int rs_cq_destroy(void *cq);

int rs_events(void **channel, int *fd);
int rs_events_next(void *channel, rs_event *e);
void rs_events_destroy(void *channel);

int rs_listen(void *channel, const void *addr, int v6, int backlog, void **id, uint8_t *local);
int rs_resolve(void *channel, const void *addr, int ms, void **id, void **verbs, uint8_t *local);
int rs_accept(void *id, const rs_param *p);
int rs_connect(void *id, const rs_param *p);
int rs_reject(void *id, const uint8_t *private_data, int n);
int rs_notify(void *id);
int rs_disconnect(void *id);
int rs_id_destroy(void *id);

int rs_qp(void *id, void *pd, void *cq, rs_limits *limits, void **qp, uint32_t *number);
int rs_qp_fail(void *qp);
int rs_qp_destroy(void *id);
int rs_post_send(void *qp, const rs_wr *wrs, int n, const rs_sge *sges, int *posted);
int rs_post_recv(void *qp, const uint64_t *ids, int n, const rs_sge *sges, int *posted);

#endif
