/* A step of the wall clock for one program (LD_PRELOAD): what it reads is later by the seconds in a file, whose
 * name is in FAIRQ_CLOCK. The clock of the machine belongs to others, and no namespace has one of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step(void)
{
	static volatile long *shared;

	if (!shared) {
		const char *name = getenv("FAIRQ_CLOCK");
		int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
		void *found = MAP_FAILED;

		if (fd >= 0) {
			found = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
			close(fd);
		}
		if (found == MAP_FAILED)
			return 0;
		shared = found;
	}
	return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int result;

	if (!real)
		real = dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += step();
	return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec exact;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &exact);
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *result)
{
	struct timespec exact;

	clock_gettime(CLOCK_REALTIME, &exact);
	if (result)
		*result = exact.tv_sec;
	return exact.tv_sec;
}
