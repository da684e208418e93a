//go:build linux && cgo && rbd

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

// What is used of rados/librados.h and rbd/librbd.h, from Ceph 15 on; the layouts and
// signatures are part of the libraries' stable interfaces.
typedef void *rados_t, *rados_ioctx_t, *rbd_image_t, *rbd_completion_t;
typedef void (*callback)(rbd_completion_t completion, void *arg);
typedef struct {
	uint64_t size, obj_size, num_objs;
	int order;
	char block_name_prefix[24];
	int64_t parent_pool;
	char parent_name[96];
} rbd_image_info_t;
typedef struct { char *addr; int64_t id; uint64_t cookie; } rbd_image_watcher_t;
typedef struct { char *name, *value; int source; } rbd_config_option_t;
typedef struct { uint64_t id, size; const char *name; } rbd_snap_info_t;
typedef struct { char *id, *name; } rbd_image_spec_t;
typedef void *rbd_image_options_t;

enum { feature_exclusive_lock = 1 << 2, lock_exclusive = 0, option_clone_format = 12, snapshot_by_users = 0 };

#define RADOS(X) \
	X(int, rados_create2, (rados_t *cluster, const char *name, const char *user, uint64_t flags)) \
	X(int, rados_conf_read_file, (rados_t cluster, const char *path)) \
	X(int, rados_conf_set, (rados_t cluster, const char *option, const char *value)) \
	X(int, rados_connect, (rados_t cluster)) \
	X(void, rados_shutdown, (rados_t cluster)) \
	X(int, rados_getaddrs, (rados_t cluster, char **addresses)) \
	X(int, rados_cluster_fsid, (rados_t cluster, char *buf, size_t n)) \
	X(int, rados_ioctx_create, (rados_t cluster, const char *pool, rados_ioctx_t *io)) \
	X(void, rados_ioctx_destroy, (rados_ioctx_t io)) \
	X(void, rados_ioctx_set_namespace, (rados_ioctx_t io, const char *ns)) \
	X(int64_t, rados_ioctx_get_id, (rados_ioctx_t io)) \
	X(int, rados_read, (rados_ioctx_t io, const char *object, char *buf, size_t n, uint64_t off)) \
	X(int, rados_remove, (rados_ioctx_t io, const char *object)) \
	X(int, rados_stat, (rados_ioctx_t io, const char *object, uint64_t *size, time_t *at)) \
	X(int, rados_wait_for_latest_osdmap, (rados_t cluster))
