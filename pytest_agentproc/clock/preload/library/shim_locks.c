/* Waits for other threads: conditions, locks, semaphores. */
#include "shim.h"
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>

/* The helper: a thread of the shim's own, for what no signal of the coordinator's can do. It broadcasts a condition
 * (its waiters expect to be woken for nothing now and then) and lets a timerfd run out. */

static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
static int has_helper;

static int looks_ended(int descriptor) {
  struct pollfd seen = {.fd = descriptor, .events = POLLIN};
#ifdef SYS_poll
  return CALL(SYS_poll, &seen, 1, 0) != 0; /* where the program is traced, this call does not stop it */
#else
  struct timespec none = {0, 0};
  return CALL(SYS_ppoll, &seen, 1, &none, NULL, 8) != 0;
#endif
}

/* A reader is given the number of all ends that nobody has read. The kernel takes that number as an order; one that does
 * not lets its own timer run out. Then the helper runs until poll sees the end: nobody may take the process for blocked
 * before. A thread that reads the end at once takes it away from poll; then the kernel says that the time is over, and its
 * interrupt has come since. */
static void end_timerfd(struct slot *slot) {
  struct itimerspec at_once = {.it_value = {0, 1}};
  int descriptor = slot->descriptor;
  slot->value = looks_ended(descriptor) ? slot->value + 1 : 1;
  if (!CALL(SYS_ioctl, descriptor, SET_TICKS, &slot->value)) return;
  if (CALL(SYS_timerfd_settime, descriptor, 0, &at_once, NULL)) return;
  for (int round = 0; round < 500; round++) {
    for (int i = 0; i < 200; i++)
      if (looks_ended(descriptor)) return;
    if (round && !at_once.it_value.tv_nsec) return;
    if (CALL(SYS_timerfd_gettime, descriptor, &at_once)) return;
  }
}

struct notice {
  void (*function)(uint64_t);
  uint64_t value;
};

static void *notify(void *argument) {
  struct notice notice = *(struct notice *)argument;
  ((struct notice *)argument)->function = NULL;
  notice.function(notice.value);
  return NULL;
}

