/* Timers of a process, whose end is a signal, a call or a readable descriptor. The coordinator ends them, so those of a
 * stopped or busy process end, too. */
#include "shim.h"
#include <linux/kcmp.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#define MICROSECOND 1000LL
#define MOST_DESCRIPTORS 1024 /* copies are looked for up to here */

static _Atomic int timerfds;

/* Slots that another image of this process has armed, and that outlive it as in the kernel. */
void shim_adopt_timers(void) {
  int pid = getpid(), top = atomic_load(&shim_page->top);
  for (int i = 0; i < top; i++) {
    struct slot *slot = &shim_page->slots[i];
    if (atomic_load(&slot->pid) != pid) continue;
    if (atomic_load(&slot->kind) == TIMERFD) timerfds++;
  }
  if (timerfds) shim_need_helper();
}

void shim_forget_timers(void) { timerfds = 0; }

static void set(struct slot *slot, int64_t deadline, int64_t interval) {
  atomic_store(&slot->deadline, NEVER); /* nobody ends it while it is half set */
  atomic_store(&slot->interval, interval);
  shim_set(slot, deadline);
}

static struct itimerspec setting(const struct slot *slot) {
  return (struct itimerspec){shim_timespec(atomic_load(&slot->interval)), shim_timespec(shim_left(slot))};
}

static int64_t deadline_of(const struct timespec *time, int is_absolute, int64_t base) {
  if (!shim_ns(time)) return NEVER;
  int64_t deadline = is_absolute ? shim_ns(time) - base : shim_after(shim_ns(time));
  return deadline > 0 ? deadline : 1;
}

/* timer_create: a number of ours stands for a slot. */

static struct slot *slot_of(timer_t timer) {
  intptr_t index = (intptr_t)timer - FIRST_TIMER;
  return shim_page && index >= 0 && index < SLOTS ? &shim_page->slots[index] : NULL;
}

EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
  if (!shim_page || !shim_is_virtual(clock)) return NEXT(timer_create)(clock, event, timer);
  struct slot *slot = shim_claim(TIMER);
  int how = event ? event->sigev_notify : SIGEV_SIGNAL;
  *timer = (timer_t)(intptr_t)(slot - shim_page->slots + FIRST_TIMER);
  slot->is_dated = shim_is_dated(clock);
  slot->signal = how == SIGEV_NONE || how == SIGEV_THREAD ? 0 : event ? event->sigev_signo : SIGALRM;
  slot->value = event ? (uint64_t)event->sigev_value.sival_ptr : (uint64_t)*timer;
  if (how == SIGEV_THREAD_ID) slot->thread = event->_sigev_un._tid;
  if (how == SIGEV_THREAD) {
    atomic_store(&slot->notify, (void (*)(uint64_t))(void *)event->sigev_notify_function);
    shim_need_helper();
  }
  return 0;
}

EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict new,
                         struct itimerspec *restrict old) {
  struct slot *slot = slot_of(timer);
  if (!slot) return NEXT(timer_settime)(timer, flags, new, old);
  int64_t base = shim_base(slot->is_dated ? CLOCK_REALTIME : CLOCK_MONOTONIC);
  if (old) *old = setting(slot);
  set(slot, deadline_of(&new->it_value, flags & TIMER_ABSTIME, base), shim_ns(&new->it_interval));
  return 0;
}

EXPORT int timer_gettime(timer_t timer, struct itimerspec *now) {
  struct slot *slot = slot_of(timer);
  if (!slot) return NEXT(timer_gettime)(timer, now);
  *now = setting(slot);
  return 0;
}

EXPORT int timer_getoverrun(timer_t timer) { return slot_of(timer) ? 0 : NEXT(timer_getoverrun)(timer); }

EXPORT int timer_delete(timer_t timer) {
  struct slot *slot = slot_of(timer);
  if (!slot) return NEXT(timer_delete)(timer);
  shim_free(slot);
  return 0;
}

/* The one timer that every process has. */

static struct itimerval in_microseconds(struct itimerspec time) {
  return (struct itimerval){{time.it_interval.tv_sec, time.it_interval.tv_nsec / MICROSECOND},
                            {time.it_value.tv_sec, time.it_value.tv_nsec / MICROSECOND}};
}

