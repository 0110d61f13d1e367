/* Each call of Linux that reads a clock, waits with a limit or arms a timer, made in three ways: by libc's function, by
 * syscall() and by an instruction of the program's own. Prints `NAME WAY TOOK WANTED` in nanoseconds for each of them.
 *
 * With -DNO_OWN_CALLS it has no such instruction, so it is a program that the library alone serves. The first argument
 * says where the calls are made: in `main`, in another `thread`, in a child of `vfork`, or in the `handler` of a signal.
 * With names as its further arguments it makes those calls only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S 1000000000LL
#define LIMIT (S / 5)
#define ODD 7 /* nanoseconds: calls that round their limit are seen */
#define FUTEX_PRIVATE 128 /* as in the kernel's headers, which musl does not have */
#define FUTEX_REALTIME 256
enum { WAIT = 0, LOCK_PI = 6, WAIT_BITSET = 9 };
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef CLOCK_TAI
#define CLOCK_TAI 11
#endif

enum way { LIBC, SYSCALL, OWN };
static const char *const ways[] = {"libc", "syscall", "own"};
static enum way way;

#ifdef NO_OWN_CALLS
#define own(...) (-ENOSYS)
#define LAST_WAY SYSCALL
#else
#define LAST_WAY OWN
static inline __attribute__((always_inline)) long own(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#endif

/* Whether a call that was to wait for its whole limit did so: with this result, or with this error. */
static int ends(long result, int error) { return error ? result == -1 && errno == error : result == 0; }

static long numbered(long result) {
  if (result < 0 && result > -4096) errno = (int)-result, result = -1;
  return result;
}

/* NOTHING: libc has no function for it. */
#define NOTHING (errno = ENOSYS, -2L)
#define MAKE(function, number, a, b, c, d, e, f)                                              \
  (way == LIBC ? (long)(function)                                                             \
   : way == SYSCALL ? syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)) \
                    : numbered(own(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))))

static struct timespec span = {0, LIMIT + ODD};
static int ends_of_pipe[2];
static sigset_t one_signal, alarms;

static int64_t ns(struct timespec t) { return t.tv_sec * S + t.tv_nsec; }
static struct timespec at(int64_t instant) { return (struct timespec){instant / S, instant % S}; }
static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return ns(t);
}

static int nanosleep_(void) { return ends(MAKE(nanosleep(&span, NULL), SYS_nanosleep, &span, 0, 0, 0, 0, 0), 0); }

static int sleep_by(clockid_t clock, int flags) {
  struct timespec until = flags ? at(now(clock) + LIMIT + ODD) : span;
  return ends(MAKE(clock_nanosleep(clock, flags, &until, NULL), SYS_clock_nanosleep, clock, flags, &until, 0, 0, 0), 0);
}
static int sleep_monotonic(void) { return sleep_by(CLOCK_MONOTONIC, 0); }
static int sleep_monotonic_until(void) { return sleep_by(CLOCK_MONOTONIC, TIMER_ABSTIME); }
static int sleep_realtime(void) { return sleep_by(CLOCK_REALTIME, 0); }
static int sleep_realtime_until(void) { return sleep_by(CLOCK_REALTIME, TIMER_ABSTIME); }
static int sleep_boottime(void) { return sleep_by(CLOCK_BOOTTIME, 0); }
static int sleep_boottime_until(void) { return sleep_by(CLOCK_BOOTTIME, TIMER_ABSTIME); }
static int sleep_tai(void) { return sleep_by(CLOCK_TAI, 0); }
static int sleep_tai_until(void) { return sleep_by(CLOCK_TAI, TIMER_ABSTIME); }

