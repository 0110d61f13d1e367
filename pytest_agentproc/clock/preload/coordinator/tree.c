/* Walks the tree below the coordinator and decides whether anybody in it moves. Owns the list of threads; moves no time.
 *
 * A thread that sleeps may have been woken a moment ago, so its state alone says little. Therefore a thread is settled
 * first: it is seen blocked and off its core, and its runs are counted. While it has not run again, it is blocked or on
 * its way to a core, and then its state is R. So one pass over all threads, after the last one was settled, is enough:
 * a thread that is still blocked after as many runs was blocked all the time in between.
 *
 * Of Node's eleven threads nine wait for conditions most of the time. Only a signal, or a thread that wakes the waiters
 * of that condition, ends such a wait, and the shims count both in the page: the waker after the deed and before it
 * blocks. So while the count is that of the last pass that saw the thread blocked, it is still blocked. That saves a
 * quarter of a step.
 *
 * A process or thread that is not in the list yet would be missed. The kernel gives each a new pid, and /proc/loadavg
 * shows the last one: the tree is walked again after each new pid, and after each death, which gives children to others.
 * To walk at each look, and to read three files of each thread twice, took three quarters of a step.
 *
 * The state alone can be wrong, too. The kernel's wait4 is in state S while it reaps a child, and in state X an ended
 * thread still has to report the end of its process. On a busy machine the clock then jumped to the next deadline, an
 * hour later, while a program was about to go on or its end was about to be seen. */
#define _GNU_SOURCE
#include "coordinator.h"
#include "../shared/calls.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_FIELD 48 /* of /proc/PID/stat */
#define MOST_TRIES 4       /* of one look */
#define FRONT 2            /* a supervisor and its agent */
#define GONE (-1)          /* the tid of a thread whose files are empty: another one may have its number */

struct thread *threads;
struct process *processes;
int thread_count, process_count, tree_is_seen, tree_mover;
static int thread_room, process_room;
static int thread_hint, process_hint; /* the next to be looked for is mostly the one after the last */
static int round_number;
static int is_ending;         /* the tree is being ended: only its processes are listed */
static unsigned long changes; /* threads that have come or gone */
static int is_complete;       /* no thread has come, gone or died since all were blocked */
static int is_any_gone;       /* a thread of the list is there no more */
static uint64_t own_wakings;  /* reasons to look again that no shim counts */
static int last_settled;      /* the thread that was settled last in this look; 0: there is none */

/* The machine. */

int64_t machine_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

void nap(int64_t ns) {
  struct timespec time = {ns / SECOND, ns % SECOND};
  nanosleep(&time, NULL);
}

int open_file(const char *pattern, int pid, int tid) {
  char path[96];
  snprintf(path, sizeof path, pattern, pid, tid);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && !is_ending)
    give_up("there are too many threads for the limit of open files (ulimit -Hn)");
  return descriptor;
}

int read_file(int descriptor, char *text, int size) {
  ssize_t length = descriptor < 0 ? 0 : pread(descriptor, text, (size_t)size - 1, 0);
  text[length > 0 ? length : 0] = 0;
  return length > 0;
}

void name_of(int pid, char *name, int size) {
  int descriptor = open_file("/proc/%d/comm", pid, 0);
  if (!read_file(descriptor, name, size)) snprintf(name, (size_t)size, "a process");
  if (descriptor >= 0) close(descriptor);
  name[strcspn(name, "\n")] = 0;
}

/* Lists. */

struct process *tree_process(int pid) {
  for (int i = 0; i < process_count; i++) {
    int at = (process_hint + 1 + i) % process_count;
    if (processes[at].pid == pid) return &processes[process_hint = at];
  }
  return NULL;
}

struct thread *tree_thread(int tid) {
  for (int i = 0; i < thread_count; i++) {
    int at = (thread_hint + 1 + i) % thread_count;
    if (threads[at].tid == tid) return &threads[thread_hint = at];
  }
  return NULL;
}

static void *grown(void *list, int count, int *room, size_t size) {
  if (count < *room) return list;
  *room = *room ? *room * 2 : 256;
  list = realloc(list, (size_t)*room * size);
  if (!list) give_up("there is no memory for so many threads");
  return list;
}

