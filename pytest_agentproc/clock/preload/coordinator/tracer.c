/* Programs that the shim cannot reach (Go, static, musl, Bun) follow the page, too: the coordinator is their tracer.
 *
 * A filter (launch.c) stops a thread at each call about time. A reading is answered here, and the kernel does not see
 * it. Of a wait the limit is taken out of the registers, so that it waits without one, and its deadline is a slot like
 * any other; the thread stops again when the call ends, for whatever reason. At its instant the call is interrupted,
 * and its result becomes that of a wait whose limit is over.
 *
 * All that a traced program starts is traced, too: the filter cannot be taken off. Programs that carry the shim (PASSED)
 * serve themselves; what stops them goes on unchanged.
 *
 * The tracer and the coordinator are one thread: so no stop is being served while the tree is looked at, and whoever is
 * still in a stop (state t) is about to move. */
#define _GNU_SOURCE
#include "tracer.h"
#include "../shared/image.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

#define OPTIONS                                                                                      \
  (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | \
   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)
#define LONGEST_BIRTH (SECOND / 200)
#define MOST_SHIM_LOOKS 20 /* a static program has its name in the environment, and never loads it */
#define MOST_STOPS 100 /* in one round: waits in real time have their turn, too */
#define CODE_OF_64_BITS 0x33 /* in cs; a program of 32 bits has another, and calls that the filter lets pass */

static struct tracee *tracees;
static int tracee_count, tracee_room, tracee_hint;

void *grown_list(void *list, int count, int *room, size_t size) {
  if (count < *room) return list;
  *room = *room ? *room * 2 : 64;
  list = realloc(list, (size_t)*room * size);
  if (!list) give_up("there is no memory for so many traced threads");
  return list;
}

/* Tracees. */

struct tracee *tracee_of(int tid) {
  for (int i = 0; i < tracee_count; i++) {
    int at = (tracee_hint + i) % tracee_count;
    if (tracees[at].tid == tid) return &tracees[tracee_hint = at];
  }
  return NULL;
}

int group_of(int tid) {
  char text[512], *line;
  int file = open_file("/proc/%d/status", tid, 0);
  int pid = read_file(file, text, sizeof text) && (line = strstr(text, "\nTgid:")) ? atoi(line + 6) : tid;
  if (file >= 0) close(file);
  return pid;
}

static struct tracee *know(int tid) {
  struct tracee *tracee = tracee_of(tid);
  if (tracee) return tracee;
  tracees = grown_list(tracees, tracee_count, &tracee_room, sizeof *tracees);
  tracee = &tracees[tracee_count++];
  *tracee = (struct tracee){.tid = tid, .pid = group_of(tid)};
  return tracee;
}

struct slot *demand_slot(int tid, int pid, int kind) {
  struct slot *slot = page_claim(page, tid, pid, kind);
  if (!slot) give_up("more than %d threads and timers: virtual time has no place for them", SLOTS);
  return slot;
}

int tracer_has(int pid) {
  for (int i = 0; i < tracee_count; i++)
    if (tracees[i].pid == pid) return tracees[i].mode == OWNED;
  return 0;
}

int tracer_holds(int tid) {
  struct tracee *tracee = tracee_of(tid);
  return tracee && !tracee->is_listening;
}

void forget_timers(int pid, int keeps_inherited);

static void forget(int tid) {
  struct tracee *tracee = tracee_of(tid);
  if (!tracee) return;
  slots_free(tracee->slot, tid);
  if (tracee->pid == tid) forget_timers(tid, 0);
  *tracee = tracees[--tracee_count];
}

void resume(struct tracee *tracee, int request, int signal) {
  tracee->is_listening = request == PTRACE_LISTEN;
  ptrace(request, tracee->tid, 0, (void *)(long)signal);
}

/* The tracee's memory. */