static int poll_(void) {
  struct pollfd one = {ends_of_pipe[0], POLLIN, 0};
  return ends(MAKE(poll(&one, 1, LIMIT / 1000000), SYS_poll, &one, 1, LIMIT / 1000000, 0, 0, 0), 0);
}
static int ppoll_(void) {
  struct pollfd one = {ends_of_pipe[0], POLLIN, 0};
  struct timespec left = span;
  return ends(MAKE(ppoll(&one, 1, &left, NULL), SYS_ppoll, &one, 1, &left, 0, 8, 0), 0);
}
static int select_(void) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(ends_of_pipe[0], &in);
  struct timeval left = {0, LIMIT / 1000};
  int size = ends_of_pipe[0] + 1;
  return ends(MAKE(select(size, &in, NULL, NULL, &left), SYS_select, size, &in, 0, 0, &left, 0), 0) &&
         !FD_ISSET(ends_of_pipe[0], &in);
}
static int pselect_(void) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(ends_of_pipe[0], &in);
  struct timespec left = span;
  int size = ends_of_pipe[0] + 1;
  return ends(MAKE(pselect(size, &in, NULL, NULL, &left, NULL), SYS_pselect6, size, &in, 0, 0, &left, 0), 0) &&
         !FD_ISSET(ends_of_pipe[0], &in);
}
static int epoll_of_pipe(void) {
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends_of_pipe[0], &event);
  return epoll;
}
static int epoll_wait_(void) {
  struct epoll_event event;
  int epoll = epoll_of_pipe();
  int ok = ends(MAKE(epoll_wait(epoll, &event, 1, LIMIT / 1000000), SYS_epoll_wait, epoll, &event, 1, LIMIT / 1000000, 0, 0), 0);
  close(epoll);
  return ok;
}
static int epoll_pwait_(void) {
  struct epoll_event event;
  int epoll = epoll_of_pipe(), limit = LIMIT / 1000000;
  int ok = ends(MAKE(epoll_pwait(epoll, &event, 1, limit, NULL), SYS_epoll_pwait, epoll, &event, 1, limit, 0, 8), 0);
  close(epoll);
  return ok;
}
static int epoll_pwait2_(void) {
  struct epoll_event event;
  int epoll = epoll_of_pipe();
#ifdef __GLIBC__
  int ok = ends(MAKE(epoll_pwait2(epoll, &event, 1, &span, NULL), SYS_epoll_pwait2, epoll, &event, 1, &span, 0, 8), 0);
#else
  int ok = ends(MAKE(NOTHING, SYS_epoll_pwait2, epoll, &event, 1, &span, 0, 8), 0);
#endif
  close(epoll);
  return ok;
}

