/* Readings of the clock, and calls that wait in the kernel with a timeout. */
#include "shim.h"
#include "../shared/calls.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>

#define MILLISECOND 1000000LL
#define MICROSECOND 1000LL

/* Readings. */

EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
  /* /proc counts births by the machine's BOOTTIME: the kit's own processes compare them with this clock. */
  if (shim_page && clock == CLOCK_BOOTTIME_ALARM) clock = CLOCK_BOOTTIME;
  else if (shim_page && shim_is_real() && shim_is_dated(clock)) {
    *time = shim_timespec(shim_machine(clock));
    return 0;
  } else if (shim_page && shim_is_virtual(clock)) {
    shim_spin(SPIN_READ);
    *time = shim_timespec(shim_base(clock) + shim_now());
    return 0;
  }
  return (int)CALL(SYS_clock_gettime, clock, time);
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  *time = (struct timeval){now.tv_sec, now.tv_nsec / MICROSECOND};
  return 0;
}

EXPORT time_t time(time_t *seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds) *seconds = now.tv_sec;
  return now.tv_sec;
}

EXPORT int timespec_get(struct timespec *time, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, time) ? base : 0;
}

EXPORT int sysinfo(struct sysinfo *info) {
  int result = (int)CALL(SYS_sysinfo, info);
  if (shim_page && !result) info->uptime = (shim_page->monotonic + shim_now()) / SECOND;
  return result;
}

EXPORT clock_t times(struct tms *used) {
  clock_t ticks = (clock_t)CALL(SYS_times, used);
  if (!shim_page) return ticks;
  shim_spin(SPIN_READ);
  return (clock_t)((shim_page->monotonic + shim_now()) / (SECOND / sysconf(_SC_CLK_TCK)));
}

EXPORT int sched_yield(void) {
  if (shim_page) shim_spin(SPIN_YIELD);
  return (int)CALL(SYS_sched_yield);
}

/* Descriptors. A thread that was cancelled while it waited goes no further than here, as in libc. */

#define WAIT_FOR(result, deadline, signals, call) \
  struct wait wait;                               \
  long result;                                    \
  shim_begin(&wait, deadline, signals);           \
  do result = call;                               \
  while (shim_again(&wait, &result));             \
  shim_end(&wait);                                \
  if (result == -1 && errno == EINTR) pthread_testcancel()

/* What is ready at once needs no wait, and a wait wakes the coordinator: a shell waits for each byte of a line of 16 MiB.
 * So each of these calls looks first, with the caller's mask, but for WAKE_SIGNAL. */

static const sigset_t *without_wake(const sigset_t *mask, sigset_t *copy) {
  if (!mask) return NULL;
  *copy = *mask;
  sigaddset(copy, WAKE_SIGNAL);
  return copy;
}

static int is_ready(long result) {
  if (result) shim_rest();
  return result != 0;
}

static int wait_epoll(int epoll, struct epoll_event *events, int size, int64_t duration, const sigset_t *mask) {
  sigset_t copy;
  long ready = CALL(SYS_epoll_pwait, epoll, events, size, 0, without_wake(mask, &copy), 8);
  if (is_ready(ready)) return (int)ready;
  WAIT_FOR(result, shim_after(duration), mask, CALL(SYS_epoll_pwait, epoll, events, size, -1, &wait.mask, 8));
  return (int)result;
}

/* Give what a call found that has no deadline: a look, or a wait without a timeout. A look that finds something is
 * followed by work: only the others are a spin. */