int get_memory(int tid, unsigned long place, void *into, size_t size) {
  struct iovec here = {into, size}, there = {(void *)place, size};
  return place && process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

int put_memory(int tid, unsigned long place, const void *from, size_t size) {
  struct iovec here = {(void *)from, size}, there = {(void *)place, size};
  return place && process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Stops. */

void tracer_wake(struct slot *slot) { ptrace(PTRACE_INTERRUPT, atomic_load(&slot->tid), 0, 0); }

static int carries_shim(int pid) {
  static char text[1 << 18];
  int file = open_file("/proc/%d/environ", pid, 0), has_library = 0, has_page = 0;
  ssize_t length = file < 0 ? 0 : pread(file, text, sizeof text - 1, 0);
  if (file >= 0) close(file);
  for (char *at = text; length > 0 && at < text + length; at += strlen(at) + 1) {
    if (!strncmp(at, "LD_PRELOAD=", 11) && strstr(at, "/shim.so")) has_library = 1;
    if (!strncmp(at, PAGE_VARIABLE "=", strlen(PAGE_VARIABLE) + 1)) has_page = 1;
  }
  return has_library && has_page;
}

/* Where its code lies. */
static void find_shim(struct tracee *tracee) {
  char path[64], line[4400];
  snprintf(path, sizeof path, "/proc/%d/maps", tracee->pid);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file))
    if (strstr(line, " r-xp ") && strstr(line, "/shim.so"))
      sscanf(line, "%lx-%lx", &tracee->shim_begin, &tracee->shim_end);
  if (file) fclose(file);
}

int is_call_of_shim(struct tracee *tracee, unsigned long place) {
  if (!tracee->carries_shim) return 0;
  if (!tracee->shim_end && tracee->shim_looks++ < MOST_SHIM_LOOKS) find_shim(tracee);
  return place >= tracee->shim_begin && place < tracee->shim_end;
}

static void stop_at_exec(struct tracee *tracee) {
  char path[PATH_MAX];
  unsigned long former = 0;
  int pid = tracee->tid;
  ptrace(PTRACE_GETEVENTMSG, pid, 0, &former);
  for (int i = 0; i < tracee_count;) /* the other threads are gone */
    if (tracees[i].pid == pid && tracees[i].tid != pid) {
      slots_free(tracees[i].slot, tracees[i].tid);
      tracees[i] = tracees[--tracee_count];
    } else {
      i++;
    }
  tracee = know(pid);
  slots_free(tracee->slot, pid); /* the next image may have it by now: its shim frees what was this process's */
  tracee->slot = NULL;
  tracee->is_waiting = tracee->can_resume = tracee->is_stepping = tracee->is_settling = tracee->has_settled = 0;
  tracee->readings = tracee->steps = 0;
  forget_timers(pid, 1);
  snprintf(path, sizeof path, "/proc/%d/exe", pid);
  tracee->carries_shim = carries_shim(pid);
  tracee->shim_begin = tracee->shim_end = 0;
  tracee->shim_looks = 0;
  tracee->mode = is_beyond_shim(path) || !tracee->carries_shim ? OWNED : PASSED;
  registers regs;
  if (!ptrace(PTRACE_GETREGS, pid, 0, &regs) && regs.cs != CODE_OF_64_BITS) tracee->mode = PASSED;
  tracee->is_go = is_go(path);
  tracee->area = tracee->mode == OWNED ? give_clock(pid) : 0;
  if (tracee->mode == OWNED && !tracee->area) hide_vdso(pid);
  resume(tracee, PTRACE_CONT, 0);
}

/* A new thread or process stops, and so does the one that began it, in either order. */
static void begin(struct tracee *tracee, const struct tracee *parent) {
  tracee->mode = parent->mode;
  tracee->is_go = parent->is_go;
  tracee->area = parent->area;
  tracee->carries_shim = parent->carries_shim;
  tracee->shim_begin = parent->shim_begin;
  tracee->shim_end = parent->shim_end;
  if (tracee->has_stopped) resume(tracee, PTRACE_CONT, 0);
}

static void stop_at_birth(struct tracee *tracee) {
  unsigned long tid = 0;
  int parent = tracee->tid;
  if (!ptrace(PTRACE_GETEVENTMSG, parent, 0, &tid) && tid) {
    struct tracee *child = know((int)tid);
    tracee = tracee_of(parent); /* the list may lie elsewhere now */
    if (child->mode == UNKNOWN) begin(child, tracee);
  }
  resume(tracee_of(parent), PTRACE_CONT, 0);
}

static void stop_at_event(struct tracee *tracee, int status) {
  int signal = WSTOPSIG(status);
  if (!tracee->has_stopped) {
    tracee->has_stopped = 1;
    if (tracee->mode == UNKNOWN) return; /* until the one that began it says what it is */
  }
  if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) resume(tracee, PTRACE_LISTEN, 0);
  else resume(tracee, PTRACE_CONT, 0);
}

