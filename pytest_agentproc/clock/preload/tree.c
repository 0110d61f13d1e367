/* Walks the tree below the coordinator and decides whether anybody in it moves. Owns the list of threads; moves no time.
 *
 * A thread that sleeps may have been woken a moment ago, so its state alone says little. It is at rest if its state
 * and the number of its runs are the same in two looks, and nobody came or died between them: whoever woke it must
 * have run, or died. The tree is walked between the looks, so a child of a fork cannot be missed.
 *
 * The state alone can be wrong, too. The kernel's wait4 is in state S while it reaps a child, and in state X an ended
 * thread still has to report the end of its process. On a busy machine the clock then jumped to the next deadline, an
 * hour later, while a program was about to go on or its end was about to be seen. */
#define _GNU_SOURCE
#include "tree.h"
#include "page.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_FIELD 48 /* of /proc/PID/stat */

struct thread *threads;
struct process *processes;
int thread_count, process_count;
static int thread_room, process_room;
static int thread_hint, process_hint; /* the next to be looked for is mostly the one after the last */
static int round_number;
static unsigned long changes; /* threads that have come or gone */

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
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE))
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

static void forget_files(struct thread *thread) {
  int files[] = {thread->stat, thread->schedstat, thread->children, thread->call};
  for (int i = 0; i < 4; i++)
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
  thread->children = open_file("/proc/%d/task/%d/children", pid, tid);
  thread->call = open_file("/proc/%d/task/%d/syscall", pid, tid);
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

static void walk_children(int descriptor, int depth) {
  int count, *children = numbers_of(descriptor, &count);
  for (int i = 0; i < count; i++) walk(children[i], depth);
  free(children);
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
    struct thread *thread = tid > 0 ? know_thread(pid, tid) : NULL;
    if (!thread) continue;
    thread->round = round_number;
    thread->depth = depth;
    if (thread->children >= 0) walk_children(thread->children, depth + 1);
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

void tree_walk(void) {
  round_number++;
  int own = open_file("/proc/%d/task/%d/children", getpid(), getpid());
  walk_children(own, 1);
  close(own);
  forget_the_gone();
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

static int is_at_rest(const struct thread *thread) {
  return thread->state == 'Z' || ((thread->state == 'S' || is_stopped(thread->state)) && has_left_core(thread));
}

/* A death that was not seen before may have woken a thread that was looked at before. */
static int first_look(struct thread *thread) {
  char text[700], was = thread->state;
  uint64_t ran = thread->runs;
  thread->runs = runs_of(thread);
  if (!read_file(thread->stat, text, sizeof text)) return 0;
  thread->state = state_in(text);
  if (thread->pid == thread->tid && (ran != thread->runs || !was)) follow_image(thread->pid, text);
  return is_at_rest(thread) && (!is_dead(thread->state) || is_dead(was));
}

/* A thread that was woken and is not on a core yet has not run; its state shows it. */
static int second_look(const struct thread *thread) {
  char text[700];
  if (is_dead(thread->state)) return 1;
  if (runs_of(thread) != thread->runs || !read_file(thread->stat, text, sizeof text)) return 0;
  return state_in(text) == thread->state;
}

static void note_the_living(void) {
  for (int i = 0; i < process_count; i++) processes[i].is_alive = 0;
  for (int i = 0; i < thread_count; i++) {
    struct process *process = tree_process(threads[i].pid);
    if (process && !is_dead(threads[i].state)) process->is_alive = 1;
  }
}

enum look tree_look(void) {
  int is_quiet = thread_count > 0;
  for (int i = 0; i < thread_count && is_quiet; i++) is_quiet = first_look(&threads[i]);
  unsigned long known = changes;
  tree_walk();
  if (changes != known) is_quiet = 0;
  for (int i = 0; i < thread_count && is_quiet; i++) is_quiet = second_look(&threads[i]);
  if (is_quiet) note_the_living();
  return is_quiet ? QUIET : MOVES;
}
