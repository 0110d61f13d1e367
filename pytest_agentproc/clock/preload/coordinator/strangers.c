/* Finds processes that count by the machine's clock, and names them. Owns the reasons; moves no time.
 *
 * The shim reaches whatever uses glibc's functions, and the tracer what makes its own system calls (Go, Bun, static and
 * musl programs). Neither reaches setuid and 32-bit programs, one that may not be traced, and a library that makes its
 * own calls in a program that does not. While one of those lives, time passes as on the machine. */
#define _GNU_SOURCE
#include "coordinator.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* A program that has not mapped the page after so long on a core never will. On a busy machine a start may take seconds,
 * but not of that. */
#define BEGINNING (SECOND / 10)

/* The line of /proc/PID/maps that holds a text, or that an address lies in: 1 if there is one, -1 if the process has
 * ended, so that it has no lines at all. */
static int find_mapping(int pid, const char *text, uint64_t address, char *line, int size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  FILE *file = fopen(path, "re");
  int found = file || errno != EACCES ? -1 : 0;
  while (file && found != 1 && fgets(line, size, file)) {
    unsigned long begin = 0, end = 0;
    sscanf(line, "%lx-%lx", &begin, &end);
    found = text ? strstr(line, text) != NULL : address >= begin && address < end;
  }
  if (file) fclose(file);
  return found;
}

static int carries_page(int pid) {
  char line[4400];
  return find_mapping(pid, "/memfd:" PAGE_NAME, 0, line, sizeof line);
}

/* A call that the kernel ends by its own clock. */
static int is_timed(long number, const unsigned long *arguments) {
  switch (number) {
#ifdef SYS_epoll_wait
  case SYS_epoll_wait:
#endif
  case SYS_epoll_pwait: return (int)arguments[3] > 0;
#ifdef SYS_epoll_pwait2
  case SYS_epoll_pwait2: return arguments[3] != 0;
#endif
#ifdef SYS_poll
  case SYS_poll: return (int)arguments[2] > 0;
#endif
#ifdef SYS_select
  case SYS_select:
#endif
  case SYS_pselect6:
  case SYS_io_getevents:
  case SYS_io_pgetevents:
  case SYS_mq_timedsend:
  case SYS_mq_timedreceive:
  case SYS_recvmmsg: return arguments[4] != 0;
  case SYS_ppoll:
  case SYS_rt_sigtimedwait: return arguments[2] != 0;
  case SYS_semtimedop: return arguments[3] != 0;
  case SYS_nanosleep:
  case SYS_clock_nanosleep: return 1;
  case SYS_futex: {
    int command = arguments[1] & FUTEX_CMD_MASK;
    return arguments[3] && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI);
  }
  default: return 0;
  }
}

/* What a blocked thread has asked the kernel for; `place` is the address of the code that did. */
struct call {
  long number;
  unsigned long a[6], place;
};

static struct call read_call(const struct thread *thread) {
  char text[256];
  struct call call = {.number = -1};
  unsigned long *a = call.a, stack;
  if (!read_file(thread->call, text, sizeof text) ||
      sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &call.number, a, a + 1, a + 2, a + 3, a + 4, a + 5, &stack,
             &call.place) < 9)
    call.number = -1;
  return call;
}

static void name(struct process *process, const char *reason) {
  char text[32];
  if (process->is_named) return;
  process->is_named = 1;
  name_of(process->pid, text, sizeof text);
  say("time passes as on the machine while %s (pid %d) %s", text, process->pid, reason);
}

static int is_unreachable(struct process *process) {
  if (process->carries == 1 || !process->is_alive) return 0;
  process->carries = carries_page(process->pid);
  return process->carries == 0;
}

/* Not libcurl or libcrypto. Its threads were a file of their own before 2.34. */
static int is_libc(const char *mapping) {
  return strstr(mapping, "/libc.so") || strstr(mapping, "/libc-") || strstr(mapping, "/libpthread");
}

enum wait { UNCOUNTED, COUNTED, MOVED };

/* What libc itself waits for, such as an answer of a name server, is over with that wait. A runtime with its own
 * system calls also reads the clock past the shim, so it is a stranger as long as it lives. A process that ended, or
 * began another image, between the two readings has the lines of neither: it once was called a runtime of that kind.
 * The shim itself waits by the machine's clock for a nap only: one began after the coordinator looked for naps. */
static enum wait waits_by_machine(struct thread *thread, struct process *process) {
  char line[4400];
  if (thread->vetted == thread->runs || is_dead(thread->state)) return UNCOUNTED;
  struct call call = read_call(thread), again;
  if (!is_timed(call.number, call.a)) {
    thread->vetted = thread->runs;
    /* A futex that is not private may be woken from another process. */
    thread->waits_for_condition = call.number == SYS_futex && call.a[1] & FUTEX_PRIVATE_FLAG &&
                                  slots_have_condition(thread->tid, call.a[0]);
    return UNCOUNTED;
  }
  int found = find_mapping(thread->pid, NULL, call.place, line, sizeof line);
  again = read_call(thread);
  if (found < 0 || !is_timed(again.number, again.a) || again.place != call.place) return MOVED;
  if (found && strstr(line, "/shim.so")) return MOVED;
  if (!found || !is_libc(line)) process->counts_always = 1;
  return COUNTED;
}

static int has_counting_thread(void) {
  int is_found = 0;
  for (int i = 0; i < thread_count; i++) {
    struct process *process = tree_process(threads[i].pid);
    enum wait wait = process && !tracer_has(process->pid) ? waits_by_machine(&threads[i], process) : UNCOUNTED;
    if (wait == COUNTED)
      name(process, process->counts_always ? "lives: a library in it makes system calls of its own"
                                           : "waits in a call that virtual time does not know");
    is_found |= wait != UNCOUNTED;
  }
  return is_found;
}

/* Whether an image that has not mapped the page yet may still be on its way there. */
static int is_beginning(struct process *process) {
  char text[96];
  struct thread *thread = tree_thread(process->pid);
  int64_t used = thread && read_file(thread->schedstat, text, sizeof text) ? strtoll(text, NULL, 10) : 0;
  if (process->used < 0) process->used = used;
  return used - process->used < BEGINNING;
}

int has_stranger(enum look look) {
  int is_found = 0;
  for (int i = 0; i < process_count; i++) {
    struct process *process = &processes[i];
    if (tracer_counts_by_machine(process->pid)) {
      name(process, "lives: it limits the reads of a socket (SO_RCVTIMEO, recvmmsg)");
      is_found = 1;
    }
    if (tracer_has(process->pid)) continue;
    if (process->counts_always) is_found = 1;
    if (process->carries == 1 || (look != QUIET && !process->is_named && is_beginning(process))) continue;
    if (!is_unreachable(process)) continue;
    name(process, "lives: it is a setuid or 32-bit program, or one that may not be traced, which virtual time cannot reach");
    is_found = 1;
  }
  return (look == QUIET && has_counting_thread()) || is_found;
}