static void serve(int tid, int status) {
  struct tracee *tracee = know(tid);
  tracee->is_listening = 0;
  switch (status >> 16) {
  case PTRACE_EVENT_SECCOMP: stop_at_call(tracee); break;
  case PTRACE_EVENT_EXEC: stop_at_exec(tracee); break;
  case PTRACE_EVENT_CLONE:
  case PTRACE_EVENT_FORK:
  case PTRACE_EVENT_VFORK: stop_at_birth(tracee); break;
  case PTRACE_EVENT_STOP: stop_at_event(tracee, status); break;
  default:
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) stop_at_end(tracee);
    else if (status >> 16) resume(tracee, PTRACE_CONT, 0);
    else stop_for_signal(tracee, WSTOPSIG(status));
  }
}

/* One whose parent was killed before it could say what it began. */
static void begin_orphans(void) {
  static int64_t waiting_since;
  int64_t time = machine_now();
  int are_any = 0;
  for (int i = 0; i < tracee_count; i++) are_any |= tracees[i].mode == UNKNOWN && tracees[i].has_stopped;
  if (!are_any) waiting_since = 0;
  else if (!waiting_since) waiting_since = time;
  if (!are_any || time - waiting_since < LONGEST_BIRTH) return;
  for (int i = 0; i < tracee_count; i++) {
    struct tracee *tracee = &tracees[i];
    char path[64];
    if (tracee->mode != UNKNOWN || !tracee->has_stopped) continue;
    snprintf(path, sizeof path, "/proc/%d/exe", tracee->pid);
    tracee->carries_shim = carries_shim(tracee->pid);
    tracee->mode = is_beyond_shim(path) || !tracee->carries_shim ? OWNED : PASSED;
    tracee->is_go = is_go(path);
    resume(tracee, PTRACE_CONT, 0);
  }
}

/* A container's profile, Yama or another tracer forbids it. Where the machine does, nobody asks again. */
static void refuse_to_trace(int error) {
  char text[16] = "";
  int file = open_file("/proc/sys/kernel/yama/ptrace_scope", 0, 0), is_known = read_file(file, text, sizeof text);
  if (file >= 0) close(file);
  say("a program that makes its own system calls cannot be traced (%s%s): its time is the machine's", strerror(error),
      is_known && atoi(text) > 1 ? "; kernel.yama.ptrace_scope is above 1" : "");
}

/* Any process below can write a slot that asks for another one, which may have more rights than the writer. */
static int is_launcher(int pid) {
  char path[64];
  struct stat own, other;
  snprintf(path, sizeof path, "/proc/%d/exe", pid);
  return !stat("/proc/self/exe", &own) && !stat(path, &other) && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* Who asks to be traced waits for its order. */
static int serve_asks(void) {
  static int served;
  int asks = atomic_load(&page->asks);
  if (asks == served) return 0;
  for (int i = 0, top = slots_count(); i < top; i++) {
    struct slot *slot = &page->slots[i];
    int pid = atomic_load(&slot->pid), order = 1;
    if (atomic_load(&slot->kind) != ASKS || atomic_load(&slot->order) || pid <= 0) continue;
    if (!is_below(pid) || !is_launcher(pid)) order = 2;
    else if (tracee_of(pid)) order = 3;
    else if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS)) {
      order = 2;
      refuse_to_trace(errno);
    } else {
      struct tracee *tracee = know(pid);
      tracee->mode = PASSED;
      tracee->has_stopped = 1;
    }
    atomic_store(&slot->order, (uint32_t)order);
    syscall(SYS_futex, &slot->order, FUTEX_WAKE, 1, NULL, NULL, 0);
  }
  served = asks;
  return 1;
}

int tracer_serve(void (*died)(int pid, int status)) {
  int status, tid, count = serve_asks();
  while (count < MOST_STOPS && (tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
    if (WIFSTOPPED(status)) {
      serve(tid, status);
      int lost = take_lost(&status);
      if (lost) {
        forget(lost);
        died(lost, status);
      }
    } else {
      forget(tid);
      died(tid, status);
    }
    count++;
  }
  begin_orphans();
  if (count) tree_count_waking();
  return count;
}

#else /* other machines have no tracer yet */

int tracer_serve(void (*died)(int pid, int status)) {
  int status, pid, count = 0;
  for (; (pid = waitpid(-1, &status, WNOHANG)) > 0; count++) died(pid, status);
  return count;
}
int tracer_has(int pid) { return (void)pid, 0; }
int tracer_holds(int tid) { return (void)tid, 0; }
void tracer_wake(struct slot *slot) { (void)slot; }
int tracer_end_timer(struct slot *slot) { return (void)slot, 0; }

#endif
