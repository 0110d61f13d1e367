/* Finds processes that count by the machine's clock, and names them. Owns the reasons; moves no time.
 *
 * The shim reaches whatever uses glibc's functions, and the tracer what makes its own system calls (Go, Bun, static and
 * musl programs). Neither reaches setuid and 32-bit programs, one that may not be traced, and a library that makes its
 * own calls in a program that does not. While one of those lives, time passes as on the machine. */
#define _GNU_SOURCE
#include "waits.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* A program that has not mapped the page after so long on a core never will. On a busy machine a start may take seconds,
 * but not of that. */
#define BEGINNING (SECOND / 10)

#define AGAIN (SECOND / 20) /* so often a wait for somebody outside is looked at */

int find_mapping(int pid, const char *text, uint64_t address, char *line, int size) {
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

void name_stranger(struct process *process, int *is_named, const char *reason, ...) {
  char name[32], text[400];
  va_list list;
  if (*is_named) return;
  *is_named = 1;
  name_of(process->pid, name, sizeof name);
  va_start(list, reason);
  vsnprintf(text, sizeof text, reason, list);
  va_end(list);
  say("time passes as on the machine while %s (pid %d) %s", name, process->pid, text);
}

static void name(struct process *process, const char *reason) { name_stranger(process, &process->is_named, "%s", reason); }

static int is_unreachable(struct process *process) {
  if (process->carries == 1 || !process->is_alive) return 0;
  process->carries = carries_page(process->pid);
  return process->carries == 0;
}

/* Not libcurl or libcrypto. Its threads were a file of their own before 2.34. */
static int is_libc(const char *mapping) {
  return strstr(mapping, "/libc.so") || strstr(mapping, "/libc-") || strstr(mapping, "/libpthread");
}

#define UNKNOWN_CALL "waits in a call that virtual time does not know"
enum wait { UNCOUNTED, COUNTED, MOVED };

/* What libc itself waits for, such as an answer of a name server, is over with that wait. A runtime with its own
 * system calls also reads the clock past the shim, so it is a stranger as long as it lives. A process that ended, or
 * began another image, between the two readings has the lines of neither: it once was called a runtime of that kind.
 * The shim itself waits by the machine's clock for a nap only: one began after the coordinator looked for naps. */
static enum wait waits_by_machine(struct thread *thread, struct process *process, const struct call *call) {
  char line[4400];
  if (tracer_has(thread->pid)) return name(process, UNKNOWN_CALL), COUNTED;
  int found = find_mapping(thread->pid, NULL, call->place, line, sizeof line);
  struct call again = read_call(thread);
  if (found < 0 || !is_timed(&again) || again.place != call->place) return MOVED;
  if (found && strstr(line, "/shim.so")) return MOVED;
  if (!found || !is_libc(line)) process->counts_always = 1;
  name(process, process->counts_always ? "lives: a library in it makes system calls of its own" : UNKNOWN_CALL);
  return COUNTED;
}

/* Of a traced thread the tracer has taken all limits, but for the naps of Go and the limit of recvmmsg. */
static int has_kept_limit(const struct thread *thread, const struct call *call) {
  return is_timed(call) && (call->number == SYS_recvmmsg || !tracer_has(thread->pid));
}

/* What a thread waits for is looked at once in each of its runs, and again while it lies outside. */
static enum wait vet(struct thread *thread, struct process *process) {
  char words[300];
  if (is_dead(thread->state)) return UNCOUNTED;
  if (thread->vetted == thread->runs && (!thread->waits_outside || machine_now() - thread->vetted_at < AGAIN))
    return thread->waits_outside ? COUNTED : UNCOUNTED;
  struct call call = read_call(thread);
  if (has_kept_limit(thread, &call)) return waits_by_machine(thread, process, &call);
  thread->vetted = thread->runs;
  thread->vetted_at = machine_now();
  /* A futex that is not private may be woken from another process. */
  thread->waits_for_condition = call.number == SYS_futex && call.a[1] & FUTEX_PRIVATE_FLAG &&
                                slots_have_condition(thread->tid, call.a[0]);
  thread->waits_outside = waits_for_outside(thread, &call, words, sizeof words);
  thread->waits_for_terminal = has_terminal;
  if (thread->waits_outside) name_stranger(process, &process->is_connection_named, "%s", words);
  return thread->waits_outside ? COUNTED : UNCOUNTED;
}

static int has_counting_thread(void) {
  int is_found = 0;
  for (int i = 0; i < thread_count; i++) {
    struct process *process = tree_process(threads[i].pid);
    is_found |= process && vet(&threads[i], process) != UNCOUNTED;
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
    if (tracer_has(process->pid)) continue;
    if (process->counts_always) is_found = 1;
    if (process->carries == 1 || (look != QUIET && !process->is_named && is_beginning(process))) continue;
    if (!is_unreachable(process)) continue;
    name(process, "lives: it is a setuid or 32-bit program, or one that may not be traced, which virtual time cannot reach");
    is_found = 1;
  }
  return (look == QUIET && has_counting_thread()) || is_found;
}
