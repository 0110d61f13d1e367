/* The shim, which LD_PRELOAD puts into every program: libc's clocks and timed waits follow the coordinator's page.
 * Owns the page, the slots of this process and the way of one wait. x86-64 and aarch64, glibc.
 *
 * A call with a timeout writes its virtual deadline into a slot and waits without one. Nobody below the coordinator
 * waits by the kernel's clock, so the coordinator may let time move when all threads are blocked. */
#include "shim.h"
#include "../shared/image.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A deadline beyond this is none: programs write "for ever" as a large number. */
#define FOR_EVER (30LL * 365 * 86400 * SECOND)

/* So often at one instant a thread waits for all others: one that looks without end would take for ever. */
#define MOST_LOOKS 100

/* A deadline at the beginning of time, where NEVER is, or before it. */
#define PAST (-1)

/* Readings of the clock without a wait until time moves, and from then on until it moves again. */
#define FIRST_SPIN 4000000u
#define NEXT_SPIN 4000u

/* The kit takes a program that looks more often than four times a second for one that polls, and lets it be late. */
#define LONGEST_STEP (SECOND / 5)

struct page *shim_page;
char shim_preload[PATH_MAX + 16], shim_variable[64];

static __thread struct slot *mine;
static __thread volatile sig_atomic_t woken;
static __thread unsigned readings, looks, steps;
static __thread int is_stepping;
static int (*next_clock_gettime)(clockid_t, struct timespec *);
static _Atomic uint32_t serial;

#if defined(__x86_64__)
long shim_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
long shim_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long result __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(result) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
#else
#error "the preload clock knows x86-64 and aarch64"
#endif
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

/* Time. */

int64_t shim_machine(clockid_t clock) {
  struct timespec time;
  if (next_clock_gettime) next_clock_gettime(clock, &time);
  else CALL(SYS_clock_gettime, clock, &time);
  return shim_ns(&time);
}

int shim_is_real(void) { return atomic_load(&shim_page->offset) != VIRTUAL; }

int64_t shim_now(void) {
  int64_t offset = atomic_load(&shim_page->offset);
  return offset == VIRTUAL ? atomic_load(&shim_page->now) : shim_machine(CLOCK_MONOTONIC) + offset;
}

int64_t shim_after(int64_t duration) { return duration > FOR_EVER ? FOR_EVER + 1 : shim_now() + duration; }