static struct process *know_process(int pid) {
  struct process *process = tree_process(pid);
  if (process) return process;
  processes = grown(processes, process_count, &process_room, sizeof *processes);
  processes[process_count] = (struct process){.pid = pid, .is_alive = 1, .carries = -1, .used = -1};
  return &processes[process_count++];
}

/* Since 5.16 `wchan` shows a place only for a thread that is blocked and off its core; before, for one that has been
 * woken, too. */
static int is_place_exact(void) {
  static int exact = -1;
  int major = 0, minor = 0;
  struct utsname kernel;
  if (exact < 0) exact = !uname(&kernel) && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor >= 516;
  return exact;
}

static void forget_files(struct thread *thread) {
  int files[] = {thread->stat, thread->schedstat, thread->call, thread->place};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i] >= 0) close(files[i]);
}

static struct thread *know_thread(int pid, int tid) {
  struct thread *thread = tree_thread(tid);
  if (thread && thread->pid == pid) return thread;
  threads = grown(threads, thread_count, &thread_room, sizeof *threads);
  thread = &threads[thread_count];
  *thread = (struct thread){.pid = pid, .tid = tid, .vetted = UINT64_MAX};
  thread->stat = open_file("/proc/%d/task/%d/stat", pid, tid);
  thread->schedstat = open_file("/proc/%d/task/%d/schedstat", pid, tid);
  thread->call = open_file("/proc/%d/task/%d/syscall", pid, tid);
  thread->place = is_place_exact() ? open_file("/proc/%d/task/%d/wchan", pid, tid) : -1;
  if (thread->stat < 0) { /* it died just now */
    forget_files(thread);
    return NULL;
  }
  changes++;
  thread_count++;
  return thread;
}

/* The walk. */

static int *numbers_of(int descriptor, int *count) {
  int room = 0, *list = NULL;
  char text[4096];
  off_t at = 0;
  ssize_t length;
  *count = 0;
  while ((length = pread(descriptor, text, sizeof text - 1, at)) > 0) {
    text[length] = 0;
    char *last = strrchr(text, ' '); /* every number is followed by one */
    if (!last) break;
    last[0] = 0;
    at += last - text + 1;
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
      list = grown(list, *count, &room, sizeof *list);
      list[(*count)++] = atoi(word);
    }
  }
  return list;
}

static void walk(int pid, int depth);

static void walk_children(int pid, int tid, int depth) {
  int descriptor = open_file("/proc/%d/task/%d/children", pid, tid);
  if (descriptor < 0) return;
  int count, *children = numbers_of(descriptor, &count);
  close(descriptor);
  for (int i = 0; i < count; i++) walk(children[i], depth);
  free(children);
}

static void note_thread(int pid, int tid, int depth) {
  struct thread *thread = know_thread(pid, tid);
  if (!thread) return;
  thread->round = round_number;
  thread->depth = depth;
}

static void walk(int pid, int depth) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *folder = opendir(path);
  if (!folder) return;
  struct process *process = know_process(pid);
  process->round = round_number;
  process->depth = depth;
  for (struct dirent *entry; (entry = readdir(folder));) {
    int tid = atoi(entry->d_name);
    if (tid <= 0) continue;
    if (!is_ending) note_thread(pid, tid, depth);
    walk_children(pid, tid, depth + 1);
  }
  closedir(folder);
}

static void forget_the_gone(void) {
  for (int i = 0; i < thread_count;) {
    if (threads[i].round == round_number) {
      i++;
      continue;
    }
    forget_files(&threads[i]);
    threads[i] = threads[--thread_count];
    changes++;
  }
  for (int i = 0; i < process_count;)
    if (processes[i].round != round_number) processes[i] = processes[--process_count];
    else i++;
}

void tree_count_waking(void) { own_wakings++; }

/* What comes, goes or dies sends signals, or may be a thread that nobody has looked at. */
void tree_walk(void) {
  round_number++;
  tree_count_waking();
  walk_children(getpid(), getpid(), 1);
  forget_the_gone();
}

/* Where there were too many threads for their files, the walks that end them need some. */
void tree_begin_end(void) {
  is_ending = 1;
  for (int i = 0; i < thread_count; i++) forget_files(&threads[i]);
  thread_count = 0;
}

/* The two looks. */

int is_dead(char state) { return state == 'Z' || state == 'X'; }

int is_stopped(char state) { return state == 'T' || state == 't'; }