static int start(void *(*function)(void *), void *argument) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int error = pthread_create(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

static void serve(struct slot *slot) {
  pthread_cond_t *condition = atomic_load(&slot->condition);
  struct notice notice = {atomic_load(&slot->notify), slot->value};
  if (atomic_load(&slot->kind) == TIMERFD) {
    end_timerfd(slot);
  } else if (notice.function) {
    if (start(notify, &notice)) return;
    while (*(void (*volatile *)(uint64_t))&notice.function) CALL(SYS_sched_yield);
  } else if (condition) {
    pthread_cond_broadcast(condition);
  }
}

static _Noreturn void *help(void *nothing) {
  (void)nothing;
  struct slot *helper = shim_mine();
  atomic_store(&helper->kind, HELPER);
  for (;;) {
    uint32_t order = atomic_exchange(&helper->order, 0);
    if (order) serve(&shim_page->slots[order - 1]);
    else CALL(SYS_futex, &helper->order, FUTEX_WAIT, 0, NULL);
  }
}

void shim_need_helper(void) {
  sigset_t all, old;
  if (has_helper) return;
  sigfillset(&all);
  CALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8); /* signals are for the program's own threads */
  pthread_mutex_lock(&helper_lock);
  if (!has_helper) has_helper = !start(help, NULL);
  pthread_mutex_unlock(&helper_lock);
  CALL(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
}

void shim_forget_helper(void) {
  has_helper = 0;
  pthread_mutex_init(&helper_lock, NULL);
}

/* Conditions.
 *
 * A waiter is noted in its slot, so that the coordinator need not look again at a thread that nobody has woken. Who wakes
 * it counts that, if the note is still there afterwards; if not, the waiter itself has counted. A signal for nobody
 * counts nothing: Node sends five in each turn of its loop. */

static void begin_noted_wait(struct slot *slot, pthread_cond_t *condition) { atomic_store(&slot->condition, condition); }

static void end_noted_wait(struct slot *slot) {
  shim_count_waking();
  atomic_store(&slot->condition, NULL);
}

static void count_waking_of(const pthread_cond_t *condition) {
  if (!shim_page) return;
  int pid = getpid(), top = atomic_load(&shim_page->top), is_found = 0;
  for (int i = 0; i < top && i < NOTED_SLOTS && !is_found; i++) {
    struct slot *slot = &shim_page->slots[i];
    is_found = atomic_load(&slot->condition) == condition && atomic_load(&slot->pid) == pid;
  }
  if (is_found) shim_count_waking();
}

/* CPython's interpreter lock (GIL). Its timed wait is no wait of the program: after 5 ms the waiter asks the thread that
 * holds the lock to let it go. A thread that computes moves no virtual time, so these 5 ms would never be over, and no
 * other thread would run. So it is machine time, until this process has computed for 100 ms: a machine with other work must
 * not change the order of threads, and threads that take turns more often are less exact.
 *
 * The condition is known by its place: of all conditions, only those of this lock are in `_PyRuntime`. A lock of its own
 * that a subinterpreter has is elsewhere, and so is unknown. */

#define PATIENCE (100 * 1000000LL) /* nanoseconds of CPU time */

static int is_interpreter_lock(const pthread_cond_t *condition) {
  static _Atomic uintptr_t begin, size;
  static atomic_int is_known;
  if (!atomic_load(&is_known)) {
    Dl_info library;
    const ElfW(Sym) *symbol = NULL;
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (runtime && dladdr1(runtime, &library, (void **)&symbol, RTLD_DL_SYMENT) && symbol) {
      atomic_store(&begin, (uintptr_t)runtime);
      atomic_store(&size, symbol->st_size);
    }
    atomic_store(&is_known, 1);
  }
  return (uintptr_t)condition - atomic_load(&begin) < atomic_load(&size);
}

static int wait_for_interpreter(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t duration) {
  static _Thread_local int64_t since; /* CPU time at which this thread began to wait; 0: it does not */
  int is_real = shim_is_real();
  if (!is_real) duration = PATIENCE;
  if (!since) since = shim_machine(CLOCK_PROCESS_CPUTIME_ID);
  struct timespec until = shim_timespec(shim_machine(CLOCK_MONOTONIC) + (duration > 0 ? duration : 0));
  struct slot *slot = shim_mine_if_noted();
  if (slot) begin_noted_wait(slot, condition);
  int result = NEXT(pthread_cond_clockwait)(condition, mutex, CLOCK_MONOTONIC, &until);
  if (slot) end_noted_wait(slot);
  /* 0 before the time is up is a spurious waking: the waiter looks at the lock, and waits on. */
  if (result == ETIMEDOUT && !is_real && shim_machine(CLOCK_PROCESS_CPUTIME_ID) - since < PATIENCE) return 0;
  since = 0;
  return result;
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
  if (is_interpreter_lock(condition)) return wait_for_interpreter(condition, mutex, deadline - shim_now());
  if (deadline <= shim_now()) {
    pthread_mutex_unlock(mutex); /* as libc does: another thread may have its turn */
    shim_spin(SPIN_EXPIRED);
    pthread_mutex_lock(mutex);
    return ETIMEDOUT;
  }
  shim_need_helper();
  struct slot *slot = shim_mine();
  begin_noted_wait(slot, condition);
  shim_arm(slot, CONDITION, deadline);
  int result = NEXT(pthread_cond_wait)(condition, mutex);
  if (!result && atomic_load(&slot->granted)) result = ETIMEDOUT;
  shim_disarm(slot);
  end_noted_wait(slot);
  return result;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  struct slot *slot = shim_page ? shim_mine_if_noted() : NULL;
  if (!slot) return NEXT(pthread_cond_wait)(condition, mutex);
  begin_noted_wait(slot, condition);
  int result = NEXT(pthread_cond_wait)(condition, mutex);
  end_noted_wait(slot);
  return result;
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition) {
  int result = NEXT(pthread_cond_signal)(condition);
  count_waking_of(condition);
  return result;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
  int result = NEXT(pthread_cond_broadcast)(condition);
  count_waking_of(condition);
  return result;
}

EXPORT int cnd_signal(cnd_t *condition) {
  return pthread_cond_signal((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}

EXPORT int cnd_broadcast(cnd_t *condition) {
  return pthread_cond_broadcast((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until) {
  if (!shim_page) return NEXT(pthread_cond_clockwait)(condition, mutex, clock, until);
  if (!shim_is_valid(until)) return EINVAL;
  return wait_condition(condition, mutex, shim_ns(until) - shim_base(clock));
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until) {
  if (!shim_page) return NEXT(pthread_cond_timedwait)(condition, mutex, until);
  if (!shim_is_valid(until)) return EINVAL;
  return wait_condition(condition, mutex, shim_ns(until) - shim_guessed_base(shim_ns(until)));
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
  int error = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
  return error == ETIMEDOUT ? thrd_timedout : error ? thrd_error : thrd_success;
}

/* Semaphores: their calls take no mask. */

void shim_begin_open(struct wait *wait, int64_t deadline) {
  shim_begin(wait, deadline, NULL);
  shim_mask_wake(SIG_UNBLOCK);
}

void shim_end_open(struct wait *wait, long *result, int late) {
  int error = errno;
  shim_mask_wake(SIG_BLOCK);
  shim_end(wait);
  errno = error;
  if (!wait->expired) return;
  *result = late ? -1 : 0;
  if (late) errno = late;
}

int shim_is_granted_already(struct wait *wait) {
  if (!atomic_load(&wait->slot->granted)) return 0;
  errno = EINTR;
  return 1;
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until) {
  if (!shim_page) return NEXT(sem_clockwait)(semaphore, clock, until);
  if (!sem_trywait(semaphore)) return 0;
  int64_t deadline = shim_ns(until) - shim_base(clock);
  errno = shim_is_valid(until) ? ETIMEDOUT : EINVAL;
  if (errno == EINVAL) return -1;
  if (deadline <= shim_now()) {
    shim_spin(SPIN_EXPIRED);
    return -1;
  }
  struct wait wait;
  long result;
  shim_begin_open(&wait, deadline);
  do result = shim_is_granted_already(&wait) ? -1 : sem_wait(semaphore);
  while (shim_again(&wait, &result));
  shim_end_open(&wait, &result, ETIMEDOUT);
  return (int)result;
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
  return shim_page ? sem_clockwait(semaphore, CLOCK_REALTIME, until) : NEXT(sem_timedwait)(semaphore, until);
}

/* Locks with a limit. A lock of the usual kinds is a word that its owner wakes by futex if it is 2; the wait is that of
 * glibc, whose lists of waiters it leaves in order: who has waited leaves a 2, so that the next one is woken, too. */

#define KINDS_OF_OWNER 0x203 /* recursive, error-checking, adaptive, and with or without elision */

static int lock_until(pthread_mutex_t *mutex, int64_t deadline) {
  int *word = &mutex->__data.__lock, error, one, has_waited = 0;
  while ((error = pthread_mutex_trylock(mutex)) == EBUSY) {
    struct timespec until = {0, 0};
    one = 1;
    if (!__atomic_compare_exchange_n(word, &one, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && !one) continue;
    if (deadline <= shim_now()) return ETIMEDOUT;
    until = shim_timespec(deadline + shim_base(CLOCK_MONOTONIC));
    long a[6] = {(long)word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, (long)&until, 0, FUTEX_BITSET_MATCH_ANY};
    int kept = errno;
    if (shim_call_futex(a) && errno == ETIMEDOUT) deadline = INT64_MIN;
    errno = kept;
    has_waited = 1;
  }
  one = 1;
  if (!error && has_waited) __atomic_compare_exchange_n(word, &one, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return error;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                   const struct timespec *restrict until) {
  if (!shim_page) return NEXT(pthread_mutex_clocklock)(mutex, clock, until);
  if (mutex->__data.__kind & ~KINDS_OF_OWNER) { /* robust, shared, or with priorities */
    struct timespec machine = shim_by_machine(clock, until);
    return NEXT(pthread_mutex_clocklock)(mutex, clock, &machine);
  }
  if (!pthread_mutex_trylock(mutex)) return 0;
  if (!shim_is_valid(until)) return EINVAL;
  if ((mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP && mutex->__data.__owner == CALL(SYS_gettid))
    return EDEADLK;
  return lock_until(mutex, shim_ns(until) - shim_base(clock));
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  return shim_page ? pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until)
                   : NEXT(pthread_mutex_timedlock)(mutex, until);
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until) {
  int error = pthread_mutex_timedlock((pthread_mutex_t *)mutex, until);
  return error == ETIMEDOUT ? thrd_timedout : error ? thrd_error : thrd_success;
}

#define LOCK_BY_MACHINE(name, lock)                                                                           \
  EXPORT int name(lock *restrict one, clockid_t clock, const struct timespec *restrict until) {                \
    if (!shim_page || !shim_is_valid(until)) return NEXT(name)(one, clock, until);                             \
    struct timespec machine = shim_by_machine(clock, until);                                                        \
    return NEXT(name)(one, clock, &machine);                                                                   \
  }
LOCK_BY_MACHINE(pthread_rwlock_clockrdlock, pthread_rwlock_t)
LOCK_BY_MACHINE(pthread_rwlock_clockwrlock, pthread_rwlock_t)

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict until) {
  return shim_page ? pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, until)
                   : NEXT(pthread_rwlock_timedrdlock)(lock, until);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict until) {
  return shim_page ? pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, until)
                   : NEXT(pthread_rwlock_timedwrlock)(lock, until);
}

EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until) {
  if (!shim_page || !until || !shim_is_valid(until)) return NEXT(pthread_clockjoin_np)(thread, result, clock, until);
  struct timespec machine = shim_by_machine(clock, until);
  return NEXT(pthread_clockjoin_np)(thread, result, clock, &machine);
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until) {
  return shim_page ? pthread_clockjoin_np(thread, result, CLOCK_REALTIME, until)
                   : NEXT(pthread_timedjoin_np)(thread, result, until);
}
