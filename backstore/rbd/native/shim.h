// The part of librbd and librados that a store needs, for Go. The libraries are opened at
// run time, so a binary with this in it starts without them.
//
// All functions that return int return 0 or more, or -errno.
#ifndef LUNAR_RBD_SHIM_H
#define LUNAR_RBD_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct lr_queue;

// lr_io is an operation; Go walks the list of those that have ended.
typedef struct lr_io {
	struct lr_io *next;
	struct lr_queue *queue;
	int64_t result;
	uint32_t token;
} lr_io;

// lr_queue is shared by librbd's threads, which push, and one event thread. Go knows its
// layout, too.
typedef struct lr_queue {
	_Alignas(64) lr_io *ended;
	int32_t asleep;
	int32_t fd;
	struct lr_queue *next; // of those that are not in use
} lr_queue;

typedef struct {
	char id[64];
	int64_t pool;
	uint64_t size, object, stripe;
	int32_t lockable;
} lr_geometry;

enum { lr_read, lr_write, lr_zero };

int lr_load(char *error, size_t n);
void lr_version(int *major, int *minor, int *extra);

int lr_create(const char *user, void **cluster);
int lr_configure(void *cluster, const char *path);
int lr_set(void *cluster, const char *option, const char *value);
int lr_connect(void *cluster, char *address, size_t n, char *fsid, size_t m);
void lr_shutdown(void *cluster);
int lr_fence(void *cluster, char *address, uint32_t seconds);

int lr_ask(void *cluster, const char *pool, const char *ns);

int lr_open(void *cluster, const char *pool, const char *ns, const char *name, int read_only, void **pools, void **image);
int lr_close(void *pools, void *image);
int lr_stat(void *pools, void *image, lr_geometry *g);
int lr_setting(void *image, const char *option, char *value, size_t n);
int lr_resize(void *image, uint64_t size);
int lr_watch(void *image, int fd, uint64_t *handle);
int lr_unwatch(void *image, uint64_t handle);
int lr_mapped(void *image, uint64_t off, uint64_t n, int whole, uint64_t *length);
int lr_owner(void *image, char *owner, size_t n);
int lr_owned(void *image);
int lr_watchers(void *image, char *list, size_t n);
int lr_acquire(void *image);
int lr_break(void *image, const char *owner);
int lr_note(void *image, const char *key, char *value, size_t n);
int lr_annotate(void *image, const char *key, const char *value);

int lr_snap(void *image, const char *name);
int lr_unsnap(void *image, const char *name);
int lr_snapshots(void *image, char **lines);
int lr_clone(void *cluster, void *pools, const char *parent, const char *snap, const char *pool, const char *ns, const char *child);
int lr_remove(void *cluster, const char *pool, const char *ns, const char *name);
int lr_rename(void *cluster, const char *pool, const char *ns, const char *from, const char *to);
int lr_listed(void *cluster, const char *pool, const char *ns, const char *id, char *name, size_t n);
int lr_unname(void *cluster, const char *pool, const char *ns, const char *name, const char *id);

int lr_queue_new(lr_queue **queue);
void lr_queue_free(lr_queue *queue);
lr_io *lr_io_new(lr_queue *queue, uint32_t token);
void lr_io_free(lr_io *io);
int lr_start(lr_io *io, void *image, int kind, uint64_t off, size_t len, void *data);

#endif