static uint64_t runs_of(const struct thread *thread) {
  char text[96];
  char *last = read_file(thread->schedstat, text, sizeof text) ? strrchr(text, ' ') : NULL;
  return last ? strtoull(last, NULL, 10) : UINT64_MAX;
}

static char state_in(const char *stat) {
  const char *end = strrchr(stat, ')');
  return end && end[1] ? end[2] : '?';
}

static uint64_t image_in(const char *stat) {
  const char *at = strrchr(stat, ')');
  for (int field = 2; at && field < ARGUMENTS_FIELD; field++) {
    at = strchr(at, ' ');
    if (at) at++;
  }
  return at ? strtoull(at, NULL, 10) : 0;
}

int is_thread_dead(int pid, int tid) {
  char text[700];
  int descriptor = open_file("/proc/%d/task/%d/stat", pid, tid);
  int is_known = read_file(descriptor, text, sizeof text);
  if (descriptor >= 0) close(descriptor);
  return !is_known || is_dead(state_in(text));
}

/* Another program in the same process begins without the page. */
static void follow_image(int pid, const char *stat) {
  struct process *process = tree_process(pid);
  uint64_t image = image_in(stat);
  if (!process || process->image == image) return;
  process->image = image;
  process->carries = -1;
  process->used = -1;
  process->is_named = process->counts_always = 0;
}

/* The kernel gives the call of a thread only after the thread has left its core, and `running` before. */
static int has_left_core(const struct thread *thread) {
  char text[32];
  return !read_file(thread->call, text, sizeof text) || strncmp(text, "running", 7) != 0;
}

/* A parent that waits for its child of vfork to execute a program is in state D. */
static int waits_for_vfork(const struct thread *thread) {
  char text[32];
  long number = read_file(thread->call, text, sizeof text) && text[0] != 'r' ? atol(text) : -1;
#ifdef SYS_vfork
  if (number == SYS_vfork) return 1;
#endif
  return number == SYS_clone || number == SYS_clone3;
}

static int waits_for_condition(const struct thread *thread) {
  return thread->waits_for_condition && thread->vetted == thread->runs;
}

static uint64_t count_wakings(void) { return own_wakings + atomic_load(&page->wakings); }

static int note_gone(struct thread *thread) {
  tree_count_waking();
  thread->tid = GONE;
  is_any_gone = 1;
  is_complete = 0;
  return 0;
}

/* Whether somebody traces this process, and so all that it starts: another coordinator, or strace. A thread that stands
 * in a stop of theirs is about to move. */
static int is_traced(void) {
  static int known = -1;
  char text[4096], *line;
  if (known >= 0) return known;
  int file = open_file("/proc/%d/status", getpid(), 0), is_read = read_file(file, text, sizeof text);
  if (file >= 0) close(file);
  return known = is_read && (line = strstr(text, "\nTracerPid:")) && atoi(line + strlen("\nTracerPid:"));
}

/* A thread is dead a moment before its parent hears of it. So a death counts in the look after that which saw it: the
 * walk between them waits for the kernel to be done with it. */
static int settle(struct thread *thread) {
  char text[700], was = thread->state;
  uint64_t ran = thread->runs;
  int waited_for_condition = waits_for_condition(thread);
  thread->runs = runs_of(thread);
  if (waited_for_condition && ran != thread->runs) tree_count_waking(); /* libc has one waiter wake another */
  if (!read_file(thread->stat, text, sizeof text)) return note_gone(thread);
  thread->state = state_in(text);
  if (thread->pid == thread->tid && (ran != thread->runs || !was)) follow_image(thread->pid, text);
  if (is_dead(thread->state)) {
    tree_count_waking();
    if (was != thread->state) is_complete = 0;
    return thread->is_settled = thread->state == 'Z' && was == 'Z';
  }
  if (ran != thread->runs && tracer_has(thread->pid)) tree_count_waking(); /* nobody counts what it wakes */
  if (thread->state == 't' && (tracer_holds(thread->tid) || is_traced())) return thread->is_settled = 0;
  thread->is_settled = (thread->state == 'S' || is_stopped(thread->state)) && has_left_core(thread);
  if (thread->state == 'D') thread->is_settled = waits_for_vfork(thread);
  if (thread->is_settled) last_settled = thread->tid;
  return thread->is_settled;
}

