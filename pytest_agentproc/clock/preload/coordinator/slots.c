/* Lets waiters go, and moves time to their deadlines; when that is allowed is decided in coordinator.c.
 *
 * On ties the deepest process is first (an agent before its supervisor), then the lower pid, then the wait that began
 * first. */
#define _GNU_SOURCE
#include "coordinator.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PATIENCE 3        /* so often a waiter is woken again before the next one has its turn */
#define LONGEST_WAIT (SECOND / 10)

/* When a slot was woken, and how often, since it was granted. */
static struct { uint32_t serial; int tries; int64_t woken; } grants[SLOTS];

/* What the page says of how many slots there are is no proof that there is room for them. */
int slots_count(void) {
  int top = atomic_load(&page->top);
  return top < 0 ? 0 : top < SLOTS ? top : SLOTS;
}

/* Grants. */

static struct slot *helper_of(int pid) {
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    if (atomic_load(&slot->pid) == pid && atomic_load(&slot->kind) == HELPER) return slot;
  }
  return NULL;
}

void end_timerfd(int file, uint64_t *ends) {
  static const struct itimerspec soon = {{0, 0}, {0, 1}};
  struct pollfd seen = {.fd = file, .events = POLLIN};
  *ends = poll(&seen, 1, 0) > 0 ? *ends + 1 : 1; /* a reader is given the number of all that nobody has read */
  if (!ioctl(file, SET_TICKS, ends)) return;
  timerfd_settime(file, 0, &soon, NULL);
  poll(&seen, 1, 100);
}

/* A child of vfork has no helper: it shares its parent's memory, and must start no thread there. */
static void end_without_helper(struct slot *slot) {
  int pid = atomic_load(&slot->pid);
  int file = atomic_load(&slot->kind) == TIMERFD && is_below(pid) && is_for_all_to_signal(pid) ? copy_of(pid, slot->descriptor) : -1;
  if (file < 0) return;
  end_timerfd(file, &slot->value);
  close(file);
}

static void ask_helper(struct slot *slot) {
  struct slot *helper = helper_of(atomic_load(&slot->pid));
  if (!helper) {
    end_without_helper(slot);
    return;
  }
  atomic_store(&helper->order, (uint32_t)(slot - page->slots) + 1);
  syscall(SYS_futex, &helper->order, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* While all are blocked, the look at the tree has just proven the process, the thread and the page that it carries. A
 * longer look at each step would take a third of the step. */
static void wake_thread(int pid, int tid) {
  struct process *process = tree_process(pid);
  struct thread *thread = tree_thread(tid);
  if (tree_is_seen && process && process->carries == 1 && thread && thread->pid == pid)
    syscall(SYS_tgkill, pid, tid, WAKE_SIGNAL);
  else wake_below(pid, tid);
}

static void wake(struct slot *slot) {
  int index = (int)(slot - page->slots);
  grants[index].tries++;
  grants[index].woken = machine_now();
  if (atomic_load(&slot->kind) == CONDITION) ask_helper(slot);
  else if (atomic_load(&slot->kind) == TRACED) tracer_wake(slot);
  else wake_thread(atomic_load(&slot->pid), atomic_load(&slot->tid));
}

static void send_signal(const struct slot *slot) {
  static int is_told;
  int pid = atomic_load(&slot->pid), thread = slot->thread;
  siginfo_t info = {.si_signo = slot->signal, .si_code = SI_TIMER};
  info.si_value.sival_ptr = (void *)slot->value;
  if (!info.si_signo || !is_below(pid)) return;
  tree_count_waking();
  if (is_for_all_to_signal(pid)) signal_below(pid, thread, info.si_signo, &info);
  else if (!is_told++) say("a timer of process %d was dropped: a process that may not signal it shares its time", pid);
}

static void end_timer(struct slot *slot) {
  int64_t deadline = atomic_load(&slot->deadline), interval = atomic_load(&slot->interval);
  atomic_store(&slot->armed, deadline);
  atomic_store(&slot->deadline, interval > 0 && deadline + interval > deadline ? deadline + interval : NEVER);
  if (tracer_end_timer(slot)) return;
  if (atomic_load(&slot->kind) == TIMERFD || atomic_load(&slot->notify)) ask_helper(slot);
  else send_signal(slot);
}

static int is_timer(const struct slot *slot) {
  int kind = atomic_load(&slot->kind);
  return kind == TIMER || kind == TIMERFD || kind == TRACED_FILE;
}

/* How a program looks again and again is judged by these: one that polls acts late by its period. */
static void note_wake(const struct slot *slot, int64_t deadline) {
  struct wake new = {atomic_load(&slot->pid), atomic_load(&slot->tid), atomic_load(&slot->armed), deadline, 1};
  int count = atomic_load(&page->wake_count);
  if (count < 0 || count > WAKES) return;
  struct wake *last = count ? &page->wakes[count - 1] : NULL;
  if (deadline <= new.armed) return; /* it let the others go first, and slept through nothing */
  if (last && last->tid == new.tid && last->at == new.armed && last->at - last->armed == new.at - new.armed) {
    last->armed = new.armed;
    last->at = new.at;
    last->times++;
  } else if (count < WAKES) {
    page->wakes[count] = new;
    atomic_store(&page->wake_count, count + 1);
  }
}

void slots_grant(struct slot *slot) {
  int index = (int)(slot - page->slots);
  int64_t deadline = atomic_load(&slot->deadline);
  if (!atomic_load(&slot->is_real)) {
    note_wake(slot, deadline);
    if (deadline > atomic_load(&page->now)) atomic_store(&page->now, deadline);
  }
  if (is_timer(slot)) {
    end_timer(slot);
    return;
  }
  grants[index].serial = atomic_load(&slot->serial);
  grants[index].tries = 0;
  atomic_store(&slot->granted, 1);
  wake(slot);
}

/* Whether a waiter that was let go has not noticed yet. A wake-up can come just before the call that it should end; and
 * a waiter may be held up by another thread's lock. So it is woken again, less and less often; after some tries the
 * others have their turns. */
static int is_pending(struct slot *slot) {
  int index = (int)(slot - page->slots);
  if (is_timer(slot) || !atomic_load(&slot->granted)) return 0;
  int tries = grants[index].tries;
  if (machine_now() - grants[index].woken > SECOND / 4000 << (tries < 6 ? tries : 6)) wake(slot);
  return tries <= PATIENCE;
}

/* Slots. */

static int is_eligible(const struct slot *slot) {
  struct process *process = tree_process(atomic_load(&slot->pid));
  if (is_timer(slot)) return process && process->is_alive;
  struct thread *thread = process ? tree_thread(atomic_load(&slot->tid)) : NULL;
  return thread && !is_dead(thread->state) && !is_stopped(thread->state) && !atomic_load(&slot->granted);
}

void slots_free(struct slot *slot, int tid) {
  if (slot && atomic_load(&slot->tid) == tid) page_free(slot);
}

void slots_free_dead(void) {
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int tid = atomic_load(&slot->tid);
    if (!tid || (is_timer(slot) ? tree_process(atomic_load(&slot->pid)) != NULL : tree_thread(tid) != NULL)) continue;
    page_free(slot);
  }
}

int slots_have_condition(int tid, uint64_t address) {
  for (int i = 0, top = slots_count(); i < top && i < NOTED_SLOTS; i++) {
    struct slot *slot = &page->slots[i];
    uint64_t condition = (uint64_t)atomic_load(&slot->condition);
    if (atomic_load(&slot->tid) == tid && condition && address - condition < sizeof(pthread_cond_t)) return 1;
  }
  return 0;
}

int slots_have_real_wait(void) {
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    if (atomic_load(&slot->is_real) && atomic_load(&slot->deadline) != NEVER && !is_timer(slot) && is_eligible(slot))
      return 1;
  }
  return 0;
}

