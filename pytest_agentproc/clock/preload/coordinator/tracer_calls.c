/* The calls about time of a traced thread: readings are answered here, and waits wait without their limits.
 *
 * Owns what each call means: where its limit stands, what it gives at its instant, what it leaves in memory. */
#define _GNU_SOURCE
#include "tracer.h"
#include "vclock.h"

#if defined(__x86_64__)

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAST (-1) /* a wait whose instant is past, or is this one at the beginning of time */
#define FIRST_SPIN 4000000 /* so many readings of the clock without a wait until time moves, and from then on */
#define NEXT_SPIN 4000
#define SLOW_READING 20 /* a reading that stops the thread counts for so many of the others */
#define LONGEST_NAP (SECOND / 1000)
#define LONGEST_RUNTIME_SLEEP (SECOND / 100) /* of Go's sysmon: its limit by the machine's clock stays */
#define MOST_NAPS 100 /* of a thread at one instant: Go's sysmon waits for 10 ms to pass while a system call holds a P */
#define LONGEST_SPIN (5 * SECOND)
#define LONGEST_TURN (11 * SECOND / 1000) /* of a goroutine, and a bit */
#define MOST_LOOKS 100 /* at one instant a thread waits for all others: one that looks without end would take for ever */
#define LONGEST_STEP (SECOND / 5)
/* What the kernel gives a tracer for an interrupted call; no program sees them. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* Time, as the shim has it. */

int is_real_time(void) { return atomic_load(&page->offset) != VIRTUAL; }

int64_t page_now(void) {
  int64_t offset = atomic_load(&page->offset);
  return offset == VIRTUAL ? atomic_load(&page->now) : machine_now() + offset;
}

int is_dated(long clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI; }