/* Whether the kernel shows the place where a thread is blocked. Where it shows none, the thread may be blocked all the
 * same: the place may be hidden, or the thread not taken off its queue yet. */
static int is_blocked_at_place(const struct thread *thread) {
  char text[128];
  return read_file(thread->place, text, sizeof text) && text[0] != '0';
}

/* The runs are read last: one that was woken and has run between the two readings has more of them. The state is that
 * of `stat`: a thread that is handed to another core is none that runs yet for `syscall`, and its call stands there.
 * The place costs half of the state, and most threads have one. */
static int is_still(struct thread *thread) {
  char text[700];
  uint64_t wakings = count_wakings();
  if (!is_blocked_at_place(thread)) {
    if (!read_file(thread->stat, text, sizeof text)) return note_gone(thread);
    if (state_in(text) != thread->state) return thread->is_settled = 0;
  }
  if (runs_of(thread) != thread->runs) return thread->is_settled = 0;
  thread->proven = wakings;
  return 1;
}

static uint64_t last_pid(void) {
  static int file = -1;
  char text[96];
  if (file < 0) file = open_file("/proc/loadavg", 0, 0);
  char *last = read_file(file, text, sizeof text) ? strrchr(text, ' ') : NULL;
  return last ? strtoull(last, NULL, 10) : 0;
}

/* A process that is being started has its pid before it is anybody's child: only a walk while all are blocked is the
 * last one. The others find those that never block. */
static int walk_if_needed(int is_quiet) {
  static uint64_t walked;
  uint64_t pid = last_pid();
  unsigned long known = changes;
  if (pid && pid == walked && thread_count && !is_any_gone && (is_complete || !is_quiet)) return is_quiet;
  is_complete = is_complete && pid == walked;
  is_any_gone = 0;
  tree_walk();
  walked = pid;
  last_settled = 0; /* a process that was not known yet may have woken it since: it is proven like all others */
  return is_quiet && changes == known;
}

static void note_the_living(void) {
  for (int i = 0; i < process_count; i++) processes[i].is_alive = 0;
  for (int i = 0; i < thread_count; i++) {
    struct process *process = tree_process(threads[i].pid);
    if (process && !is_dead(threads[i].state)) process->is_alive = 1;
  }
}

/* Those that have run are mostly the same few: they stand first, so that a look that fails costs little. */
static void move_to_front(int at) {
  struct thread thread = threads[at];
  memmove(threads + 1, threads, (size_t)at * sizeof *threads);
  threads[0] = thread;
}

/* Those that ran in the last step have mostly run in this one, too: each that the pass below finds costs a pass. */
static void unsettle_those_in_front(void) {
  for (int i = 0; i < FRONT && i < thread_count; i++)
    if (threads[i].is_settled && runs_of(&threads[i]) != threads[i].runs) threads[i].is_settled = 0;
}

static int is_all_settled(void) {
  unsettle_those_in_front();
  for (int i = 0; i < thread_count; i++)
    if (!threads[i].is_settled && !settle(&threads[i])) return tree_mover = threads[i].pid, 0;
  return thread_count > 0;
}

/* The thread that was settled last was seen blocked after all others were: that is the instant which is to be proven.
 * After a walk there is none. A shell waited for a child that no walk had found; the child ended, and the shell was about
 * to start the next one during the walk. Nobody else was awake, so time moved while the shell worked. */
static int is_all_still(void) {
  uint64_t wakings = count_wakings(); /* after that instant: who had woken somebody had counted it */
  for (int i = 0; i < thread_count; i++) {
    if (threads[i].tid == last_settled || (waits_for_condition(&threads[i]) && threads[i].proven == wakings)) continue;
    if (is_still(&threads[i])) continue;
    tree_mover = threads[i].pid;
    move_to_front(i);
    return 0;
  }
  return 1;
}

/* A thread that has run and is blocked again is settled at once: to wait for it took another part of a step. */
enum look tree_look(void) {
  last_settled = tree_is_seen = tree_mover = 0;
  for (int tries = 0; tries < MOST_TRIES; tries++) {
    int is_quiet = walk_if_needed(is_all_settled());
    if (!is_quiet) return MOVES;
    if (!is_all_still()) continue;
    note_the_living();
    is_complete = tree_is_seen = 1;
    return QUIET;
  }
  return MOVES;
}
