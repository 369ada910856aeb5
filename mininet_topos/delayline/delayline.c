// SPDX-License-Identifier: Apache-2.0
/* Delays frames by a constant time: frames that arrive at one interface leave through another, in order.
 *
 *   delayline MICROSECONDS
 *
 * It creates a network namespace, writes "ready", and reads pairs of interface names from its standard input, one
 * line "IN OUT" for each pair. The caller moves these interfaces into the namespace (by the pid) before it writes
 * the line, and gets the reply "ok". The program ends on SIGTERM, SIGINT or the end of its input; its namespace
 * and the interfaces in it end with it. At its end it prints the number of frames, the number of lost frames, and
 * the largest lateness.
 *
 * The delay counts from the time at which the kernel received the frame, so it does not matter when this program
 * gets a processor, if that is before the frame is due. All frames have the same delay, so one queue in the order
 * of arrival is enough.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	FRAME_BYTES = 2048, /* offloads are off: a frame has at most 1,518 bytes */
	SLOTS = 1
		<< 16, /* maximum number of queued frames; their memory is allocated on first use */
	BATCH = 64,
	PAIRS = 2048,
	SOCKET_BYTES = 8 << 20,
	NOTE_BYTES = 128, /* size of the ancillary data */
	CHILD_INPUT = -1, /* stands for the standard input among the events */
};

static const int64_t SECOND = 1000000000;
/* The minimum time between two turns of the loop is a fiftieth of the delay, but at most this, ns. */
static const int64_t MOST_GRAIN = 400000;

struct frame {
	int64_t due; /* ns, CLOCK_MONOTONIC */
	uint32_t length;
	int out; /* index of the interface */
	uint8_t bytes[FRAME_BYTES];
};

struct pair {
	int socket, out;
};

static struct frame *frames;
static uint32_t head, tail; /* of the queue; they increase without limit and wrap */
static struct pair pairs[PAIRS];
static int pair_count, epoll, sender;
static int64_t delay;
static uint64_t passed, lost;
static int64_t latest;
static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *form, ...)
{
	int number = errno;
	va_list values;

	fputs("delayline: ", stderr);
	va_start(values, form);
	vfprintf(stderr, form, values);
	va_end(values);
	fprintf(stderr, ": %s\n", strerror(number));
	exit(1);
}

static int64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

/* Otherwise the namespace's own IPv6 stack would send into the network at both ends of each line. */
static void write_quietly(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return; /* a kernel without IPv6 */
	if (write(file, text, strlen(text)) < 0)
		fail("%s", path);
	close(file);
}

/* A socket that receives nothing before it is bound; ``buffer`` is SO_RCVBUFFORCE or SO_SNDBUFFORCE. */
static int packet_socket(int buffer)
{
	int made = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int size = SOCKET_BYTES;

	if (made < 0)
		fail("packet socket");
	if (setsockopt(made, SOL_SOCKET, buffer, &size, sizeof(size)))
		fail("buffer of a packet socket");
	return made;
}

static unsigned int index_of(const char *name)
{
	unsigned int found = if_nametoindex(name);

	if (!found)
		fail("interface %s", name);
	return found;
}

static void add_pair(const char *in, const char *out)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = pair_count};
	struct pair *pair = &pairs[pair_count];
	int on = 1;

	if (pair_count == PAIRS) {
		errno = ENOSPC;
		fail("more than %d lines", PAIRS);
	}
	pair->socket = packet_socket(SO_RCVBUFFORCE);
	pair->out = (int)index_of(out);
	address.sll_ifindex = (int)index_of(in);
	if (setsockopt(pair->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(pair->socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    bind(pair->socket, (struct sockaddr *)&address, sizeof(address)) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, pair->socket, &event))
		fail("listening to %s", in);
	pair_count++;
}

/* Reads pairs from the standard input; false at its end. */
static int read_pairs(void)
{
	static char text[4096];
	static size_t length;
	char in[IFNAMSIZ], out[IFNAMSIZ], *line, *next;
	ssize_t got = read(STDIN_FILENO, text + length, sizeof(text) - 1 - length);

	if (got <= 0)
		return 0;
	length += (size_t)got;
	text[length] = 0;
	for (line = text; (next = strchr(line, '\n')); line = next + 1) {
		*next = 0;
		if (sscanf(line, "%15s %15s", in, out) != 2) {
			errno = EINVAL;
			fail("not a pair of interfaces: %s", line);
		}
		add_pair(in, out);
		if (write(STDOUT_FILENO, "ok\n", 3) != 3)
			fail("standard output");
	}
	length = strlen(line);
	memmove(text, line, length + 1);
	return length < sizeof(text) - 1;
}

/* The time at which the kernel received a frame, by CLOCK_MONOTONIC. */
static int64_t arrival(struct msghdr *message, int64_t here, int64_t wall)
{
	struct cmsghdr *note;
	struct timespec taken;
	int64_t age;

	for (note = CMSG_FIRSTHDR(message); note; note = CMSG_NXTHDR(message, note)) {
		if (note->cmsg_level != SOL_SOCKET || note->cmsg_type != SO_TIMESTAMPNS)
			continue;
		memcpy(&taken, CMSG_DATA(note), sizeof(taken));
		age = wall - (taken.tv_sec * SECOND + taken.tv_nsec);
		/* The wall clock may have been set meanwhile. */
		return age < 0 || age > SECOND ? here : here - age;
	}
	return here;
}

