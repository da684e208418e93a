// Loaded before the C library (LD_PRELOAD) into libiscsi's suite over iSER, for two
// faults of its version 1.19 (docs/iser.md).
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>

// It goes on reading and writing what it has given back: nothing is given back. A
// process runs one test, and takes little more than it would otherwise.
void free(void *block) { (void)block; }

// It takes a second without an answer for a failure, which an emulated machine easily
// brings about: it gets ten.
int poll(struct pollfd *of, nfds_t count, int milliseconds)
{
	struct timespec time = {.tv_sec = 10};

	if (milliseconds < 0)
		return ppoll(of, count, NULL, NULL);
	if (milliseconds != 1000)
		time = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L};
	return ppoll(of, count, &time, NULL);
}