static int found(long result, int is_look, unsigned weight) {
  if (!shim_page) return (int)result;
  if (!is_look) shim_forgive_looks();
  else if (result == 0) shim_spin_look(weight);
  return (int)result;
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int size, int timeout, const sigset_t *mask) {
  if (shim_page && timeout > 0) return wait_epoll(epoll, events, size, timeout * MILLISECOND, mask);
  long result = CALL(SYS_epoll_pwait, epoll, events, size, timeout, mask, 8);
  return found(result, timeout == 0, SPIN_LOOK);
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int size, int timeout) {
  return epoll_pwait(epoll, events, size, timeout, NULL);
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int size, const struct timespec *timeout,
                        const sigset_t *mask) {
  if (!timeout) return epoll_pwait(epoll, events, size, -1, mask);
  if (shim_page && shim_is_valid(timeout) && shim_ns(timeout))
    return wait_epoll(epoll, events, size, shim_ns(timeout), mask);
  return found(CALL(SYS_epoll_pwait2, epoll, events, size, timeout, mask, 8), 1, SPIN_LOOK);
}

EXPORT int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
  if (shim_page && timeout && shim_is_valid(timeout) && shim_ns(timeout)) {
    struct timespec none = {0};
    sigset_t other;
    long ready = CALL(SYS_ppoll, descriptors, count, &none, without_wake(mask, &other), 8);
    if (is_ready(ready)) return (int)ready;
    WAIT_FOR(result, shim_after(shim_ns(timeout)), mask, CALL(SYS_ppoll, descriptors, count, 0, &wait.mask, 8));
    return (int)result;
  }
  struct timespec copy = timeout ? *timeout : (struct timespec){0}; /* the kernel writes into its own */
  long result = CALL(SYS_ppoll, descriptors, count, timeout ? &copy : NULL, mask, 8);
  return found(result, timeout != NULL, SPIN_POLL);
}

EXPORT int poll(struct pollfd *descriptors, nfds_t count, int timeout) {
  struct timespec time = shim_timespec(timeout * MILLISECOND);
  return ppoll(descriptors, count, timeout < 0 ? NULL : &time, NULL);
}

/* What calls become in programs that are compiled with -D_FORTIFY_SOURCE. */
EXPORT int __poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t size) {
  (void)size;
  return poll(descriptors, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                       size_t size) {
  (void)size;
  return ppoll(descriptors, count, timeout, mask);
}

static int select_at_once(int count, fd_set *in, fd_set *out, fd_set *err, const struct timespec *timeout,
                          const sigset_t *mask) {
  struct { const sigset_t *set; size_t size; } signals = {mask, 8};
  struct timespec copy = timeout ? *timeout : (struct timespec){0};
  return (int)CALL(SYS_pselect6, count, in, out, err, timeout ? &copy : NULL, &signals);
}

/* A look without a wait empties the sets if nothing is ready: they are filled again for the wait. */
static int look_at_sets(int count, fd_set **sets, const sigset_t *mask) {
  struct timespec none = {0};
  sigset_t other;
  fd_set copies[3];
  if (count > FD_SETSIZE) return 0; /* of a program that has larger ones */
  for (int i = 0; i < 3; i++)
    if (sets[i]) copies[i] = *sets[i];
  int ready = select_at_once(count, sets[0], sets[1], sets[2], &none, without_wake(mask, &other));
  for (int i = 0; i < 3 && ready <= 0; i++)
    if (sets[i]) *sets[i] = copies[i];
  return ready;
}

/* The kernel leaves the sets alone when it is interrupted; at the instant they must be empty. */
EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *err, const struct timespec *timeout,
                   const sigset_t *mask) {
  fd_set *sets[] = {in, out, err};
  if (!shim_page || !timeout || !shim_is_valid(timeout) || !shim_ns(timeout)) {
    return found(select_at_once(count, in, out, err, timeout, mask), timeout != NULL, SPIN_POLL);
  }
  int ready = look_at_sets(count, sets, mask);
  if (is_ready(ready)) return ready;
  WAIT_FOR(result, shim_after(shim_ns(timeout)), mask, select_at_once(count, in, out, err, NULL, &wait.mask));
  for (int i = 0; wait.expired && i < 3; i++)
    for (int fd = 0; sets[i] && fd < count; fd++) FD_CLR(fd, sets[i]);
  return (int)result;
}

