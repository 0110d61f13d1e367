/* System calls by number, and waits that few programs make: each becomes the shim's own function, or waits without its
 * limit. Rust, C++ and V8 call futex so. */
#include "shim.h"
#include "../shared/calls.h"
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* A call whose argument number `limit` points to its limit, which is over at `deadline`; `late` is the error then. */
static long wait_without(long number, const long *a, int limit, int64_t deadline, int late) {
  struct timespec none = {0, 0};
  long b[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
  if (deadline <= shim_now()) {
    shim_spin(SPIN_EXPIRED);
    b[limit] = (long)&none; /* of durations and instants alike */
    return shim_call(number, b[0], b[1], b[2], b[3], b[4], b[5]);
  }
  struct wait wait;
  long result;
  b[limit] = 0;
  if (number == SYS_futex) b[1] &= ~FUTEX_CLOCK_REALTIME; /* older kernels take it with a limit alone */
  shim_begin_open(&wait, deadline);
  do result = shim_is_granted_already(&wait) ? -1 : shim_call(number, b[0], b[1], b[2], b[3], b[4], b[5]);
  while (shim_again(&wait, &result));
  shim_end_open(&wait, &result, late);
  return result;
}

static long refuse(int error) {
  errno = error;
  return -1;
}

/* A limit that is a duration, or an instant of a clock. */
static long wait_for(long number, const long *a, int limit, int late) {
  const struct timespec *time = (void *)a[limit];
  if (!time) return shim_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (!shim_is_valid(time)) return refuse(EINVAL);
  return wait_without(number, a, limit, shim_after(shim_ns(time)), late);
}

static long wait_until(long number, const long *a, int limit, clockid_t clock) {
  const struct timespec *time = (void *)a[limit];
  if (!time) return shim_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (!shim_is_valid(time)) return refuse(EINVAL);
  return wait_without(number, a, limit, shim_ns(time) - shim_base(clock), ETIMEDOUT);
}

/* No signal ends the kernel's wait for a lock with priorities: it ends by the machine's clock. libc makes the call, so
 * that the coordinator sees a wait which is none of the shim's, and names the program. */
static long lock_by_machine(const long *a, clockid_t clock) {
  const struct timespec *until = (void *)a[3];
  if (!until || !shim_is_valid(until)) return shim_call(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
  struct timespec machine = shim_by_machine(clock, until);
  return NEXT(syscall)(SYS_futex, a[0], a[1], a[2], &machine, a[4], a[5]);
}

long shim_call_futex(const long *a) {
  clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  switch ((int)a[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT: return wait_for(SYS_futex, a, 3, ETIMEDOUT);
  case FUTEX_WAIT_BITSET:
  case FUTEX_WAIT_REQUEUE_PI: return wait_until(SYS_futex, a, 3, clock);
  case FUTEX_LOCK_PI: return lock_by_machine(a, CLOCK_REALTIME);
  case FUTEX_LOCK_PI2: return lock_by_machine(a, clock);
  default: return shim_call(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

EXPORT int semtimedop(int set, struct sembuf *operations, size_t count, const struct timespec *timeout) {
  long a[6] = {set, (long)operations, (long)count, (long)timeout};
  return (int)(shim_page ? wait_for(SYS_semtimedop, a, 3, EAGAIN) : CALL(SYS_semtimedop, set, operations, count, timeout));
}

EXPORT int mq_timedsend(mqd_t queue, const char *text, size_t size, unsigned priority, const struct timespec *until) {
  long a[6] = {queue, (long)text, (long)size, priority, (long)until};
  return (int)(shim_page ? wait_until(SYS_mq_timedsend, a, 4, CLOCK_REALTIME)
                         : CALL(SYS_mq_timedsend, queue, text, size, priority, until));
}

EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict text, size_t size, unsigned *restrict priority,
                               const struct timespec *restrict until) {
  long a[6] = {queue, (long)text, (long)size, (long)priority, (long)until};
  return shim_page ? wait_until(SYS_mq_timedreceive, a, 4, CLOCK_REALTIME)
                   : CALL(SYS_mq_timedreceive, queue, text, size, priority, until);
}

/* The kernel's number of a timer is an int, and libc's a pointer; the shim's fits into both. */
static long call_timer_create(const long *a) {
  timer_t timer = NULL;
  int result = timer_create((clockid_t)a[0], (void *)a[1], &timer);
  if (!result) *(int *)a[2] = (int)(intptr_t)timer;
  return result;
}

static long with_error(int error) { return error ? refuse(error) : 0; }

/* Waits, and looks that may become one. */
static long call_wait(long number, const long *a, long *result) {
  const struct { const sigset_t *set; size_t size; } *signals = (void *)a[5];
  switch (number) {
  case SYS_futex: return *result = shim_call_futex(a), 1;
  case SYS_futex_waitv: return *result = wait_until(number, a, 3, (clockid_t)a[4]), 1;
  case SYS_nanosleep: return *result = nanosleep((void *)a[0], (void *)a[1]), 1;
  case SYS_clock_nanosleep:
    return *result = with_error(clock_nanosleep((clockid_t)a[0], (int)a[1], (void *)a[2], (void *)a[3])), 1;
#ifdef SYS_poll
  case SYS_poll: return *result = poll((void *)a[0], (nfds_t)a[1], (int)a[2]), 1;
  case SYS_select: return *result = select((int)a[0], (void *)a[1], (void *)a[2], (void *)a[3], (void *)a[4]), 1;
  case SYS_epoll_wait: return *result = epoll_wait((int)a[0], (void *)a[1], (int)a[2], (int)a[3]), 1;
#endif
  case SYS_ppoll: return *result = ppoll((void *)a[0], (nfds_t)a[1], (void *)a[2], (void *)a[3]), 1;
  case SYS_pselect6:
    *result = pselect((int)a[0], (void *)a[1], (void *)a[2], (void *)a[3], (void *)a[4], signals ? signals->set : NULL);
    return 1;
  case SYS_epoll_pwait:
    return *result = epoll_pwait((int)a[0], (void *)a[1], (int)a[2], (int)a[3], (void *)a[4]), 1;
  case SYS_epoll_pwait2:
    return *result = epoll_pwait2((int)a[0], (void *)a[1], (int)a[2], (void *)a[3], (void *)a[4]), 1;
  case SYS_rt_sigtimedwait: return *result = sigtimedwait((void *)a[0], (void *)a[1], (void *)a[2]), 1;
  case SYS_semtimedop: return *result = semtimedop((int)a[0], (void *)a[1], (size_t)a[2], (void *)a[3]), 1;
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive: return *result = wait_until(number, a, 4, CLOCK_REALTIME), 1;
  case SYS_io_getevents: return *result = wait_for(number, a, 4, 0), 1;
  case SYS_kill: return *result = kill((pid_t)a[0], (int)a[1]), 1;
  case SYS_wait4: return *result = wait4((pid_t)a[0], (void *)a[1], (int)a[2], (void *)a[3]), 1;
  default: return 0;
  }
}

static int is_of_timer(long number) {
  return number == SYS_timer_settime || number == SYS_timer_gettime || number == SYS_timer_getoverrun ||
         number == SYS_timer_delete;
}

/* Clocks and timers. The kernel's own timers, of clocks that count work, have small numbers. */
static long call_clock(long number, const long *a, long *result) {
  if (number == SYS_timer_create && !shim_is_virtual((clockid_t)a[0])) return 0;
  if (is_of_timer(number) && (int)a[0] < FIRST_TIMER) return 0;
  switch (number) {
  case SYS_clock_gettime: return *result = clock_gettime((clockid_t)a[0], (void *)a[1]), 1;
  case SYS_gettimeofday: return *result = gettimeofday((void *)a[0], (void *)a[1]), 1;
#ifdef SYS_time
  case SYS_time: return *result = time((void *)a[0]), 1;
  case SYS_alarm: return *result = alarm((unsigned)a[0]), 1;
#endif
  case SYS_times: return *result = times((void *)a[0]), 1;
  case SYS_sysinfo: return *result = sysinfo((void *)a[0]), 1;
  case SYS_getitimer: return *result = getitimer((__itimer_which_t)a[0], (void *)a[1]), 1;
  case SYS_setitimer: return *result = setitimer((__itimer_which_t)a[0], (void *)a[1], (void *)a[2]), 1;
  case SYS_timerfd_settime: return *result = timerfd_settime((int)a[0], (int)a[1], (void *)a[2], (void *)a[3]), 1;
  case SYS_timerfd_gettime: return *result = timerfd_gettime((int)a[0], (void *)a[1]), 1;
  case SYS_timer_create: return *result = call_timer_create(a), 1;
  case SYS_timer_settime: return *result = timer_settime((timer_t)(intptr_t)(int)a[0], (int)a[1], (void *)a[2], (void *)a[3]), 1;
  case SYS_timer_gettime: return *result = timer_gettime((timer_t)(intptr_t)(int)a[0], (void *)a[1]), 1;
  case SYS_timer_getoverrun: return *result = timer_getoverrun((timer_t)(intptr_t)(int)a[0]), 1;
  case SYS_timer_delete: return *result = timer_delete((timer_t)(intptr_t)(int)a[0]), 1;
  default: return 0;
  }
}

/* Descriptors: what is about time in what becomes of them, and where sockets lead. */
static long call_file(long number, const long *a, long *result) {
  switch (number) {
  case SYS_close: return *result = close((int)a[0]), 1;
  case SYS_socket: return *result = socket((int)a[0], (int)a[1], (int)a[2]), 1;
  case SYS_connect: return *result = connect((int)a[0], (void *)a[1], (socklen_t)a[2]), 1;
  case SYS_sendto:
    return *result = sendto((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3], (void *)a[4], (socklen_t)a[5]), 1;
  case SYS_sendmsg: return *result = sendmsg((int)a[0], (void *)a[1], (int)a[2]), 1;
  case SYS_sendmmsg: return *result = sendmmsg((int)a[0], (void *)a[1], (unsigned)a[2], (int)a[3]), 1;
  case SYS_accept: return *result = accept((int)a[0], (void *)a[1], (void *)a[2]), 1;
  case SYS_accept4: return *result = accept4((int)a[0], (void *)a[1], (void *)a[2], (int)a[3]), 1;
  case SYS_setsockopt:
    return *result = setsockopt((int)a[0], (int)a[1], (int)a[2], (void *)a[3], (socklen_t)a[4]), 1;
  case SYS_read: return *result = read((int)a[0], (void *)a[1], (size_t)a[2]), 1;
  case SYS_readv: return *result = readv((int)a[0], (void *)a[1], (int)a[2]), 1;
  case SYS_recvfrom:
    return *result = recvfrom((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3], (void *)a[4], (void *)a[5]), 1;
  case SYS_recvmsg: return *result = recvmsg((int)a[0], (void *)a[1], (int)a[2]), 1;
  case SYS_recvmmsg: /* by libc's call: the coordinator takes the shim's own for one that follows the page */
    if (!a[4]) return 0;
    return *result = NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4]), 1;
  case SYS_io_uring_setup: return *result = refuse(ENOSYS), 1; /* it keeps time in the kernel */
  default: return 0;
  }
}

static int is_signal(long number) {
  return number == SYS_tkill || number == SYS_tgkill || number == SYS_rt_sigqueueinfo ||
         number == SYS_rt_tgsigqueueinfo || number == SYS_pidfd_send_signal;
}

EXPORT long syscall(long number, ...) {
  va_list list;
  long a[6], result;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (shim_page && (call_wait(number, a, &result) || call_clock(number, a, &result) || call_file(number, a, &result)))
    return result;
  result = shim_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (shim_page && is_signal(number)) shim_count_waking();
  return result;
}