/* What orders the waiters, read once: a process below may write another number between two looks. */
struct turn { int64_t deadline; int depth, pid; uint32_t serial; };

static struct turn turn_of(const struct slot *slot) {
  int pid = atomic_load(&slot->pid);
  struct process *process = tree_process(pid);
  return (struct turn){atomic_load(&slot->deadline), process ? process->depth : 0, pid, atomic_load(&slot->serial)};
}

static int is_before(const struct turn *one, const struct turn *other) {
  if (one->deadline != other->deadline) return one->deadline < other->deadline;
  if (one->depth != other->depth) return one->depth > other->depth;
  if (one->pid != other->pid) return one->pid < other->pid;
  return (int32_t)(one->serial - other->serial) < 0;
}

struct slot *slots_next(int *is_busy) {
  struct slot *next = NULL;
  struct turn first = {0};
  *is_busy = 0;
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    if (!atomic_load(&slot->tid) || atomic_load(&slot->deadline) == NEVER) continue;
    if (is_pending(slot)) {
      *is_busy = 1;
    } else if (!atomic_load(&slot->is_real) && is_eligible(slot)) {
      struct turn turn = turn_of(slot);
      if (next && !is_before(&turn, &first)) continue;
      first = turn;
      next = slot;
    }
  }
  return next;
}

/* Real time. */

/* Nobody walks the tree meanwhile: a slot is free once the kernel knows its thread no more. */
void slots_free_gone(void) {
  static int64_t looked;
  if (machine_now() - looked < SECOND) return;
  looked = machine_now();
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int tid = atomic_load(&slot->tid), pid = atomic_load(&slot->pid);
    if (!tid || pid <= 0) continue;
    long result = is_timer(slot) ? kill(pid, 0) : syscall(SYS_tgkill, pid, tid, 0);
    if (result && errno == ESRCH) page_free(slot);
  }
}

/* The nanoseconds until a wait is over that ends by the machine's clock. */
static int64_t left_of(struct slot *slot, int64_t now, int64_t offset) {
  int64_t deadline = atomic_load(&slot->deadline);
  int is_real = atomic_load(&slot->is_real), tries = grants[slot - page->slots].tries;
  if (!atomic_load(&slot->tid) || deadline == NEVER || (!is_real && offset == VIRTUAL)) return LONGEST_WAIT;
  if (is_timer(slot) || !atomic_load(&slot->granted)) return deadline - now - (is_real ? 0 : offset);
  is_pending(slot);
  return SECOND / 4000 << (tries < 6 ? tries : 6);
}

int64_t slots_serve_real_time(void) {
  int64_t now = machine_now(), offset = atomic_load(&page->offset), next = LONGEST_WAIT;
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int64_t left = left_of(slot, now, offset);
    if (left <= 0) slots_grant(slot);
    left = left > 0 ? left : SECOND / 4000;
    if (left < next) next = left;
  }
  return next;
}

/* Nobody walks the tree while time stands still: so the kernel is asked for each of the few that hold it. */
int slots_hold_time(void) {
  int holds = 0;
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int own = atomic_load(&slot->holds);
    if (own && !is_thread_dead(atomic_load(&slot->pid), atomic_load(&slot->tid))) holds += own;
  }
  return holds > 0;
}