#define RBD(X) \
	X(void, rbd_version, (int *major, int *minor, int *extra)) \
	X(int, rbd_open, (rados_ioctx_t io, const char *name, rbd_image_t *image, const char *snap)) \
	X(int, rbd_open_read_only, (rados_ioctx_t io, const char *name, rbd_image_t *image, const char *snap)) \
	X(int, rbd_close, (rbd_image_t image)) \
	X(int, rbd_stat, (rbd_image_t image, rbd_image_info_t *info, size_t n)) \
	X(int, rbd_get_id, (rbd_image_t image, char *id, size_t n)) \
	X(int, rbd_get_stripe_unit, (rbd_image_t image, uint64_t *unit)) \
	X(int, rbd_get_features, (rbd_image_t image, uint64_t *features)) \
	X(int, rbd_config_image_list, (rbd_image_t image, rbd_config_option_t *options, int *max)) \
	X(void, rbd_config_image_list_cleanup, (rbd_config_option_t *options, int n)) \
	X(int, rbd_resize2, (rbd_image_t image, uint64_t size, _Bool shrink, int (*progress)(uint64_t, uint64_t, void *), void *arg)) \
	X(int, rbd_update_watch, (rbd_image_t image, uint64_t *handle, void (*changed)(void *), void *arg)) \
	X(int, rbd_update_unwatch, (rbd_image_t image, uint64_t handle)) \
	X(int, rbd_diff_iterate2, (rbd_image_t image, const char *from, uint64_t off, uint64_t len, uint8_t parent, uint8_t whole, int (*found)(uint64_t, size_t, int, void *), void *arg)) \
	X(int, rbd_is_exclusive_lock_owner, (rbd_image_t image, int *owner)) \
	X(int, rbd_lock_get_owners, (rbd_image_t image, int *mode, char **owners, size_t *max)) \
	X(void, rbd_lock_get_owners_cleanup, (char **owners, size_t n)) \
	X(int, rbd_lock_acquire, (rbd_image_t image, int mode)) \
	X(int, rbd_lock_break, (rbd_image_t image, int mode, const char *owner)) \
	X(int, rbd_watchers_list, (rbd_image_t image, rbd_image_watcher_t *watchers, size_t *max)) \
	X(void, rbd_watchers_list_cleanup, (rbd_image_watcher_t *watchers, size_t n)) \
	X(int, rbd_metadata_get, (rbd_image_t image, const char *key, char *value, size_t *n)) \
	X(int, rbd_metadata_set, (rbd_image_t image, const char *key, const char *value)) \
	X(int, rbd_metadata_remove, (rbd_image_t image, const char *key)) \
	X(int, rbd_snap_create, (rbd_image_t image, const char *name)) \
	X(int, rbd_snap_remove, (rbd_image_t image, const char *name)) \
	X(int, rbd_snap_list, (rbd_image_t image, rbd_snap_info_t *snaps, int *max)) \
	X(void, rbd_snap_list_end, (rbd_snap_info_t *snaps)) \
	X(int, rbd_snap_get_namespace_type, (rbd_image_t image, uint64_t id, int *type)) \
	X(int, rbd_snap_get_timestamp, (rbd_image_t image, uint64_t id, struct timespec *at)) \
	X(void, rbd_image_options_create, (rbd_image_options_t *options)) \
	X(void, rbd_image_options_destroy, (rbd_image_options_t options)) \
	X(int, rbd_image_options_set_uint64, (rbd_image_options_t options, int option, uint64_t value)) \
	X(int, rbd_clone3, (rados_ioctx_t io, const char *parent, const char *snap, rados_ioctx_t to, const char *child, rbd_image_options_t options)) \
	X(int, rbd_remove, (rados_ioctx_t io, const char *name)) \
	X(int, rbd_rename, (rados_ioctx_t io, const char *from, const char *to)) \
	X(int, rbd_list2, (rados_ioctx_t io, rbd_image_spec_t *images, size_t *max)) \
	X(void, rbd_image_spec_list_cleanup, (rbd_image_spec_t *images, size_t n)) \
	X(int, rbd_aio_create_completion, (void *arg, callback done, rbd_completion_t *completion)) \
	X(void, rbd_aio_release, (rbd_completion_t completion)) \
	X(ssize_t, rbd_aio_get_return_value, (rbd_completion_t completion)) \
	X(int, rbd_aio_read, (rbd_image_t image, uint64_t off, size_t len, char *buf, rbd_completion_t completion)) \
	X(int, rbd_aio_write, (rbd_image_t image, uint64_t off, size_t len, const char *buf, rbd_completion_t completion)) \
	X(int, rbd_aio_write_zeroes, (rbd_image_t image, uint64_t off, size_t len, rbd_completion_t completion, int zero_flags, int op_flags))