int shim_is_dated(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int shim_is_virtual(clockid_t clock) {
  return shim_is_dated(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
         clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

int64_t shim_base(clockid_t clock) {
  if (!shim_is_dated(clock)) return shim_page->monotonic;
  return shim_is_real() ? shim_machine(CLOCK_REALTIME) - shim_now() : atomic_load(&shim_page->date);
}

/* Conditions and timerfds do not say which clock an instant is on; dates are larger by four orders of magnitude. */
int64_t shim_guessed_base(int64_t instant) {
  return shim_base(instant > atomic_load(&shim_page->date) / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}

int shim_is_valid(const struct timespec *time) {
  return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < SECOND;
}

int64_t shim_ns(const struct timespec *time) {
  if (time->tv_sec > INT64_MAX / SECOND / 2) return INT64_MAX / 2;
  return time->tv_sec * SECOND + time->tv_nsec;
}

struct timespec shim_timespec(int64_t ns) { return (struct timespec){ns / SECOND, ns % SECOND}; }

int64_t shim_left(const struct slot *slot) {
  int64_t deadline = atomic_load(&slot->deadline);
  int64_t left = deadline - (atomic_load(&slot->is_real) ? shim_machine(CLOCK_MONOTONIC) : shim_now());
  return deadline == NEVER ? 0 : left > 0 ? left : 1; /* 0 would say that nothing is armed */
}

/* Slots. */

void shim_tell(void) {
  atomic_fetch_add(&shim_page->changes, 1);
  CALL(SYS_futex, &shim_page->changes, FUTEX_WAKE, 1);
}

void shim_count_waking(void) {
  if (shim_page) atomic_fetch_add(&shim_page->wakings, 1);
}

struct slot *shim_claim(int kind) {
  struct slot *slot = page_claim(shim_page, (int)CALL(SYS_gettid), getpid(), kind);
  if (slot) return slot;
  static const char words[] = "agentproc: more than 4096 threads and timers: virtual time has no place for them\n";
  if (write(STDERR_FILENO, words, sizeof words - 1)) {}
  _exit(70);
}

void shim_free(struct slot *slot) { page_free(slot); }

/* The slot of this thread. A fork that libc does not know of (by clone) leaves its parent's: hence the look at the tid. */
struct slot *shim_mine(void) {
  if (!mine || atomic_load(&mine->tid) != CALL(SYS_gettid)) mine = shim_claim(WAITS);
  return mine;
}

/* The same for a wait that needs no slot; NULL: this thread has none of the noted ones. */
struct slot *shim_mine_if_noted(void) {
  if (!mine && atomic_load(&shim_page->top) >= NOTED_SLOTS) return NULL;
  return shim_mine() - shim_page->slots < NOTED_SLOTS ? mine : NULL;
}

/* A wait that begins in real time ends in real time, whatever becomes of the page's. */
void shim_set(struct slot *slot, int64_t deadline) {
  int64_t offset = atomic_load(&shim_page->offset);
  atomic_store(&slot->serial, atomic_fetch_add(&serial, 1));
  atomic_store(&slot->is_real, offset != VIRTUAL);
  atomic_store(&slot->armed, shim_now());
  if (offset != VIRTUAL && deadline != NEVER) deadline -= offset;
  atomic_store(&slot->deadline, deadline);
  shim_tell();
}

void shim_rest(void) {
  readings = looks = 0;
  if (!is_stepping) steps = 0;
}

void shim_arm(struct slot *slot, int kind, int64_t deadline) {
  atomic_store(&slot->kind, kind);
  atomic_store(&slot->granted, 0);
  shim_set(slot, deadline > FOR_EVER ? NEVER : deadline > 0 ? deadline : PAST);
  shim_rest();
}

void shim_disarm(struct slot *slot) {
  atomic_store(&slot->deadline, NEVER);
  atomic_store(&slot->kind, WAITS);
}

/* The tracer's filter is there, and somebody traces this process: a debugger comes without a filter. */
static int is_traced(void) {
  static int known = -1;
  char text[4096], *line;
  if (known >= 0) return known;
  int file = (int)CALL(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : CALL(SYS_read, file, text, sizeof text - 1);
  if (file >= 0) CALL(SYS_close, file);
  text[size > 0 ? size : 0] = 0;
  line = strstr(text, "\nTracerPid:");
  return known = line && atoi(line + 11) && strstr(line, "\nSeccomp:\t2") && is_beyond_shim("/proc/self/exe");
}

struct timespec shim_by_machine(clockid_t clock, const struct timespec *until) {
  if (is_traced()) return *until;
  return shim_timespec(shim_ns(until) - shim_base(clock) - shim_now() + shim_machine(clock));
}

/* Waits. */

static void wake(int signal) {
  (void)signal;
  woken = 1;
}

void shim_mask_wake(int how) {
  uint64_t mask = 1ull << (WAKE_SIGNAL - 1);
  int error = errno;
  CALL(SYS_rt_sigprocmask, how, &mask, 0, 8);
  errno = error;
}

void shim_begin(struct wait *wait, int64_t deadline, const sigset_t *mask) {
  wait->error = errno;
  wait->slot = shim_mine();
  wait->expired = 0;
  if (mask) {
    wait->mask = *mask;
  } else {
    sigemptyset(&wait->mask);
    CALL(SYS_rt_sigprocmask, SIG_SETMASK, 0, &wait->mask, 8);
  }
  sigdelset(&wait->mask, WAKE_SIGNAL);
  woken = 0;
  shim_arm(wait->slot, WAITS, deadline);
  errno = wait->error;
}

/* An interrupted call is over if its instant has come or another signal came; what is left of an earlier wait is not.
 * Its EINTR must not stay. CPython calls epoll_wait again if errno is EINTR, whatever the result is: an event that the
 * kernel gives only once was lost, and trio waited for ever. */
int shim_again(struct wait *wait, long *result) {
  if (*result != -1 || errno != EINTR) return 0;
  int is_granted = atomic_load(&wait->slot->granted);
  if (!is_granted && !woken) return 0;
  errno = wait->error;
  if (!is_granted) {
    woken = 0;
    return 1;
  }
  wait->expired = 1;
  *result = 0;
  return 0;
}

void shim_end(struct wait *wait) {
  shim_disarm(wait->slot);
  atomic_store(&wait->slot->granted, 0); /* a handler that waits leaves nothing to the wait that it interrupted */
  woken = 0;
}

/* A wait that the program did not ask for: it goes on spinning, if it does. */
static void pass(int64_t duration) {
  int error = errno;
  unsigned spun = readings;
  struct wait wait;
  long result;
  is_stepping = 1;
  shim_begin(&wait, shim_now() + duration, NULL);
  do result = CALL(SYS_ppoll, 0, 0, 0, &wait.mask, 8);
  while (shim_again(&wait, &result));
  shim_end(&wait);
  is_stepping = 0;
  readings = spun;
  errno = error;
}

/* A program that reads the clock until an instant has come would read for ever. */
static void step(void) {
  int64_t duration = 1000LL << (steps < 20 ? steps++ : 20);
  pass(duration < LONGEST_STEP ? duration : LONGEST_STEP);
}

/* A handler of signals may look while its thread waits: the slot is that wait's. */
int shim_settle(void) {
  static __thread int64_t settled_at;
  static __thread int settled;
  if (!shim_page || shim_is_real() || atomic_load(&shim_mine()->deadline) != NEVER) return 0;
  if (settled_at != shim_now()) settled = 0;
  settled_at = shim_now();
  if (settled == MOST_LOOKS) return 0;
  settled++;
  pass(0);
  return 1;
}

void shim_spin(unsigned weight) {
  if (shim_is_real()) return;
  readings += weight;
  if (readings < (steps ? NEXT_SPIN : FIRST_SPIN)) return;
  readings = looks = 0;
  step();
}

void shim_spin_look(unsigned weight) {
  looks += weight;
  shim_spin(weight);
}

void shim_forgive_looks(void) {
  readings -= looks < readings ? looks : readings;
  looks = 0;
}

/* The beginning of a process. */

static void be_forked(void) {
  mine = NULL;
  shim_forget_timers();
  shim_forget_helper();
}

/* Where /proc numbers processes in another way than getpid, a slot would name a process that is not there. */
static int sees_itself(void) {
  char number[16] = "";
  return CALL(SYS_readlinkat, AT_FDCWD, "/proc/self", number, sizeof number - 1) > 0 && atoi(number) == getpid();
}

static struct page *map_page(const char *path) {
  int descriptor = (int)CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return NULL;
  void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  CALL(SYS_close, descriptor);
  return page == MAP_FAILED ? NULL : page;
}

/* What an earlier image of this process waited for, nobody waits for any more. */
static void drop_slots_of_earlier_image(void) {
  int pid = getpid(), top = atomic_load(&shim_page->top);
  for (int i = 0; i < top; i++) {
    struct slot *slot = &shim_page->slots[i];
    if (atomic_load(&slot->pid) != pid || slot->is_inherited || atomic_load(&slot->kind) == TRACED_FILE) continue;
    if (atomic_load(&slot->kind) == TIMERFD && fcntl(slot->descriptor, F_GETFD) >= 0) continue;
    shim_free(slot);
  }
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv(PAGE_VARIABLE);
  Dl_info library;
  next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  if (!path || !sees_itself() || !(shim_page = map_page(path))) return;
  snprintf(shim_variable, sizeof shim_variable, PAGE_VARIABLE "=%s", path);
  if (dladdr(&shim_page, &library)) snprintf(shim_preload, sizeof shim_preload, "LD_PRELOAD=%s", library.dli_fname);
  drop_slots_of_earlier_image();
  shim_adopt_timers();
  shim_mask_wake(SIG_BLOCK);
  struct sigaction action = {.sa_handler = wake};
  NEXT(sigaction)(WAKE_SIGNAL, &action, NULL);
  pthread_atfork(NULL, NULL, be_forked);
  mine = shim_claim(WAITS);
}