static uint32_t word;
static int futex_wait(void) {
  return ends(MAKE(NOTHING, SYS_futex, &word, WAIT | FUTEX_PRIVATE, 0, &span, 0, 0), ETIMEDOUT);
}
static int futex_until(clockid_t clock, int flag) {
  struct timespec until = at(now(clock) + LIMIT + ODD);
  return ends(MAKE(NOTHING, SYS_futex, &word, WAIT_BITSET | FUTEX_PRIVATE | flag, 0, &until, 0, 0xffffffffu), ETIMEDOUT);
}
static int futex_monotonic(void) { return futex_until(CLOCK_MONOTONIC, 0); }
static int futex_realtime(void) { return futex_until(CLOCK_REALTIME, FUTEX_REALTIME); }
static uint32_t locked;
static int futex_lock(void) { /* another thread holds it */
  struct timespec until = at(now(CLOCK_REALTIME) + LIMIT + ODD);
  return ends(MAKE(NOTHING, SYS_futex, &locked, LOCK_PI | FUTEX_PRIVATE, 0, &until, 0, 0), ETIMEDOUT);
}
static int futex_waitv_(void) {
  struct { uint64_t value, address; uint32_t flags, reserved; } list[1] = {{0, (uint64_t)(uintptr_t)&word, 2 | 128, 0}};
  struct timespec until = at(now(CLOCK_MONOTONIC) + LIMIT + ODD);
  return ends(MAKE(NOTHING, SYS_futex_waitv, list, 1, 0, &until, CLOCK_MONOTONIC, 0), ETIMEDOUT);
}
static int sigtimedwait_(void) {
  return ends(MAKE(sigtimedwait(&one_signal, NULL, &span), SYS_rt_sigtimedwait, &one_signal, 0, &span, 8, 0, 0), EAGAIN);
}
static int semtimedop_(void) {
  int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {0, -1, 0};
  int ok = ends(MAKE(semtimedop(set, &take, 1, &span), SYS_semtimedop, set, &take, 1, &span, 0, 0), EAGAIN);
  semctl(set, 0, IPC_RMID);
  return ok;
}
static int mq_timedreceive_(void) {
  char text[16], name[32];
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof text};
  snprintf(name, sizeof name, "/waits-%d", getpid());
  mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
  mq_unlink(name);
  struct timespec until = at(now(CLOCK_REALTIME) + LIMIT + ODD);
  int ok = ends(MAKE(mq_timedreceive(queue, text, sizeof text, NULL, &until), SYS_mq_timedreceive, queue, text, sizeof text, 0, &until, 0), ETIMEDOUT);
  if (way != LIBC) return mq_close(queue), ok;
  mq_send(queue, text, 1, 0); /* full now */
  until = at(now(CLOCK_REALTIME));
  ok &= ends(mq_timedsend(queue, text, 1, 0, &until), ETIMEDOUT);
  mq_close(queue);
  return ok;
}
static int io_getevents_(void) {
  unsigned long context = 0;
  char event[32];
  struct timespec left = span;
  syscall(SYS_io_setup, 1, &context);
  int ok = ends(MAKE(NOTHING, SYS_io_getevents, context, 1, 1, event, &left, 0), 0);
  syscall(SYS_io_destroy, context);
  return ok;
}
static int so_rcvtimeo(void) {
  int both[2];
  char c;
  struct timeval limit = {0, LIMIT / 1000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, both)) return 0;
  MAKE(setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), SYS_setsockopt, both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit, 0);
  int ok = ends(MAKE(read(both[0], &c, 1), SYS_read, both[0], &c, 1, 0, 0, 0), EAGAIN);
  close(both[0]);
  close(both[1]);
  return ok;
}

