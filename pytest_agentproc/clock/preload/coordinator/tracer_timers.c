/* Timers of traced processes: timerfds, setitimer, alarm and timer_create. Their slots are the coordinator's; the
 * kernel's own stay unarmed. */
#define _GNU_SOURCE
#include "tracer.h"

#if defined(__x86_64__)

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EARLY 1 /* a timer whose instant is past: the first instant that is not NEVER */
#define ALARM (-1)

/* Timers of traced processes. */
struct timer {
  int pid;
  long id;            /* of timer_create; ALARM: that of setitimer; timerfd: -2 - descriptor */
  int file;           /* timerfd: the same file, here */
  int is_dated, signal, thread;
  uint64_t value, ends;
  struct slot *slot;
};
static struct timer *timers;
static int timer_count, timer_room;

/* Timers: their slots are the coordinator's; the kernel's own stay unarmed. */

static struct timer *timer_of(int pid, long id) {
  for (int i = 0; i < timer_count; i++)
    if (timers[i].pid == pid && timers[i].id == id) return &timers[i];
  return NULL;
}

static struct timer *know_timer(int pid, long id, int kind) {
  struct timer *timer = timer_of(pid, id);
  if (timer) return timer;
  timers = grown_list(timers, timer_count, &timer_room, sizeof *timers);
  timer = &timers[timer_count++];
  *timer = (struct timer){.pid = pid, .id = id, .file = -1, .signal = SIGALRM, .slot = NULL};
  for (int i = 0, top = slots_count(); id == ALARM && i < top; i++) /* an earlier image, with the shim, has armed it */
    if (atomic_load(&page->slots[i].tid) == pid && atomic_load(&page->slots[i].pid) == pid && page->slots[i].is_inherited)
      timer->slot = &page->slots[i];
  if (!timer->slot) timer->slot = demand_slot(pid, pid, kind);
  timer->slot->is_inherited = id == ALARM;
  return timer;
}

static void forget_timer(struct timer *timer) {
  slots_free(timer->slot, timer->pid);
  if (timer->file >= 0) close(timer->file);
  *timer = timers[--timer_count];
}

void forget_timers(int pid, int keeps_inherited) {
  for (int i = 0; i < timer_count;)
    if (timers[i].pid == pid && !(keeps_inherited && timers[i].id <= ALARM)) forget_timer(&timers[i]);
    else i++;
}

void forget_timerfd(int pid, int descriptor) {
  struct timer *timer = timer_of(pid, -2 - descriptor);
  if (timer) forget_timer(timer);
}

static struct itimerspec setting(const struct timer *timer) {
  if (!timer) return (struct itimerspec){0};
  int64_t deadline = atomic_load(&timer->slot->deadline);
  int64_t left = deadline - (atomic_load(&timer->slot->is_real) ? machine_now() : page_now());
  return (struct itimerspec){time_of(atomic_load(&timer->slot->interval)),
                             time_of(deadline == NEVER ? 0 : left > 0 ? left : 1)};
}

static void set_timer(struct timer *timer, const struct itimerspec *new, int is_absolute, int64_t from) {
  struct slot *slot = timer->slot;
  int64_t value = ns_of(new->it_value), deadline = NEVER, offset = atomic_load(&page->offset);
  if (value) deadline = is_absolute ? value - from : after(value);
  if (value && deadline <= 0) deadline = EARLY;
  if (offset != VIRTUAL && value) deadline -= offset;
  atomic_store(&slot->deadline, NEVER);
  atomic_store(&slot->interval, ns_of(new->it_interval));
  atomic_store(&slot->is_real, offset != VIRTUAL);
  atomic_store(&slot->armed, page_now());
  slot->signal = timer->signal;
  slot->thread = timer->thread;
  slot->value = timer->value;
  slot->is_dated = timer->is_dated;
  atomic_store(&slot->deadline, deadline);
}

static long set_timerfd(struct tracee *tracee, registers *regs) {
  static const struct itimerspec off;
  struct itimerspec new, old;
  char text[256], *line;
  int descriptor = (int)regs->rdi, file;
  if (!get_memory(tracee->tid, regs->rdx, &new, sizeof new)) return -EFAULT;
  file = copy_of(tracee->pid, descriptor);
  if (file < 0 && errno == EBADF) return -EBADF;
  if (file < 0 && (file = borrow_file(tracee, regs, descriptor)) < 0) {
    say("a timerfd cannot be reached: its program waits for ever");
    return -EPERM;
  }
  if (timerfd_settime(file, 0, &off, NULL)) {
    long error = -errno;
    close(file);
    return error;
  }
  struct timer *timer = know_timer(tracee->pid, -2 - descriptor, TRACED_FILE);
  old = setting(timer);
  if (timer->file >= 0) close(timer->file);
  timer->file = file;
  int info = open_file("/proc/self/fdinfo/%d", file, 0);
  timer->is_dated = read_file(info, text, sizeof text) && (line = strstr(text, "clockid:")) && is_dated(atoi(line + 8));
  if (info >= 0) close(info);
  set_timer(timer, &new, regs->rsi & TFD_TIMER_ABSTIME, base_of(timer->is_dated));
  if (regs->r10 && !put_memory(tracee->tid, regs->r10, &old, sizeof old)) return -EFAULT;
  return 0;
}