#define MEMBER(type, name, args) type(*name) args;
static struct {
	RADOS(MEMBER)
	RBD(MEMBER)
	int (*blocklist_add)(rados_t cluster, char *address, uint32_t seconds); // has had two names
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

int lr_load(char *error, size_t n)
{
	void *rados, *rbd;

	error[0] = 0;
	rados = library("librados.so.2", error, n);
	if (!rados)
		return -ENOENT;
	rbd = library("librbd.so.1", error, n);
	if (!rbd)
		return -ENOENT;
#define FROM_RADOS(type, name, args) *(void **)&lib.name = symbol(rados, #name, error, n);
#define FROM_RBD(type, name, args) *(void **)&lib.name = symbol(rbd, #name, error, n);
	RADOS(FROM_RADOS)
	RBD(FROM_RBD)
	*(void **)&lib.blocklist_add = dlsym(rados, "rados_blocklist_add");
	if (!lib.blocklist_add)
		*(void **)&lib.blocklist_add = symbol(rados, "rados_blacklist_add", error, n);
	return error[0] ? -ENOSYS : 0;
}

void lr_version(int *major, int *minor, int *extra) { lib.rbd_version(major, minor, extra); }

static void copy(char *to, size_t n, const char *from) { snprintf(to, n, "%s", from ? from : ""); }

int lr_create(const char *user, void **cluster) { return lib.rados_create2(cluster, "ceph", user, 0); }

int lr_configure(void *cluster, const char *path) { return lib.rados_conf_read_file(cluster, path); }

int lr_set(void *cluster, const char *option, const char *value) { return lib.rados_conf_set(cluster, option, value); }

int lr_connect(void *cluster, char *address, size_t n, char *fsid, size_t m)
{
	char *addresses = NULL;
	int r = lib.rados_connect(cluster);

	if (r < 0)
		return r;
	r = lib.rados_getaddrs(cluster, &addresses);
	if (r < 0)
		return r;
	copy(address, n, addresses);
	free(addresses);
	r = lib.rados_cluster_fsid(cluster, fsid, m);
	return r < 0 ? r : 0;
}

void lr_shutdown(void *cluster) { lib.rados_shutdown(cluster); }

int lr_fence(void *cluster, char *address, uint32_t seconds)
{
	int r = lib.blocklist_add(cluster, address, seconds);

	return r < 0 ? r : lib.rados_wait_for_latest_osdmap(cluster);
}

int lr_ask(void *cluster, const char *pool, const char *ns)
{
	rados_ioctx_t io;
	uint64_t size;
	time_t at;
	int r = lib.rados_ioctx_create(cluster, pool, &io);

	if (r < 0)
		return r;
	lib.rados_ioctx_set_namespace(io, ns);
	r = lib.rados_stat(io, "rbd_directory", &size, &at);
	lib.rados_ioctx_destroy(io);
	return r == -ENOENT ? 0 : r;
}

int lr_open(void *cluster, const char *pool, const char *ns, const char *name, int read_only, void **pools, void **image)
{
	int r = lib.rados_ioctx_create(cluster, pool, pools);

	if (r < 0)
		return r;
	lib.rados_ioctx_set_namespace(*pools, ns);
	r = read_only ? lib.rbd_open_read_only(*pools, name, image, NULL) : lib.rbd_open(*pools, name, image, NULL);
	if (r < 0)
		lib.rados_ioctx_destroy(*pools);
	return r;
}

int lr_close(void *pools, void *image)
{
	int r = lib.rbd_close(image);

	lib.rados_ioctx_destroy(pools);
	return r;
}

int lr_stat(void *pools, void *image, lr_geometry *g)
{
	rbd_image_info_t info = { 0 };
	uint64_t features = 0;
	int r = lib.rbd_stat(image, &info, sizeof(info));

	memset(g, 0, sizeof(*g));
	if (r == 0)
		r = lib.rbd_get_id(image, g->id, sizeof(g->id));
	if (r == 0)
		r = lib.rbd_get_stripe_unit(image, &g->stripe);
	if (r == 0)
		r = lib.rbd_get_features(image, &features);
	g->pool = lib.rados_ioctx_get_id(pools);
	g->size = info.size;
	g->object = info.obj_size;
	g->lockable = !!(features & feature_exclusive_lock);
	return r;
}

// lr_setting returns 1 with the value of an option; 0: there is none of that name.
int lr_setting(void *image, const char *option, char *value, size_t n)
{
	int most = 0, i, r = lib.rbd_config_image_list(image, NULL, &most);
	rbd_config_option_t *all;

	if (r != -ERANGE)
		return r;
	all = calloc(most, sizeof(*all));
	if (!all)
		return -ENOMEM;
	r = lib.rbd_config_image_list(image, all, &most);
	if (r >= 0) {
		for (i = 0, r = 0; i < most; i++)
			if (!strcmp(all[i].name, option)) {
				copy(value, n, all[i].value);
				r = 1;
			}
		lib.rbd_config_image_list_cleanup(all, most);
	}
	free(all);
	return r;
}

static int silent(uint64_t done, uint64_t of, void *arg) { return 0; }

int lr_resize(void *image, uint64_t size) { return lib.rbd_resize2(image, size, 1, silent, NULL); }

// changed is called by a thread of librbd's.
static void changed(void *fd)
{
	uint64_t one = 1;
	if (write((int)(intptr_t)fd, &one, sizeof(one)) < 0) {
		// the counter is full: it is readable
	}
}

int lr_watch(void *image, int fd, uint64_t *handle) { return lib.rbd_update_watch(image, handle, changed, (void *)(intptr_t)fd); }

int lr_unwatch(void *image, uint64_t handle) { return lib.rbd_update_unwatch(image, handle); }

struct extent { uint64_t at, end; int mapped, begun; };

static int extent(uint64_t off, size_t len, int exists, void *arg)
{
	struct extent *e = arg;

	if (!exists || off + len <= e->at)
		return 0;
	if (!e->begun) {
		e->begun = 1;
		e->mapped = off <= e->at;
		e->end = e->mapped ? off + len : off;
	} else if (e->mapped && off <= e->end) {
		if (off + len > e->end)
			e->end = off + len;
	}
	return 0;
}

// lr_mapped returns whether there is data at off, and how far that is so.
int lr_mapped(void *image, uint64_t off, uint64_t n, int whole, uint64_t *length)
{
	struct extent e = { .at = off, .end = off + n };
	int r = lib.rbd_diff_iterate2(image, NULL, off, n, 1, whole, extent, &e);

	*length = (e.end < off + n ? e.end : off + n) - off;
	return r < 0 ? r : e.mapped;
}

int lr_owner(void *image, char *owner, size_t n)
{
	char *owners[8] = { 0 };
	size_t max = 8;
	int mode, r = lib.rbd_lock_get_owners(image, &mode, owners, &max);

	owner[0] = 0;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (max > 0)
		copy(owner, n, owners[0]);
	lib.rbd_lock_get_owners_cleanup(owners, max);
	return 0;
}

int lr_owned(void *image)
{
	int is = 0, r = lib.rbd_is_exclusive_lock_owner(image, &is);
	return r < 0 ? r : is;
}

// lr_watchers writes the addresses with a space behind each.
int lr_watchers(void *image, char *list, size_t n)
{
	rbd_image_watcher_t *all;
	size_t max = 64, i, at = 0;
	int r;

	list[0] = 0;
	all = calloc(max, sizeof(*all));
	if (!all)
		return -ENOMEM;
	r = lib.rbd_watchers_list(image, all, &max);
	if (r >= 0) {
		for (i = 0; i < max && at < n; i++)
			at += snprintf(list + at, n - at, "%s ", all[i].addr);
		lib.rbd_watchers_list_cleanup(all, max);
		r = 0;
	}
	free(all);
	return r;
}

int lr_acquire(void *image) { return lib.rbd_lock_acquire(image, lock_exclusive); }

int lr_break(void *image, const char *owner) { return lib.rbd_lock_break(image, lock_exclusive, owner); }

int lr_note(void *image, const char *key, char *value, size_t n)
{
	int r = lib.rbd_metadata_get(image, key, value, &n);

	if (r < 0)
		value[0] = 0;
	return r == -ENOENT ? 0 : r < 0 ? r : 0;
}

int lr_annotate(void *image, const char *key, const char *value)
{
	int r = value[0] ? lib.rbd_metadata_set(image, key, value) : lib.rbd_metadata_remove(image, key);
	return r == -ENOENT && !value[0] ? 0 : r;
}

int lr_snap(void *image, const char *name) { return lib.rbd_snap_create(image, name); }

int lr_unsnap(void *image, const char *name) { return lib.rbd_snap_remove(image, name); }

// lr_snapshots writes a line for each snapshot into memory that the caller frees: its bytes,
// the seconds and nanoseconds of its time, and its name.
int lr_snapshots(void *image, char **lines)
{
	rbd_snap_info_t *all = NULL;
	struct timespec at;
	int max = 16, n, i, type, r = 0;
	size_t length;
	FILE *to;

	do {
		free(all);
		all = calloc(max, sizeof(*all));
		if (!all)
			return -ENOMEM;
		n = lib.rbd_snap_list(image, all, &max);
	} while (n == -ERANGE);
	to = n < 0 ? NULL : open_memstream(lines, &length);
	for (i = 0; to && i < n && r >= 0; i++) {
		r = lib.rbd_snap_get_namespace_type(image, all[i].id, &type);
		if (r >= 0 && type != snapshot_by_users) // of a clone whose snapshot was removed
			continue;
		if (r >= 0)
			r = lib.rbd_snap_get_timestamp(image, all[i].id, &at);
		if (r == -ENOENT) { // it has been removed meanwhile
			r = 0;
			continue;
		}
		if (r >= 0)
			fprintf(to, "%llu %lld %ld %s\n", (unsigned long long)all[i].size, (long long)at.tv_sec, at.tv_nsec, all[i].name);
	}
	if (n > 0)
		lib.rbd_snap_list_end(all);
	free(all);
	if (n < 0)
		return n;
	if (!to)
		return -ENOMEM;
	if (fclose(to))
		r = -ENOMEM;
	if (r < 0)
		free(*lines);
	return r;
}

// lr_clone makes an image of a snapshot, of clone format 2: the snapshot needs no protection
// and may be removed.
int lr_clone(void *cluster, void *pools, const char *parent, const char *snap, const char *pool, const char *ns, const char *child)
{
	rbd_image_options_t options;
	rados_ioctx_t to;
	int r = lib.rados_ioctx_create(cluster, pool, &to);

	if (r < 0)
		return r;
	lib.rados_ioctx_set_namespace(to, ns);
	lib.rbd_image_options_create(&options);
	r = lib.rbd_image_options_set_uint64(options, option_clone_format, 2);
	if (r == 0)
		r = lib.rbd_clone3(pools, parent, snap, to, child, options);
	lib.rbd_image_options_destroy(options);
	lib.rados_ioctx_destroy(to);
	return r;
}

// pool_of makes the context of a pool and namespace.
static int pool_of(void *cluster, const char *pool, const char *ns, rados_ioctx_t *io)
{
	int r = lib.rados_ioctx_create(cluster, pool, io);

	if (r == 0)
		lib.rados_ioctx_set_namespace(*io, ns);
	return r;
}

int lr_remove(void *cluster, const char *pool, const char *ns, const char *name)
{
	rados_ioctx_t of;
	int r = pool_of(cluster, pool, ns, &of);

	if (r < 0)
		return r;
	r = lib.rbd_remove(of, name);
	lib.rados_ioctx_destroy(of);
	return r;
}

int lr_rename(void *cluster, const char *pool, const char *ns, const char *from, const char *to)
{
	rados_ioctx_t of;
	int r = pool_of(cluster, pool, ns, &of);

	if (r < 0)
		return r;
	r = lib.rbd_rename(of, from, to);
	lib.rados_ioctx_destroy(of);
	return r;
}

// lr_listed writes the name by which the image of an ID is listed; empty: it is not.
int lr_listed(void *cluster, const char *pool, const char *ns, const char *id, char *name, size_t n)
{
	rbd_image_spec_t *all = NULL;
	rados_ioctx_t of;
	size_t max = 256, i;
	int r = pool_of(cluster, pool, ns, &of);

	name[0] = 0;
	if (r < 0)
		return r;
	do {
		free(all);
		all = calloc(max, sizeof(*all));
		r = all ? lib.rbd_list2(of, all, &max) : -ENOMEM;
	} while (r == -ERANGE);
	if (r >= 0) {
		for (i = 0; i < max; i++)
			if (!strcmp(all[i].id, id))
				copy(name, n, all[i].name);
		lib.rbd_image_spec_list_cleanup(all, max);
		r = 0;
	}
	free(all);
	lib.rados_ioctx_destroy(of);
	return r;
}

// lr_unname removes the object by which librbd finds the ID of a name, if that is the ID: its
// length as 32 bits, the lowest first, and the text. librbd has no call for it.
int lr_unname(void *cluster, const char *pool, const char *ns, const char *name, const char *id)
{
	char object[512], found[128];
	size_t n = strlen(id);
	rados_ioctx_t of;
	int r;

	if (snprintf(object, sizeof(object), "rbd_id.%s", name) >= (int)sizeof(object))
		return -ENAMETOOLONG;
	r = pool_of(cluster, pool, ns, &of);
	if (r < 0)
		return r;
	r = lib.rados_read(of, object, found, sizeof(found), 0);
	if (r == (int)(4 + n) && (unsigned char)found[0] == n && !memcmp(found + 1, "\0\0", 3) && !memcmp(found + 4, id, n))
		r = lib.rados_remove(of, object);
	lib.rados_ioctx_destroy(of);
	return r == -ENOENT || r > 0 ? 0 : r;
}

// Queues are used again and never freed: see doc.go.
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static lr_queue *spare;

int lr_queue_new(lr_queue **queue)
{
	lr_queue *q;

	pthread_mutex_lock(&spare_lock);
	q = spare;
	if (q)
		spare = q->next;
	pthread_mutex_unlock(&spare_lock);
	if (!q) {
		q = aligned_alloc(64, sizeof(*q));
		if (!q)
			return -ENOMEM;
		memset(q, 0, sizeof(*q));
		q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (q->fd < 0) {
			int r = -errno;
			free(q);
			return r;
		}
	}
	*queue = q;
	return 0;
}

void lr_queue_free(lr_queue *q)
{
	__atomic_store_n(&q->asleep, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&spare_lock);
	q->next = spare;
	spare = q;
	pthread_mutex_unlock(&spare_lock);
}

lr_io *lr_io_new(lr_queue *q, uint32_t token)
{
	lr_io *io = calloc(1, sizeof(*io));
	if (io) {
		io->queue = q;
		io->token = token;
	}
	return io;
}

void lr_io_free(lr_io *io) { free(io); }

// ended is called by a thread of librbd's. When io is on the list it may be used again at
// once; the queue stays.
static void ended(rbd_completion_t completion, void *arg)
{
	lr_io *io = arg;
	lr_queue *q = io->queue;
	uint64_t one = 1;

	io->result = lib.rbd_aio_get_return_value(completion);
	lib.rbd_aio_release(completion);
	io->next = __atomic_load_n(&q->ended, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&q->ended, &io->next, io, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	if (__atomic_load_n(&q->asleep, __ATOMIC_SEQ_CST) && __atomic_exchange_n(&q->asleep, 0, __ATOMIC_SEQ_CST) &&
	    write(q->fd, &one, sizeof(one)) < 0) {
		// the counter is full: it is readable
	}
}

int lr_start(lr_io *io, void *image, int kind, uint64_t off, size_t len, void *data)
{
	rbd_completion_t c;
	int r = lib.rbd_aio_create_completion(io, ended, &c);

	if (r < 0)
		return r;
	switch (kind) {
	case lr_read:
		r = lib.rbd_aio_read(image, off, len, data, c);
		break;
	case lr_write:
		r = lib.rbd_aio_write(image, off, len, data, c);
		break;
	default: // flags 0: what is a whole object goes, the rest becomes zeroes
		r = lib.rbd_aio_write_zeroes(image, off, len, c, 0, 0);
	}
	if (r < 0)
		lib.rbd_aio_release(c);
	return r;
}