int is_virtual(long clock) {
  return is_dated(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW ||
         clock == CLOCK_BOOTTIME;
}

int64_t base_of(int dated) {
  struct timespec date;
  if (!dated) return page->monotonic;
  if (!is_real_time()) return atomic_load(&page->date);
  clock_gettime(CLOCK_REALTIME, &date);
  return date.tv_sec * SECOND + date.tv_nsec - page_now();
}

int64_t ns_of(struct timespec time) {
  return time.tv_sec > INT64_MAX / SECOND / 2 ? INT64_MAX / 2 : time.tv_sec * SECOND + time.tv_nsec;
}

struct timespec time_of(int64_t ns) { return (struct timespec){ns / SECOND, ns % SECOND}; }

/* Calls: answered here, or waits without their limits. */

void answer(struct tracee *tracee, registers *regs, long result) {
  regs->orig_rax = (unsigned long)-1;
  regs->rax = (unsigned long)result;
  ptrace(PTRACE_SETREGS, tracee->tid, 0, regs);
  resume(tracee, PTRACE_CONT, 0);
}

void disarm(struct tracee *tracee) {
  if (!tracee->slot) return;
  atomic_store(&tracee->slot->deadline, NEVER);
  atomic_store(&tracee->slot->granted, 0);
}

static void arm(struct tracee *tracee, int64_t deadline) {
  static uint32_t serial;
  if (!tracee->slot || atomic_load(&tracee->slot->tid) != tracee->tid)
    tracee->slot = demand_slot(tracee->tid, tracee->pid, TRACED);
  struct slot *slot = tracee->slot;
  int64_t offset = atomic_load(&page->offset);
  atomic_store(&slot->serial, serial++);
  atomic_store(&slot->is_real, offset != VIRTUAL);
  atomic_store(&slot->armed, page_now());
  atomic_store(&slot->granted, 0);
  if (deadline > FOR_EVER) deadline = NEVER;
  else if (deadline <= 0) deadline = PAST;
  if (offset != VIRTUAL && deadline != NEVER) deadline -= offset;
  atomic_store(&slot->deadline, deadline);
}

/* Let a call wait as `regs` say, until `deadline`. */
static void wait_until(struct tracee *tracee, registers *regs, int64_t deadline) {
  tracee->deadline = deadline;
  tracee->is_waiting = 1;
  tracee->can_resume = 0;
  if (!tracee->is_stepping) tracee->readings = 0;
  arm(tracee, deadline);
  ptrace(PTRACE_SETREGS, tracee->tid, 0, regs);
  resume(tracee, PTRACE_SYSCALL, 0);
}

/* A call that only sleeps; ppoll of nothing is ended by signals in the same way. */
static void sleep_until(struct tracee *tracee, registers *regs, int64_t deadline) {
  regs->orig_rax = SYS_ppoll;
  regs->rdi = regs->rsi = regs->rdx = regs->r10 = regs->r8 = 0;
  wait_until(tracee, regs, deadline);
}

int64_t after(int64_t duration) { return duration > FOR_EVER ? FOR_EVER + 1 : page_now() + duration; }

/* Where the limit of a call stands. */
static unsigned long long *limit_in(registers *regs) {
  switch (regs->orig_rax) {
  case SYS_futex:
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2:
  case SYS_semtimedop:
  case SYS_futex_waitv: return &regs->r10;
  case SYS_poll:
  case SYS_ppoll:
  case SYS_rt_sigtimedwait: return &regs->rdx;
  case SYS_select:
  case SYS_pselect6:
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
  case SYS_io_getevents:
  case SYS_io_pgetevents: return &regs->r8;
  default: return NULL;
  }
}

/* Go rounds what it has to wait down to milliseconds, and waits for 1 ms where that gives 0: so it would be late by a part
 * of a millisecond whenever it begins to wait within one, as after a garbage collection. Its timers of whole
 * milliseconds are due at whole ones. */
static int64_t next_millisecond(void) {
  int64_t instant = page->monotonic + page_now();
  return page_now() + SECOND / 1000 - instant % (SECOND / 1000);
}

/* The deadline of a call, or -1: it has none that is ours. */
static int64_t deadline_of(const struct tracee *tracee, registers *regs) {
  unsigned long limit = *limit_in(regs);
  struct timespec time;
  int command = (int)regs->rsi & FUTEX_CMD_MASK;
  switch (regs->orig_rax) {
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case SYS_poll:
    if (tracee->is_go && limit == 1) return next_millisecond();
    return after((int)limit * (SECOND / 1000));
  case SYS_futex:
    if (!get_memory(tracee->tid, limit, &time, sizeof time)) return -1;
    if (command == FUTEX_WAIT) return ns_of(time) ? after(ns_of(time)) : -1;
    return ns_of(time) - base_of(command == FUTEX_LOCK_PI || regs->rsi & FUTEX_CLOCK_REALTIME);
  case SYS_futex_waitv:
    if (!get_memory(tracee->tid, limit, &time, sizeof time)) return -1;
    return ns_of(time) - base_of(is_dated((int)regs->r8));
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
    if (!get_memory(tracee->tid, limit, &time, sizeof time)) return -1;
    return ns_of(time) - base_of(1);
  case SYS_select: /* a timeval */
    if (!get_memory(tracee->tid, limit, &time, sizeof time)) return -1;
    time.tv_nsec *= 1000;
    return ns_of(time) ? after(ns_of(time)) : -1;
  default:
    if (!get_memory(tracee->tid, limit, &time, sizeof time)) return -1;
    return ns_of(time) ? after(ns_of(time)) : -1;
  }
}

/* A program that reads the clock until an instant has come would read for ever. */
static int spins(struct tracee *tracee) {
  if (is_real_time()) return 0;
  if (tracee->read_at != page_now() && !tracee->steps) tracee->readings = 0;
  tracee->read_at = page_now();
  tracee->readings += tracee->area ? READINGS : SLOW_READING;
  return tracee->readings > (tracee->steps ? NEXT_SPIN - 1 : FIRST_SPIN);
}

static void read_clock(struct tracee *tracee, registers *regs) {
  int64_t instant;
  struct timespec time;
  long result = 0;
  switch (regs->orig_rax) {
  case SYS_clock_gettime:
    instant = base_of(is_dated((int)regs->rdi)) + page_now();
    time = time_of(instant);
    if (!put_memory(tracee->tid, regs->rsi, &time, sizeof time)) result = -EFAULT;
    break;
  case SYS_gettimeofday:
    time = time_of(base_of(1) + page_now());
    time.tv_nsec /= 1000;
    if (regs->rdi && !put_memory(tracee->tid, regs->rdi, &time, sizeof time)) result = -EFAULT;
    break;
  default:
    result = (base_of(1) + page_now()) / SECOND;
    if (regs->rdi && !put_memory(tracee->tid, regs->rdi, &result, sizeof result)) result = -EFAULT;
  }
  answer(tracee, regs, result);
}

/* Programs in Go sleep by timers of their own. Only the runtime calls nanosleep: 3 us before it steals work, 20 us and
 * more in sysmon. Such a nap lets all others go on, and is over when they are blocked; but time does not move by it, or a
 * timer of whole milliseconds would be late by 3 us. It is over, too, when it has taken its time by the machine's clock:
 * sysmon has to preempt goroutines that compute while others wait for their turn. */
static int is_nap(struct tracee *tracee, int64_t ns) {
  if (!tracee->is_go || is_real_time() || ns >= LONGEST_NAP) return 0;
  if (tracee->napped_at != page_now()) tracee->naps = 0;
  tracee->napped_at = page_now();
  return tracee->naps++ < MOST_NAPS;
}

static void sleep_as_asked(struct tracee *tracee, registers *regs) {
  int is_clock = regs->orig_rax == SYS_clock_nanosleep;
  int clock = is_clock ? (int)regs->rdi : CLOCK_MONOTONIC;
  int is_absolute = is_clock && regs->rsi & TIMER_ABSTIME;
  struct timespec time;
  if (!is_virtual(clock) || !get_memory(tracee->tid, is_clock ? regs->rdx : regs->rdi, &time, sizeof time) || time.tv_sec < 0 ||
      time.tv_nsec < 0 || time.tv_nsec >= SECOND || (!is_absolute && !ns_of(time))) {
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  if (tracee->is_go && !is_absolute && ns_of(time) <= LONGEST_RUNTIME_SLEEP)
    wait_until(tracee, regs, is_nap(tracee, ns_of(time)) ? page_now() : after(ns_of(time)));
  else sleep_until(tracee, regs, is_absolute ? ns_of(time) - base_of(is_dated(clock)) : after(ns_of(time)));
}

/* The pipes of a process end a moment of the machine before it does, and a look for its end in that moment finds it alive.
 * An orphan that was killed is there until the coordinator has reaped it. So all others do what they do at this instant before the look. */
static int settles(struct tracee *tracee) {
  if (is_real_time() || tracee->has_settled) return tracee->has_settled = 0;
  if (tracee->looked_at != page_now()) tracee->looks = 0;
  tracee->looked_at = page_now();
  return tracee->is_settling = tracee->looks++ < MOST_LOOKS;
}

/* A datagram that goes to an address: its answer may come from outside. */
static void note_destination(struct tracee *tracee, const registers *regs, unsigned long place) {
  char path[64];
  struct stat socket;
  struct sockaddr_in6 to = {0};
  snprintf(path, sizeof path, "/proc/%d/fd/%d", tracee->pid, (int)regs->rdi);
  if (!place || !get_memory(tracee->tid, place, &to, sizeof(struct sockaddr_in)) || stat(path, &socket)) return;
  get_memory(tracee->tid, place, &to, sizeof to);
  page_note_destination(page, socket.st_ino, (void *)&to);
}

void stop_at_call(struct tracee *tracee) {
  registers regs;
  uint64_t flags;
  int is_ours = tracee->mode != PASSED && !ptrace(PTRACE_GETREGS, tracee->tid, 0, &regs);
  if (is_ours && is_call_of_shim(tracee, regs.rip)) {
    is_ours = 0;
    if (regs.orig_rax == SYS_timerfd_settime) forget_timerfd(tracee->pid, (int)regs.rdi);
  }
  if (!is_ours) {
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  int goes_on = tracee->can_resume && tracee->entry.orig_rax == regs.orig_rax && tracee->entry.rip == regs.rip &&
                tracee->entry.rsp == regs.rsp;
  tracee->can_resume = 0;
  tracee->entry = regs;
  tracee->is_stepping = 0;
  switch (regs.orig_rax) {
  case SYS_clock_gettime:
    if ((int)regs.rdi == CLOCK_BOOTTIME_ALARM) { /* the machine's, as for the shim */
      regs.rdi = CLOCK_BOOTTIME;
      tracee->is_waiting = 1;
      ptrace(PTRACE_SETREGS, tracee->tid, 0, &regs);
      resume(tracee, PTRACE_SYSCALL, 0);
      return;
    }
    if (!is_virtual((int)regs.rdi)) break; /* fall through */
  case SYS_gettimeofday:
  case SYS_time:
    if (!spins(tracee)) {
      read_clock(tracee, &regs);
      return;
    }
    tracee->readings = 0;
    tracee->is_stepping = 1;
    int64_t step = 1000LL << (tracee->steps < 20 ? tracee->steps++ : 20);
    sleep_until(tracee, &regs, page_now() + (step < LONGEST_STEP ? step : LONGEST_STEP));
    return;
  case SYS_clone: /* no filter serves a child that nobody traces */
    regs.rdi &= ~(unsigned long)CLONE_UNTRACED;
    ptrace(PTRACE_SETREGS, tracee->tid, 0, &regs);
    break;
  case SYS_clone3: /* its flags come first */
    if (get_memory(tracee->tid, regs.rdi, &flags, sizeof flags) && flags & CLONE_UNTRACED) {
      flags &= ~(uint64_t)CLONE_UNTRACED;
      put_memory(tracee->tid, regs.rdi, &flags, sizeof flags);
    }
    break;
  case SYS_sendto: note_destination(tracee, &regs, regs.r8); break;
  case SYS_sendmsg:
  case SYS_sendmmsg: /* the address of the name comes first in a message */
    if (get_memory(tracee->tid, regs.rsi, &flags, sizeof flags)) note_destination(tracee, &regs, flags);
    break;
  case SYS_times:
  case SYS_sysinfo: /* the kernel fills them with more than the time */
    tracee->is_waiting = 1;
    resume(tracee, PTRACE_SYSCALL, 0);
    return;
  case SYS_connect: /* what may lead out of the tree is counted: outside.c looks where */
    atomic_fetch_add(&page->connections, 1);
    break;
  case SYS_socket:
  case SYS_accept:
  case SYS_accept4:
    tracee->is_waiting = 1;
    resume(tracee, PTRACE_SYSCALL, 0);
    return;
  case SYS_kill:
  case SYS_wait4:
  case SYS_waitid:
    if (!settles(tracee)) break;
    sleep_until(tracee, &regs, page_now());
    return;
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
    tracee->steps = 0;
    if (goes_on && !tracee->is_go) sleep_until(tracee, &regs, tracee->deadline);
    else sleep_as_asked(tracee, &regs);
    return;
  default:
    if (!limit_in(&regs)) {
      serve_timer(tracee, &regs);
      return;
    }
    int64_t deadline = goes_on ? tracee->deadline : deadline_of(tracee, &regs);
    if (deadline == -1) break;
    tracee->steps = 0;
    *limit_in(&regs) = regs.orig_rax == SYS_epoll_wait || regs.orig_rax == SYS_epoll_pwait || regs.orig_rax == SYS_poll
                           ? (unsigned long)-1 : 0;
    wait_until(tracee, &regs, deadline);
    return;
  }
  resume(tracee, PTRACE_CONT, 0);
}

static void clear_set(int tid, unsigned long place, unsigned long count) {
  char nothing[1024 * 8] = "";
  size_t size = (count + 63) / 64 * 8;
  if (place && size <= sizeof nothing) put_memory(tid, place, nothing, size);
}

/* What the call gives when its instant has come, and what it leaves in memory. */
static long expired(const struct tracee *tracee) {
  const registers *entry = &tracee->entry;
  switch (entry->orig_rax) {
  case SYS_futex:
  case SYS_futex_waitv:
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive: return -ETIMEDOUT;
  case SYS_rt_sigtimedwait:
  case SYS_semtimedop: return -EAGAIN;
  case SYS_select:
  case SYS_pselect6:
    clear_set(tracee->tid, entry->rsi, entry->rdi);
    clear_set(tracee->tid, entry->rdx, entry->rdi);
    clear_set(tracee->tid, entry->r10, entry->rdi);
    return 0;
  default: return 0;
  }
}

static void leave_rest(const struct tracee *tracee, long result) {
  const registers *entry = &tracee->entry;
  int64_t left = tracee->deadline > page_now() ? tracee->deadline - page_now() : 0;
  struct timespec rest = time_of(left);
  switch (entry->orig_rax) {
  case SYS_nanosleep:
    if (result < 0) put_memory(tracee->tid, entry->rsi, &rest, sizeof rest);
    return;
  case SYS_clock_nanosleep:
    if (result < 0 && !(entry->rsi & TIMER_ABSTIME)) put_memory(tracee->tid, entry->r10, &rest, sizeof rest);
    return;
  case SYS_select:
    rest.tv_nsec /= 1000;
    put_memory(tracee->tid, entry->r8, &rest, sizeof rest);
    return;
  case SYS_pselect6: put_memory(tracee->tid, entry->r8, &rest, sizeof rest); return;
  case SYS_ppoll: put_memory(tracee->tid, entry->rdx, &rest, sizeof rest); return;
  }
}

/* A goroutine that spins until another one has run waits for sysmon, which preempts it when it has run for 10 ms of the
 * page's time. So that has to pass, after so long by the machine's clock that no program which computes is meant. */
static void count_spin(struct tracee *tracee) {
  int64_t next = page_now() + LONGEST_TURN;
  if (is_real_time() || !tracee->is_go) return;
  if (tracee->spun_at != page_now() || !tracee->spinning_since) {
    tracee->spun_at = page_now();
    tracee->spinning_since = machine_now();
  }
  if (machine_now() - tracee->spinning_since < LONGEST_SPIN) return;
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int64_t deadline = atomic_load(&slot->deadline);
    if (slot != tracee->slot && atomic_load(&slot->tid) && deadline != NEVER && !atomic_load(&slot->is_real) && deadline < next)
      next = deadline;
  }
  tracee->spinning_since = machine_now() - LONGEST_SPIN + LONGEST_SPIN / 20;
  if (next > page_now()) atomic_store(&page->now, next);
  tracee->spun_at = page_now();
}

/* What the kernel gave besides the time stays. */
static void tell_time(struct tracee *tracee, registers *regs) {
  int64_t instant = page->monotonic + page_now();
  long seconds = instant / SECOND;
  if (tracee->entry.orig_rax == SYS_sysinfo && !regs->rax) put_memory(tracee->tid, tracee->entry.rdi, &seconds, sizeof seconds);
  if (tracee->entry.orig_rax != SYS_times || (long)regs->rax < 0) return;
  regs->rax = (unsigned long)(instant / (SECOND / sysconf(_SC_CLK_TCK)));
  ptrace(PTRACE_SETREGS, tracee->tid, 0, regs);
}

void stop_at_end(struct tracee *tracee) {
  registers regs, *entry = &tracee->entry;
  if (!tracee->is_waiting || ptrace(PTRACE_GETREGS, tracee->tid, 0, &regs)) {
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  tracee->is_waiting = 0;
  if (entry->orig_rax == SYS_socket) {
    send_at_once(tracee, &regs);
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  if (entry->orig_rax == SYS_times || entry->orig_rax == SYS_sysinfo) {
    tell_time(tracee, &regs);
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  if (entry->orig_rax == SYS_timer_create || entry->orig_rax == SYS_accept || entry->orig_rax == SYS_accept4) {
    if (entry->orig_rax == SYS_timer_create) note_created_timer(tracee, &regs);
    else if ((long)regs.rax >= 0) atomic_fetch_add(&page->connections, 1);
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  long result = (long)regs.rax;
  int is_interrupted = result == -EINTR || result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
                       result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK;
  /* With a limit it would have been a restart block; without one the kernel begins it again after a handler. */
  int is_futex = entry->orig_rax == SYS_futex && result == -ERESTARTSYS;
  int is_over = is_interrupted && tracee->slot && atomic_load(&tracee->slot->granted);
  if (entry->orig_rax == SYS_nanosleep) {
    if (is_over) tracee->spinning_since = 0;
    else if (!is_interrupted) count_spin(tracee);
  }
  disarm(tracee);
  registers restored = *entry;
  restored.rax = regs.rax;
  restored.rcx = regs.rcx;
  restored.r11 = regs.r11;
  if (is_over && tracee->is_stepping) {
    ptrace(PTRACE_SETREGS, tracee->tid, 0, &restored);
    read_clock(tracee, &restored);
    return;
  }
  if (tracee->is_settling) { /* now the call itself */
    tracee->is_settling = 0;
    tracee->has_settled = is_over;
    restored.rip -= 2;
    restored.rax = entry->orig_rax;
    restored.orig_rax = (unsigned long)-1;
    ptrace(PTRACE_SETREGS, tracee->tid, 0, &restored);
    resume(tracee, PTRACE_CONT, 0);
    return;
  }
  if (is_over) restored.rax = (unsigned long)expired(tracee);
  /* Without a handler the kernel begins the call again, as the program made it: then it stops at it as before. */
  else if (result == -ERESTART_RESTARTBLOCK || result == -EINTR || is_futex) restored.rax = (unsigned long)-ERESTARTNOHAND;
  tracee->can_resume = is_interrupted && !is_over;
  leave_rest(tracee, (long)restored.rax);
  ptrace(PTRACE_SETREGS, tracee->tid, 0, &restored);
  resume(tracee, PTRACE_CONT, 0);
}

/* Whether the process has a handler for a signal. */
static int handles(int pid, int signal) {
  char text[4096], *line;
  int file = open_file("/proc/%d/status", pid, 0);
  uint64_t caught = read_file(file, text, sizeof text) && (line = strstr(text, "\nSigCgt:")) ? strtoull(line + 8, NULL, 16) : 0;
  if (file >= 0) close(file);
  return caught >> (signal - 1) & 1;
}

void stop_for_signal(struct tracee *tracee, int signal) {
  if (tracee->can_resume && handles(tracee->pid, signal)) tracee->can_resume = 0;
  resume(tracee, PTRACE_CONT, signal);
}

#endif