static int so_sndtimeo(void) {
  static char many[1 << 16];
  int both[2];
  struct timeval limit = {0, LIMIT / 1000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, both)) return 0;
  MAKE(setsockopt(both[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), SYS_setsockopt, both[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit, 0);
  while (send(both[0], many, sizeof many, MSG_DONTWAIT) > 0) {}
  int ok = ends(MAKE(write(both[0], many, sizeof many), SYS_write, both[0], many, sizeof many, 0, 0, 0), EAGAIN);
  close(both[0]);
  close(both[1]);
  return ok;
}

/* A child that asks to have no tracer. */
static int clone_untraced(void) {
  int status;
  if (way == LIBC) return errno = ENOSYS, 0;
  long child = MAKE(NOTHING, SYS_clone, 0x00800000 /* CLONE_UNTRACED */ | SIGCHLD, 0, 0, 0, 0, 0);
  if (!child) _exit(!ends(MAKE(NOTHING, SYS_nanosleep, &span, 0, 0, 0, 0, 0), 0));
  return waitpid((pid_t)child, &status, 0) == child && !status;
}

static int timerfd_by(clockid_t clock, int flags) {
  uint64_t times = 0;
  struct itimerspec when = {{0, 0}, flags ? at(now(clock) + LIMIT + ODD) : span};
  int timer = timerfd_create(clock, 0);
  MAKE(timerfd_settime(timer, flags, &when, NULL), SYS_timerfd_settime, timer, flags, &when, 0, 0, 0);
  int ok = read(timer, &times, sizeof times) == sizeof times && times == 1;
  close(timer);
  return ok;
}
static int timerfd_monotonic(void) { return timerfd_by(CLOCK_MONOTONIC, 0); }
static int timerfd_monotonic_at(void) { return timerfd_by(CLOCK_MONOTONIC, TFD_TIMER_ABSTIME); }
static int timerfd_realtime_at(void) { return timerfd_by(CLOCK_REALTIME, TFD_TIMER_ABSTIME); }
static int timerfd_boottime(void) { return timerfd_by(CLOCK_BOOTTIME, 0); }

static void ignore(int signal) { (void)signal; }
static int setitimer_(void) {
  struct itimerval when = {{0, 0}, {0, LIMIT / 1000}};
  MAKE(setitimer(ITIMER_REAL, &when, NULL), SYS_setitimer, ITIMER_REAL, &when, 0, 0, 0, 0);
  return pause() == -1 && errno == EINTR;
}
static int timer_create_(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  struct itimerspec when = {{0, 0}, span};
  timer_t by_libc;
  int by_number = 0;
  if (way == LIBC) timer_create(CLOCK_MONOTONIC, &event, &by_libc), timer_settime(by_libc, 0, &when, NULL);
  else {
    MAKE(NOTHING, SYS_timer_create, CLOCK_MONOTONIC, &event, &by_number, 0, 0, 0);
    MAKE(NOTHING, SYS_timer_settime, by_number, 0, &when, 0, 0, 0);
  }
  int ok = pause() == -1 && errno == EINTR;
  if (way == LIBC) timer_delete(by_libc);
  else MAKE(NOTHING, SYS_timer_delete, by_number, 0, 0, 0, 0, 0);
  return ok;
}

/* A clock is read by the way in question, and the time that passes is slept by libc. */
static int reads(clockid_t clock) {
  struct timespec before, later;
  MAKE(clock_gettime(clock, &before), SYS_clock_gettime, clock, &before, 0, 0, 0, 0);
  nanosleep(&span, NULL);
  MAKE(clock_gettime(clock, &later), SYS_clock_gettime, clock, &later, 0, 0, 0, 0);
  return ns(later) - ns(before) == LIMIT + ODD;
}
static int read_monotonic(void) { return reads(CLOCK_MONOTONIC); }
static int read_raw(void) { return reads(CLOCK_MONOTONIC_RAW); }
static int read_coarse(void) { return reads(CLOCK_MONOTONIC_COARSE); }
static int read_boottime(void) { return reads(CLOCK_BOOTTIME); }
static int read_realtime(void) { return reads(CLOCK_REALTIME); }
static int read_tai(void) { return reads(CLOCK_TAI); }
static int gettimeofday_(void) {
  struct timeval before, later;
  MAKE(gettimeofday(&before, NULL), SYS_gettimeofday, &before, 0, 0, 0, 0, 0);
  nanosleep(&span, NULL);
  MAKE(gettimeofday(&later, NULL), SYS_gettimeofday, &later, 0, 0, 0, 0, 0);
  int64_t took = (later.tv_sec - before.tv_sec) * 1000000LL + later.tv_usec - before.tv_usec;
  return took == LIMIT / 1000 || took == LIMIT / 1000 + 1; /* whole microseconds */
}
static int time_(void) {
  long seconds = MAKE(time(NULL), SYS_time, 0, 0, 0, 0, 0, 0);
  nanosleep(&span, NULL);
  return seconds == now(CLOCK_REALTIME) / S || seconds == (now(CLOCK_REALTIME) - LIMIT - ODD) / S;
}

static int sysinfo_(void) {
  struct sysinfo before, later;
  struct timespec second = {1, 0};
  MAKE(sysinfo(&before), SYS_sysinfo, &before, 0, 0, 0, 0, 0);
  nanosleep(&second, NULL);
  MAKE(sysinfo(&later), SYS_sysinfo, &later, 0, 0, 0, 0, 0);
  return later.uptime - before.uptime == 1;
}
static int times_(void) {
  struct tms used;
  long before = MAKE(times(&used), SYS_times, &used, 0, 0, 0, 0, 0);
  nanosleep(&span, NULL);
  long ticks = MAKE(times(&used), SYS_times, &used, 0, 0, 0, 0, 0) - before, wanted = LIMIT * sysconf(_SC_CLK_TCK) / S;
  return ticks == wanted || ticks == wanted + 1;
}
static int recvmmsg_(void) { /* the kernel looks at its limit after a datagram alone */
  int both[2];
  char c;
  struct timespec left = span;
  struct iovec bytes = {&c, 1};
  struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &bytes, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &bytes, .msg_iovlen = 1}}};
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, both) || write(both[1], "x", 1) != 1) return 0;
  if (!fork()) {
    nanosleep(&span, NULL);
    _exit(write(both[1], "x", 1) != 1);
  }
  int ok = MAKE(recvmmsg(both[0], messages, 2, 0, &left), SYS_recvmmsg, both[0], messages, 2, 0, &left, 0) == 2;
  wait(NULL);
  close(both[0]);
  close(both[1]);
  return ok;
}