/* On Linux select leaves in its timeout what is left of it. */
EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout) {
  if (!timeout) return pselect(count, in, out, err, NULL, NULL);
  struct timespec time = shim_timespec(timeout->tv_sec * SECOND + timeout->tv_usec * MICROSECOND);
  int64_t deadline = shim_page ? shim_after(shim_ns(&time)) : 0;
  int result = pselect(count, in, out, err, &time, NULL);
  if (shim_page) {
    int64_t left = deadline > shim_now() ? deadline - shim_now() : 0;
    *timeout = (struct timeval){left / SECOND, left % SECOND / MICROSECOND};
  }
  return result;
}

/* Children. The pipes of a process end a moment of the machine before it does. A look in that moment found it alive, and
 * a supervisor that looks again later was late, now and then. */

#define LOOK_FOR_CHILD(result, is_over, call) \
  long result = call;                         \
  if (!(is_over) && shim_settle()) result = call

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *used) {
  if (!(options & WNOHANG)) return NEXT(wait4)(pid, status, options, used);
  LOOK_FOR_CHILD(result, result, CALL(SYS_wait4, pid, status, options, used));
  return (pid_t)result;
}

EXPORT pid_t wait3(int *status, int options, struct rusage *used) { return wait4(-1, status, options, used); }

EXPORT pid_t waitpid(pid_t pid, int *status, int options) { return wait4(pid, status, options, NULL); }

EXPORT int waitid(idtype_t kind, id_t id, siginfo_t *info, int options) {
  if (!(options & WNOHANG) || !info) return NEXT(waitid)(kind, id, info, options);
  LOOK_FOR_CHILD(result, result || info->si_pid, CALL(SYS_waitid, kind, id, info, options, NULL));
  return (int)result;
}

/* Sleep. */

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
  if (!shim_page || !shim_is_virtual(clock) || !shim_is_valid(time))
    return CALL(SYS_clock_nanosleep, clock, flags, time, rest) ? errno : 0;
  int is_absolute = flags & TIMER_ABSTIME;
  int64_t deadline = is_absolute ? shim_ns(time) - shim_base(clock) : shim_after(shim_ns(time));
  if (deadline <= shim_now()) {
    shim_spin(SPIN_EXPIRED);
    return 0;
  }
  WAIT_FOR(result, deadline, NULL, CALL(SYS_ppoll, 0, 0, 0, &wait.mask, 8));
  if (result == 0) return 0;
  if (rest && !is_absolute) *rest = shim_timespec(deadline > shim_now() ? deadline - shim_now() : 0);
  return errno;
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *rest) {
  int error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
  if (error) errno = error;
  return error ? -1 : 0;
}

EXPORT int usleep(useconds_t microseconds) {
  struct timespec time = shim_timespec(microseconds * MICROSECOND);
  return nanosleep(&time, NULL);
}

EXPORT unsigned sleep(unsigned seconds) {
  struct timespec time = {seconds, 0}, rest = {0, 0};
  return nanosleep(&time, &rest) ? (unsigned)rest.tv_sec : 0;
}

EXPORT int thrd_sleep(const struct timespec *time, struct timespec *rest) {
  int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

/* Signals: WAKE_SIGNAL is one of those that are waited for. */

EXPORT int sigtimedwait(const sigset_t *signals, siginfo_t *info, const struct timespec *timeout) {
  if (!shim_page || !timeout || !shim_is_valid(timeout) || !shim_ns(timeout))
    return (int)CALL(SYS_rt_sigtimedwait, signals, info, timeout, 8);
  sigset_t all = *signals;
  struct slot *slot = shim_mine();
  int result;
  sigaddset(&all, WAKE_SIGNAL);
  shim_arm(slot, WAITS, shim_after(shim_ns(timeout)));
  do result = (int)CALL(SYS_rt_sigtimedwait, &all, info, NULL, 8);
  while (result == WAKE_SIGNAL && !atomic_load(&slot->granted));
  shim_disarm(slot);
  if (result != WAKE_SIGNAL) return result;
  errno = EAGAIN;
  return -1;
}
