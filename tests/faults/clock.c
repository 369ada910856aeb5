/* A step of the wall clock for one program (LD_PRELOAD): what it reads is later by the seconds in a file, whose
 * name is in FAIRQ_CLOCK. The clock of the machine belongs to others, and no namespace has one of its own.
 *
 * FAIRQ_CLOCK_PERCENT: the steady clock runs at so many percent of its speed, at most 100. Calls that wait return
 * too early by that clock, and programs wait once more; a clock that is too fast would need other waits. */
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

static void slow_down(struct timespec *now)
{
	static long long percent, start;
	long long ns = now->tv_sec * 1000000000LL + now->tv_nsec;

	if (!percent) {
		const char *text = getenv("FAIRQ_CLOCK_PERCENT");

		start = ns;
		percent = text ? atoi(text) : 100;
	}
	if (percent == 100)
		return;
	ns = start + (ns - start) / 100 * percent;
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
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
	if (!result && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
		slow_down(now);
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
