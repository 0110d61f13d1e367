/* What a blocked thread has asked the kernel for: the call, whether the kernel ends it by its own clock, and the
 * descriptors that it waits for. Knows nothing of who is at their other ends (holders.c). */
#define _GNU_SOURCE
#include "waits.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_DESCRIPTORS 1024 /* of one list */

struct call read_call(const struct thread *thread) {
  char text[256];
  struct call call = {.number = -1};
  unsigned long *a = call.a, stack;
  if (!read_file(thread->call, text, sizeof text) ||
      sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &call.number, a, a + 1, a + 2, a + 3, a + 4, a + 5, &stack,
             &call.place) < 9)
    call.number = -1;
  return call;
}

int is_timed(const struct call *call) {
  const unsigned long *a = call->a;
  switch (call->number) {
#ifdef SYS_epoll_wait
  case SYS_epoll_wait:
#endif
  case SYS_epoll_pwait: return (int)a[3] > 0;
  case SYS_epoll_pwait2: return a[3] != 0;
#ifdef SYS_poll
  case SYS_poll: return (int)a[2] > 0;
#endif
#ifdef SYS_select
  case SYS_select:
#endif
  case SYS_pselect6:
  case SYS_io_getevents:
  case SYS_io_pgetevents:
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
  case SYS_recvmmsg: return a[4] != 0;
  case SYS_ppoll:
  case SYS_rt_sigtimedwait: return a[2] != 0;
  case SYS_semtimedop: return a[3] != 0;
  case SYS_nanosleep:
  case SYS_clock_nanosleep: return 1;
  case SYS_futex: {
    int command = a[1] & FUTEX_CMD_MASK;
    return a[3] && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI);
  }
  default: return 0;
  }
}

/* Calls that wait for the descriptor that is their first argument: READS and WRITES are ended by a limit of a socket. */
enum use use_of(long number) {
  switch (number) {
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_recvmmsg:
#ifdef SYS_accept
  case SYS_accept:
#endif
  case SYS_accept4: return READS;
  case SYS_write:
  case SYS_writev:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_sendmmsg:
  case SYS_connect: return WRITES;
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
  case SYS_splice: return WAITS_FOR;
  default: return NO_USE;
  }
}

/* Docker's profile forbids to copy a descriptor. */
int has_limit_of_socket(int pid, int descriptor, enum use use) {
  static int is_said;
  struct timeval limit = {0, 0};
  socklen_t size = sizeof limit;
  int file = copy_of(pid, descriptor);
  if (file < 0 && errno == EPERM && (use == WRITES || tracer_has(pid)) && !is_said++)
    say("this machine does not show the limits of sockets (pidfd_getfd): SO_SNDTIMEO ends by the machine's clock");
  if (file < 0) return 0;
  int is_known = !getsockopt(file, SOL_SOCKET, use == READS ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &size);
  close(file);
  return is_known && (limit.tv_sec || limit.tv_usec);
}

/* Descriptors of a list, of sets and of an epoll. */

static int any_in_list(int pid, unsigned long place, unsigned long count, leads *check) {
  static struct pollfd list[MOST_DESCRIPTORS];
  if (count > MOST_DESCRIPTORS) count = MOST_DESCRIPTORS;
  struct iovec here = {list, sizeof list}, there = {(void *)place, count * sizeof *list};
  if (!count || process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)there.iov_len) return 0;
  for (unsigned long i = 0; i < count; i++)
    if (list[i].fd >= 0 && check(pid, list[i].fd)) return 1;
  return 0;
}

static int any_in_sets(int pid, const unsigned long *sets, unsigned long count, leads *check) {
  unsigned char bits[3][MOST_DESCRIPTORS / 8] = {{0}};
  if (count > MOST_DESCRIPTORS) count = MOST_DESCRIPTORS;
  for (int i = 0; i < 3; i++) {
    struct iovec here = {bits[i], sizeof bits[i]}, there = {(void *)sets[i], (count + 63) / 64 * 8};
    if (sets[i] && count && process_vm_readv(pid, &here, 1, &there, 1, 0) < 0) return 0;
  }
  for (unsigned long at = 0; at < count; at++)
    if ((bits[0][at / 8] | bits[1][at / 8] | bits[2][at / 8]) >> at % 8 & 1 && check(pid, (int)at)) return 1;
  return 0;
}

int any_in_epoll(int pid, int epoll, leads *check) {
  char path[64], line[200];
  int found = 0, number;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, epoll);
  FILE *file = fopen(path, "re");
  while (file && !found && fgets(line, sizeof line, file))
    if (sscanf(line, "tfd: %d", &number) == 1) found = check(pid, number);
  if (file) fclose(file);
  return found;
}

int any_descriptor(const struct thread *thread, const struct call *call, leads *check) {
  int pid = thread->pid;
  if (use_of(call->number)) return check(pid, (int)call->a[0]);
  switch (call->number) {
#ifdef SYS_poll
  case SYS_poll:
#endif
  case SYS_ppoll: return any_in_list(pid, call->a[0], call->a[1], check);
#ifdef SYS_select
  case SYS_select:
#endif
  case SYS_pselect6: return any_in_sets(pid, call->a + 1, call->a[0], check);
#ifdef SYS_epoll_wait
  case SYS_epoll_wait:
#endif
  case SYS_epoll_pwait2:
  case SYS_epoll_pwait: return any_in_epoll(pid, (int)call->a[0], check);
  default: return 0;
  }
}