/* By libc alone: what its own functions wait for. */
static int only_libc(int ok) { return way == LIBC ? ok : (errno = ENOSYS, 0); }
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int cond_timedwait(void) {
  if (way != LIBC) return only_libc(0);
  struct timespec until = at(now(CLOCK_REALTIME) + LIMIT + ODD);
  pthread_mutex_lock(&mutex);
  int result = pthread_cond_timedwait(&condition, &mutex, &until);
  pthread_mutex_unlock(&mutex);
  return result == ETIMEDOUT;
}
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int mutex_timedlock(void) {
  if (way != LIBC) return only_libc(0);
  struct timespec until = at(now(CLOCK_REALTIME) + LIMIT + ODD);
  return pthread_mutex_timedlock(&held, &until) == ETIMEDOUT;
}
static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static int rwlock_timedrdlock(void) {
  if (way != LIBC) return only_libc(0);
  struct timespec until = at(now(CLOCK_REALTIME) + LIMIT + ODD);
  return pthread_rwlock_timedrdlock(&shared_lock, &until) == ETIMEDOUT;
}

static const struct { const char *name; int (*make)(void); int64_t takes; } calls[] = {
    {"clock_gettime_monotonic", read_monotonic, LIMIT + ODD},
    {"clock_gettime_monotonic_raw", read_raw, LIMIT + ODD},
    {"clock_gettime_monotonic_coarse", read_coarse, LIMIT + ODD},
    {"clock_gettime_boottime", read_boottime, LIMIT + ODD},
    {"clock_gettime_realtime", read_realtime, LIMIT + ODD},
    {"clock_gettime_tai", read_tai, LIMIT + ODD},
    {"gettimeofday", gettimeofday_, LIMIT + ODD},
    {"time", time_, LIMIT + ODD},
    {"times", times_, LIMIT + ODD},
    {"sysinfo", sysinfo_, S},
    {"nanosleep", nanosleep_, LIMIT + ODD},
    {"clock_nanosleep_monotonic", sleep_monotonic, LIMIT + ODD},
    {"clock_nanosleep_monotonic_absolute", sleep_monotonic_until, LIMIT + ODD},
    {"clock_nanosleep_realtime", sleep_realtime, LIMIT + ODD},
    {"clock_nanosleep_realtime_absolute", sleep_realtime_until, LIMIT + ODD},
    {"clock_nanosleep_boottime", sleep_boottime, LIMIT + ODD},
    {"clock_nanosleep_boottime_absolute", sleep_boottime_until, LIMIT + ODD},
    {"clock_nanosleep_tai", sleep_tai, LIMIT + ODD},
    {"clock_nanosleep_tai_absolute", sleep_tai_until, LIMIT + ODD},
    {"poll", poll_, LIMIT},
    {"ppoll", ppoll_, LIMIT + ODD},
    {"select", select_, LIMIT},
    {"pselect6", pselect_, LIMIT + ODD},
    {"epoll_wait", epoll_wait_, LIMIT},
    {"epoll_pwait", epoll_pwait_, LIMIT},
    {"epoll_pwait2", epoll_pwait2_, LIMIT + ODD},
    {"futex_wait", futex_wait, LIMIT + ODD},
    {"futex_wait_bitset_monotonic", futex_monotonic, LIMIT + ODD},
    {"futex_wait_bitset_realtime", futex_realtime, LIMIT + ODD},
    {"futex_lock_pi", futex_lock, LIMIT + ODD},
    {"futex_waitv", futex_waitv_, LIMIT + ODD},
    {"rt_sigtimedwait", sigtimedwait_, LIMIT + ODD},
    {"semtimedop", semtimedop_, LIMIT + ODD},
    {"mq_timedreceive", mq_timedreceive_, LIMIT + ODD},
    {"io_getevents", io_getevents_, LIMIT + ODD},
    {"read_so_rcvtimeo", so_rcvtimeo, LIMIT},
    {"write_so_sndtimeo", so_sndtimeo, LIMIT},
    {"recvmmsg", recvmmsg_, LIMIT + ODD},
    {"timerfd_settime_monotonic", timerfd_monotonic, LIMIT + ODD},
    {"timerfd_settime_monotonic_absolute", timerfd_monotonic_at, LIMIT + ODD},
    {"timerfd_settime_realtime_absolute", timerfd_realtime_at, LIMIT + ODD},
    {"timerfd_settime_boottime", timerfd_boottime, LIMIT + ODD},
    {"setitimer", setitimer_, LIMIT},
    {"timer_create", timer_create_, LIMIT + ODD},
    {"pthread_cond_timedwait", cond_timedwait, LIMIT + ODD},
    {"pthread_mutex_timedlock", mutex_timedlock, LIMIT + ODD},
    {"pthread_rwlock_timedrdlock", rwlock_timedrdlock, LIMIT + ODD},
    {"clone_untraced", clone_untraced, LIMIT + ODD},
};