static void take(const struct pair *pair)
{
	static char notes[BATCH][NOTE_BYTES];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	int64_t here, wall, due;
	int count, i, room;

	do {
		room = (int)(SLOTS - (tail - head));
		if (room > BATCH)
			room = BATCH;
		if (!room)
			return; /* frames wait in the socket, which counts those that do not fit */
		for (i = 0; i < room; i++) {
			parts[i] = (struct iovec){frames[(tail + (uint32_t)i) % SLOTS].bytes,
						  FRAME_BYTES};
			messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
							      .msg_iovlen = 1,
							      .msg_control = notes[i],
							      .msg_controllen = NOTE_BYTES};
		}
		count = recvmmsg(pair->socket, messages, (unsigned int)room, MSG_DONTWAIT, NULL);
		here = now(CLOCK_MONOTONIC);
		wall = now(CLOCK_REALTIME);
		for (i = 0; i < count; i++) {
			struct frame *frame = &frames[tail % SLOTS];

			frame->length = messages[i].msg_len;
			frame->out = pair->out;
			due = arrival(&messages[i].msg_hdr, here, wall) + delay;
			/* Sockets are read one after the other, so this may be a little earlier than the one before. */
			if (tail != head && due < frames[(tail - 1) % SLOTS].due)
				due = frames[(tail - 1) % SLOTS].due;
			frame->due = due;
			tail++;
		}
	} while (count == room);
}

static void give(void)
{
	struct sockaddr_ll addresses[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	int count, sent, i;

	while (tail != head) {
		int64_t here = now(CLOCK_MONOTONIC);

		for (count = 0; count < BATCH && head + (uint32_t)count != tail; count++) {
			struct frame *frame = &frames[(head + (uint32_t)count) % SLOTS];

			if (frame->due > here)
				break;
			if (here - frame->due > latest)
				latest = here - frame->due;
			parts[count] = (struct iovec){frame->bytes, frame->length};
			addresses[count] = (struct sockaddr_ll){.sll_family = AF_PACKET,
								.sll_ifindex = frame->out,
								.sll_halen = ETH_ALEN};
			memcpy(addresses[count].sll_addr, frame->bytes, ETH_ALEN);
			messages[count].msg_hdr =
				(struct msghdr){.msg_name = &addresses[count],
						.msg_namelen = sizeof(addresses[count]),
						.msg_iov = &parts[count],
						.msg_iovlen = 1};
		}
		if (!count)
			return;
		for (i = 0; i < count; i += sent) {
			sent = sendmmsg(sender, messages + i, (unsigned int)(count - i), 0);
			if (sent < 0 && errno == EINTR) {
				sent = 0;
			} else if (sent < 0) {
				lost++; /* the interface is down, or gone */
				sent = 1;
			} else {
				passed += (uint64_t)sent;
			}
		}
		head += (uint32_t)count;
	}
}

/* Waits until the first frame is due, for a minimum time: frames that arrive meanwhile wait in their sockets, with
 * their arrival times. Without a queued frame, waits for an event.
 */
static void rest(int64_t grain)
{
	static int64_t before;
	struct timespec time;
	int64_t until;

	if (head == tail)
		return;
	until = frames[head % SLOTS].due;
	if (until < before + grain)
		until = before + grain;
	time = (struct timespec){until / SECOND, until % SECOND};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
	before = now(CLOCK_MONOTONIC);
}

static void start(const char *text)
{
	struct sched_param soon = {.sched_priority = 1};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = CHILD_INPUT};
	struct sigaction action = {.sa_handler = end};
	char *rest;
	double given = strtod(text, &rest);
	int on = 1;

	if (rest == text || *rest || !(given >= 1 && given <= 10e6)) {
		errno = EINVAL;
		fail("delay of %s microseconds", text);
	}
	delay = (int64_t)(given * 1000);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (unshare(CLONE_NEWNET))
		fail("network namespace");
	write_quietly("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	frames = mmap(NULL, sizeof(struct frame) * SLOTS, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (frames == MAP_FAILED)
		fail("memory for %d frames", SLOTS);
	sender = packet_socket(SO_SNDBUFFORCE);
	if (setsockopt(sender, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)))
		fail("bypass of queues");
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event))
		fail("standard input");
	/* A real link needs no processor, so this program gets priority. If that is not allowed, it is less exact. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &soon);
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		fail("standard output");
}

int main(int count, char **arguments)
{
	struct epoll_event events[BATCH];
	struct tpacket_stats statistics;
	socklen_t size = sizeof(statistics);
	int64_t grain;
	int found, i;

	if (count != 2) {
		fputs("usage: delayline MICROSECONDS\n", stderr);
		return 2;
	}
	start(arguments[1]);
	grain = delay / 50 < MOST_GRAIN ? delay / 50 : MOST_GRAIN;
	while (!ended) {
		rest(grain);
		found = epoll_wait(epoll, events, BATCH, head == tail ? -1 : 0);
		for (i = 0; i < found; i++) {
			if (events[i].data.fd != CHILD_INPUT)
				take(&pairs[events[i].data.fd]);
			else if (!read_pairs())
				ended = 1;
		}
		give();
	}
	for (i = 0; i < pair_count; i++)
		if (!getsockopt(pairs[i].socket, SOL_PACKET, PACKET_STATISTICS, &statistics, &size))
			lost += statistics.tp_drops;
	fprintf(stderr, "delayline: %llu frames, %llu lost, the latest %.3f ms late\n",
		(unsigned long long)passed, (unsigned long long)lost, (double)latest / 1e6);
	return 0;
}