static long set_alarm(struct tracee *tracee, registers *regs) {
  struct { struct timeval interval, value; } given = {{0, 0}, {0, 0}}, was;
  struct timer *timer = know_timer(tracee->pid, ALARM, TIMER);
  struct itimerspec old = setting(timer), new;
  was.interval = (struct timeval){old.it_interval.tv_sec, old.it_interval.tv_nsec / 1000};
  was.value = (struct timeval){old.it_value.tv_sec, old.it_value.tv_nsec / 1000};
  if (regs->orig_rax == SYS_getitimer) return put_memory(tracee->tid, regs->rsi, &was, sizeof was) ? 0 : -EFAULT;
  if (regs->orig_rax == SYS_alarm) given.value.tv_sec = (unsigned)regs->rdi;
  else if (regs->rsi && !get_memory(tracee->tid, regs->rsi, &given, sizeof given)) return -EFAULT;
  new.it_interval = (struct timespec){given.interval.tv_sec, given.interval.tv_usec * 1000};
  new.it_value = (struct timespec){given.value.tv_sec, given.value.tv_usec * 1000};
  if (!timer) timer = know_timer(tracee->pid, ALARM, TIMER);
  set_timer(timer, &new, 0, 0);
  if (regs->orig_rax == SYS_alarm) return was.value.tv_sec + (was.value.tv_usec > 0);
  if (regs->rdx && !put_memory(tracee->tid, regs->rdx, &was, sizeof was)) return -EFAULT;
  return 0;
}

void serve_timer(struct tracee *tracee, registers *regs) {
  struct itimerspec new, old;
  struct timer *timer;
  switch (regs->orig_rax) {
  case SYS_timerfd_settime: answer(tracee, regs, set_timerfd(tracee, regs)); return;
  case SYS_timerfd_gettime:
    if (!(timer = timer_of(tracee->pid, -2 - (int)regs->rdi))) break;
    old = setting(timer);
    answer(tracee, regs, put_memory(tracee->tid, regs->rsi, &old, sizeof old) ? 0 : -EFAULT);
    return;
  case SYS_setitimer:
  case SYS_getitimer:
    if (regs->rdi != 0) break; /* not ITIMER_REAL */
    answer(tracee, regs, set_alarm(tracee, regs));
    return;
  case SYS_alarm: answer(tracee, regs, set_alarm(tracee, regs)); return;
  case SYS_timer_create: /* the kernel makes it, and gives its number at the end of the call */
    if (!is_virtual((int)regs->rdi)) break;
    tracee->entry = *regs;
    tracee->is_waiting = 1;
    resume(tracee, PTRACE_SYSCALL, 0);
    return;
  case SYS_timer_settime:
    if (!(timer = timer_of(tracee->pid, (int)regs->rdi))) break;
    if (!get_memory(tracee->tid, regs->rdx, &new, sizeof new)) break;
    old = setting(timer);
    set_timer(timer, &new, regs->rsi & TIMER_ABSTIME, base_of(timer->is_dated));
    if (regs->r10) put_memory(tracee->tid, regs->r10, &old, sizeof old);
    answer(tracee, regs, 0);
    return;
  case SYS_timer_gettime:
    if (!(timer = timer_of(tracee->pid, (int)regs->rdi))) break;
    old = setting(timer);
    answer(tracee, regs, put_memory(tracee->tid, regs->rsi, &old, sizeof old) ? 0 : -EFAULT);
    return;
  case SYS_timer_delete:
    if ((timer = timer_of(tracee->pid, (int)regs->rdi))) forget_timer(timer);
    break;
  }
  resume(tracee, PTRACE_CONT, 0);
}

void note_created_timer(struct tracee *tracee, registers *regs) {
  struct sigevent event;
  int id;
  if (regs->rax || !get_memory(tracee->tid, tracee->entry.rdx, &id, sizeof id)) return;
  struct timer *timer = know_timer(tracee->pid, id, TIMER);
  timer->is_dated = is_dated((int)tracee->entry.rdi);
  timer->value = (uint64_t)id;
  if (!get_memory(tracee->tid, tracee->entry.rsi, &event, sizeof event)) return;
  timer->value = (uint64_t)event.sigev_value.sival_ptr;
  timer->signal = event.sigev_notify == SIGEV_NONE ? 0 : event.sigev_signo;
  if (event.sigev_notify == SIGEV_THREAD_ID) timer->thread = event._sigev_un._tid;
}

static int is_timerfd(int pid, const char *descriptor) {
  char path[300], target[64] = "";
  snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, descriptor);
  return readlink(path, target, sizeof target - 1) > 0 && !strcmp(target, "anon_inode:[timerfd]");
}

static int has_timerfd(int pid) {
  char path[64];
  int found = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && !found && (entry = readdir(folder));) found = is_timerfd(pid, entry->d_name);
  if (folder) closedir(folder);
  return found;
}

/* Its end is seen by nobody if its descriptor was closed, and no process below has a timerfd that may be a copy of it. */
static int is_closed(const struct timer *timer) {
  char number[24];
  snprintf(number, sizeof number, "%ld", -2 - timer->id);
  if (is_timerfd(timer->pid, number)) return 0;
  for (int i = 0; i < process_count; i++)
    if (has_timerfd(processes[i].pid)) return 0;
  return 1;
}

/* The end of a timerfd is readable before this returns. */
int tracer_end_timer(struct slot *slot) {
  for (int i = 0; i < timer_count; i++) {
    struct timer *timer = &timers[i];
    if (timer->slot != slot || timer->file < 0) continue;
    if (is_closed(timer)) {
      forget_timer(timer);
      return 1;
    }
    end_timerfd(timer->file, &timer->ends);
    return 1;
  }
  return 0;
}

#endif