static int holds;
static void *hold(void *nothing) {
  locked = (uint32_t)syscall(SYS_gettid);
  pthread_mutex_lock(&held);
  pthread_rwlock_wrlock(&shared_lock);
  __atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
  return nothing;
}

static int is_asked_for(const char *name, int count, char **words) {
  for (int i = 2; i < count; i++)
    if (!strcmp(words[i], name)) return 1;
  return count == 2;
}

/* The places. A child of vfork shares the memory. */
static volatile size_t made;
static volatile int ok, error;
static void make(void) {
  errno = 0;
  ok = calls[made].make();
  error = errno;
}
static void *make_in_thread(void *nothing) {
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  make();
  return nothing;
}
static void make_in_handler(int signal) { (void)signal, make(); }

static void make_in(const char *place) {
  pthread_t thread;
  if (!strcmp(place, "thread")) {
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* they are for that thread */
    pthread_create(&thread, NULL, make_in_thread, NULL);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  } else if (!strcmp(place, "vfork")) {
    pid_t child = vfork();
    if (!child) make(), _exit(0);
    waitpid(child, NULL, 0);
  } else if (!strcmp(place, "handler")) {
    raise(SIGUSR2);
  } else {
    make();
  }
}

int main(int count, char **words) {
  pthread_t holder;
  if (count < 2 || pipe(ends_of_pipe)) return 2;
  signal(SIGALRM, ignore);
  sigemptyset(&one_signal);
  sigaddset(&one_signal, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one_signal, NULL);
  signal(SIGUSR2, make_in_handler);
  sigset_t before;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, &before); /* they are for this thread */
  pthread_create(&holder, NULL, hold, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  while (!__atomic_load_n(&holds, __ATOMIC_SEQ_CST)) sched_yield();
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (!is_asked_for(calls[i].name, count, words)) continue;
    for (way = LIBC; way <= LAST_WAY; way++) {
      int64_t begin = now(CLOCK_MONOTONIC);
      made = i;
      make_in(words[1]);
      int64_t took = now(CLOCK_MONOTONIC) - begin;
      if (!ok && error == ENOSYS) continue;
      if (ok) printf("%s %s %lld %lld\n", calls[i].name, ways[way], (long long)took, (long long)calls[i].takes);
      else printf("%s %s failed: %s\n", calls[i].name, ways[way], strerror(error));
    }
  }
  return 0;
}