/* An earlier image of this process may have armed it. A child of vfork has another one, in the same memory. */
static struct slot *alarm_slot(void) {
  int pid = getpid(), top = atomic_load(&shim_page->top);
  for (int i = 0; i < top; i++)
    if (atomic_load(&shim_page->slots[i].pid) == pid && shim_page->slots[i].is_inherited) return &shim_page->slots[i];
  return NULL;
}

static int64_t ns_of(struct timeval time) { return time.tv_sec * SECOND + time.tv_usec * MICROSECOND; }

EXPORT int getitimer(__itimer_which_t which, struct itimerval *now) {
  if (!shim_page || which != ITIMER_REAL) return (int)CALL(SYS_getitimer, which, now);
  struct slot *slot = alarm_slot();
  *now = slot ? in_microseconds(setting(slot)) : (struct itimerval){0};
  return 0;
}

EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict new, struct itimerval *restrict old) {
  if (!shim_page || which != ITIMER_REAL) return (int)CALL(SYS_setitimer, which, new, old);
  if (old) getitimer(which, old);
  struct slot *slot = alarm_slot();
  if (!slot) {
    slot = shim_claim(TIMER);
    slot->is_inherited = 1;
    slot->signal = SIGALRM;
  }
  struct timespec value = shim_timespec(new ? ns_of(new->it_value) : 0);
  set(slot, deadline_of(&value, 0, 0), new ? ns_of(new->it_interval) : 0);
  return 0;
}

EXPORT unsigned alarm(unsigned seconds) {
  struct itimerval new = {{0, 0}, {seconds, 0}}, old = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &new, &old);
  return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec > 0);
}

EXPORT useconds_t ualarm(useconds_t value, useconds_t interval) {
  struct itimerval new = {{interval / 1000000, interval % 1000000}, {value / 1000000, value % 1000000}};
  struct itimerval old = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &new, &old);
  return (useconds_t)(old.it_value.tv_sec * 1000000 + old.it_value.tv_usec);
}

/* timerfd: the descriptor is a real one that nobody has armed until its instant comes. */

static struct slot *timerfd_slot(int descriptor) {
  int pid = getpid(), top = timerfds ? atomic_load(&shim_page->top) : 0;
  for (int i = 0; i < top; i++) {
    struct slot *slot = &shim_page->slots[i];
    if (atomic_load(&slot->pid) == pid && atomic_load(&slot->kind) == TIMERFD && slot->descriptor == descriptor)
      return slot;
  }
  return NULL;
}

EXPORT int timerfd_settime(int descriptor, int flags, const struct itimerspec *new, struct itimerspec *old) {
  static const struct itimerspec off;
  if (!shim_page) return (int)CALL(SYS_timerfd_settime, descriptor, flags, new, old);
  if (CALL(SYS_timerfd_settime, descriptor, 0, &off, NULL)) return -1;
  struct slot *slot = timerfd_slot(descriptor);
  if (!slot) {
    shim_need_helper();
    slot = shim_claim(TIMERFD);
    slot->descriptor = descriptor;
    timerfds++;
  }
  int64_t base = shim_guessed_base(shim_ns(&new->it_value));
  if (old) *old = setting(slot);
  set(slot, deadline_of(&new->it_value, flags & TFD_TIMER_ABSTIME, base), shim_ns(&new->it_interval));
  return 0;
}

EXPORT int timerfd_gettime(int descriptor, struct itimerspec *now) {
  struct slot *slot = shim_page ? timerfd_slot(descriptor) : NULL;
  if (!slot) return (int)CALL(SYS_timerfd_gettime, descriptor, now);
  *now = setting(slot);
  return 0;
}

/* Another number of the same file, as dup gives it; -1: there is none. A machine that forbids kcmp knows none. */
static int copy_of(int descriptor) {
  int pid = getpid();
  for (int other = 0; other < MOST_DESCRIPTORS; other++)
    if (other != descriptor && !CALL(SYS_kcmp, pid, pid, KCMP_FILE, descriptor, other)) return other;
  return -1;
}

/* Its number may be another file's next: that one must not be ended as a timer. */
EXPORT int close(int descriptor) {
  struct slot *slot = shim_page ? timerfd_slot(descriptor) : NULL;
  int error = errno, copy = slot ? copy_of(descriptor) : -1;
  errno = error;
  shim_forget_read_timeout(descriptor);
  if (slot && copy >= 0) {
    slot->descriptor = copy;
  } else if (slot) {
    shim_free(slot);
    timerfds--;
  }
  return (int)CALL(SYS_close, descriptor);
}
