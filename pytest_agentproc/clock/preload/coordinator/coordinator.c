/* coordinator COMMAND...: runs a command, and all that it starts, in virtual time.
 *
 * Three processes: the one that was started watches, its child coordinates, and the child of that becomes the command.
 * Both of ours adopt orphans (PR_SET_CHILD_SUBREAPER), so whichever of them is killed, the other still has the whole
 * tree below itself and ends it. The page is a file without a name, which goes with its last user.
 *
 * The coordinator lets time move when all threads below are blocked, to the earliest deadline, and lets exactly one
 * waiter go. So what happens at one instant has one order.
 *
 * coordinator --session COMMAND...: in real time, until a process below says in the page that time is virtual now, and
 * again from when it says that it is not. A wait ends by the time in which it began.
 *
 * coordinator --explain COMMAND...: with a row for each jump. */
#define _GNU_SOURCE
#include "coordinator.h"
#include "../shared/image.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOT_HERE 2        /* as every command of agentproc says it */
#define KIT_FAILED 3      /* the same */
#define NOT_FOUND 127     /* as a shell says it */
#define NOT_EXECUTABLE 126
#define AT_REST SECOND    /* so long nobody waits for an instant before that is said */
#define LONG_RUN (30 * SECOND) /* so long nobody waits at all before that is said */
#define LONGEST_END (5 * SECOND)
#define BROKER "lifeline-broker" /* harness/fakes/_broker.py: it removes the files of a harness that is dead */
#define LONGEST_REMOVAL (2 * SECOND)
#define LONGEST_ALARM (6 * SECOND) /* so long the listener may take to end a standstill before it is said */
#define SHORTEST_WAIT (SECOND / 200000)
#define MONOTONIC_START (100000 * SECOND)

struct page *page;
int page_file = -1;
static char page_path[64], library[4096];
static pid_t watcher, group;
static _Atomic int32_t *program; /* the pid of the command: in memory that the command does not share */
static int is_session, explains;
static int harness = -1; /* a pidfd of the process that started this one to play; -1: nobody's */
static sigset_t user_mask;
static struct sigaction user_deaths;
static struct rlimit user_files;
static int notes = STDERR_FILENO; /* where what the coordinator says is written */

/* The listener reads it, too. */
static void note(const char *text) {
  size_t used = page ? strnlen(page->notes, sizeof page->notes) : 0;
  if (!page || !atomic_load(&page->listener) || used + strlen(text) + 2 > sizeof page->notes) return;
  snprintf(page->notes + used, sizeof page->notes - used, "%s%s", used ? "\n" : "", text);
}

void say(const char *format, ...) {
  char text[900];
  va_list list;
  va_start(list, format);
  int begin = snprintf(text, sizeof text, "agentproc time: ");
  vsnprintf(text + begin, sizeof text - (size_t)begin - 1, format, list);
  va_end(list);
  note(text + begin);
  strcat(text, "\n");
  if (write(notes, text, strlen(text)) < 0) {}
}

/* The play server ends by itself if the harness dies, but not while it is stopped. So both of ours look for it, too: one
 * of them may be stopped. */
static int is_harness_dead(void) {
  static int64_t looked;
  struct pollfd death = {harness, POLLIN, 0};
  if (harness < 0 || machine_now() - looked < SECOND / 10) return 0;
  looked = machine_now();
  return poll(&death, 1, 0) > 0;
}

/* Ends. */

static int is_broker(int pid) {
  char name[32];
  name_of(pid, name, sizeof name);
  return !strcmp(name, BROKER);
}

/* Brokers end by themselves, after the rest. */
static void end_tree(void) {
  int64_t begin = machine_now(), past;
  tree_begin_end();
  for (; (past = machine_now() - begin) < LONGEST_END; nap(SECOND / 1000)) {
    tree_walk();
    for (int i = 0; i < process_count; i++)
      if (past > LONGEST_REMOVAL || !is_broker(processes[i].pid)) signal_below(processes[i].pid, 0, SIGKILL, NULL);
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) return;
  }
}

void give_up(const char *format, ...) {
  char text[500];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  say("%s", text);
  if (watcher) end_tree();
  _exit(KIT_FAILED);
}

static int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* Time. */

static void wait_for_changes(uint32_t known, int64_t ns) {
  struct timespec time = {0, ns};
  syscall(SYS_futex, &page->changes, FUTEX_WAIT, known, &time, NULL, 0);
}

/* With a stranger in the tree time passes as on the machine, and whoever is due goes. */
static int64_t paced_since, paced_from, paced_time;

static void follow_machine(void) {
  int is_busy;
  if (!paced_since) {
    paced_since = machine_now();
    paced_from = atomic_load(&page->now);
  }
  int64_t now = paced_from + machine_now() - paced_since;
  struct slot *slot;
  for (int i = 0; i < SLOTS && (slot = slots_next(&is_busy)) && atomic_load(&slot->deadline) <= now; i++) slots_grant(slot);
  if (now > atomic_load(&page->now)) atomic_store(&page->now, now);
  nap(SECOND / 2000);
}

static void leave_machine(void) {
  if (!paced_since) return;
  paced_time += machine_now() - paced_since;
  paced_since = 0;
  explain_machine_time(paced_from, atomic_load(&page->now));
}

/* What a blocked process waits for, in words. */
static void describe(const struct process *process, char *text, size_t size) {
  char name[32], call[256] = "", path[64], target[128] = "";
  struct thread *thread = tree_thread(process->pid);
  long number = -1, descriptor = -1;
  name_of(process->pid, name, sizeof name);
  if (thread && read_file(thread->call, call, sizeof call)) sscanf(call, "%ld %lx", &number, (unsigned long *)&descriptor);
  snprintf(path, sizeof path, "/proc/%d/fd/%ld", process->pid, descriptor);
  if (number == SYS_read && readlink(path, target, sizeof target - 1) > 0)
    snprintf(text, size, "%s (pid %d) reads %s", name, process->pid, target);
  else if (number == SYS_wait4 || number == SYS_waitid)
    snprintf(text, size, "%s (pid %d) waits for a child", name, process->pid);
  else snprintf(text, size, "%s (pid %d)%s", name, process->pid, thread && is_stopped(thread->state) ? " is stopped" : "");
}

static void describe_all(char *all, size_t size) {
  char one[200];
  *all = 0;
  for (int i = 0; i < process_count; i++) {
    if (!processes[i].is_alive) continue;
    describe(&processes[i], one, sizeof one);
    if (strlen(all) + strlen(one) + 8 > size) break;
    if (*all) strcat(all, ", ");
    strcat(all, one);
  }
}

static int64_t standing_since;
static enum { UNSAID, ALARMED, SAID } standstill;

/* Raise the alarm with the thread that listens, if there is one. The words are made beside the page: whoever writes into
 * it meanwhile could have them run over its end. */
static int alarm_listener(void) {
  struct thread *listener = tree_thread(atomic_load(&page->listener));
  char all[sizeof page->waits] = "";
  if (!listener) return 0;
  int pid = listener->pid, tid = listener->tid;
  describe_all(all, sizeof all);
  memcpy(page->waits, all, sizeof all);
  tree_count_waking();
  return is_for_all_to_signal(pid) && signal_below(pid, tid, atomic_load(&page->alarm), NULL);
}

/* Python runs handlers of signals in the main thread of its first interpreter alone. */
#define NOT_HEARD                                                                                                      \
  "\nthis is a deadlock, and the main thread does not hear of it, as it waits in another interpreter or in code in C:"  \
  " end it by kill -KILL, or by pytest-timeout with --timeout-method=thread"

static void tell_standstill(int64_t ns) {
  char all[400];
  if (standstill == SAID || ns < AT_REST) return;
  if (standstill == UNSAID && atomic_load(&page->listener)) {
    if (!slots_have_real_wait() && alarm_listener()) standstill = ALARMED;
    if (ns < LONGEST_ALARM) return;
  } else if (standstill == ALARMED && ns < LONGEST_ALARM) {
    return;
  }
  const char *why = standstill == ALARMED ? NOT_HEARD : "";
  standstill = SAID;
  describe_all(all, sizeof all);
  say("time stands still: nobody waits for an instant, only for something from outside: %s%s", all, why);
}

static void stand_still(void) {
  if (!standing_since) standing_since = machine_now();
  tell_standstill(machine_now() - standing_since);
  int64_t ns = (machine_now() - standing_since) / 8;
  nap(ns < SECOND / 20000 ? SECOND / 20000 : ns > SECOND / 100 ? SECOND / 100 : ns);
}

/* Everybody is blocked: let the next one go. */
static void advance(void) {
  int is_busy;
  slots_free_dead();
  struct slot *slot = slots_next(&is_busy);
  if (is_busy) {
    nap(SECOND / 20000);
  } else if (slot) {
    standing_since = 0;
    explain_jump(slot, atomic_load(&page->now), atomic_load(&slot->deadline));
    slots_grant(slot);
  } else {
    stand_still();
  }
}

/* A program that computes is looked at less and less often: two cores may be all there are. */
static int64_t moving_since, said_moving;

static void watch_movement(uint32_t known) {
  int64_t now = machine_now(), ns;
  if (!moving_since) moving_since = said_moving = now;
  standing_since = 0;
  if (atomic_load(&page->listener)) standstill = UNSAID;
  ns = (now - moving_since) / 8;
  if (now - said_moving > LONG_RUN) {
    said_moving = now;
    say("time stands still: the program has run for %lld s of the machine without a wait",
        (long long)((now - moving_since) / SECOND));
  }
  wait_for_changes(known, ns < SHORTEST_WAIT ? SHORTEST_WAIT : ns > SECOND / 1000 ? SECOND / 1000 : ns);
}

/* Real time. */

/* The next time that is virtual begins with nothing said. */
static void pass_real_time(uint32_t known) {
  leave_machine();
  tree_count_waking();
  moving_since = standing_since = 0;
  standstill = UNSAID;
  for (int i = 0; i < process_count; i++) processes[i].is_named = processes[i].is_connection_named = 0;
  slots_free_gone();
  wait_for_changes(known, slots_serve_real_time());
}

/* The command. */

static int code, has_ended;
static int64_t ended_at;

static void note_death(int pid, int status) {
  if (pid != atomic_load(program)) return;
  code = code_of(status);
  has_ended = 1;
  ended_at = machine_now();
}

static void end_what_is_left(void) {
  char name[32];
  for (int i = 0; i < process_count; i++) {
    if (!processes[i].is_alive) continue;
    name_of(processes[i].pid, name, sizeof name);
    say("%s (pid %d) was still there after the command's end, and was killed", name, processes[i].pid);
  }
  end_tree();
}

static int is_over(enum look look) {
  return has_ended && (!process_count || look == QUIET || machine_now() - ended_at > LONGEST_END);
}

static int listening_process(void) {
  struct thread *listener = tree_thread(atomic_load(&page->listener));
  return listener ? listener->pid : 0;
}

static void coordinate(void) {
  int is_outside = 0;
  for (;;) {
    if (getppid() != watcher) give_up("the process that watched over this one was killed: the command is ended, too");
    if (is_harness_dead()) give_up("the process that started this one was killed: the command is ended, too");
    uint32_t known = atomic_load(&page->changes);
    tree_is_seen = 0;
    tracer_serve(note_death);
    if (!has_ended && atomic_load(&page->offset) != VIRTUAL) {
      pass_real_time(known);
      continue;
    }
    slots_serve_real_time();
    if (!has_ended && slots_hold_time()) {
      tree_count_waking(); /* the process that holds it may be about to send signals, from outside the tree */
      wait_for_changes(known, SECOND / 100);
      continue;
    }
    enum look look = tree_look();
    /* What has stopped for the tracer, or has asked for it, during the look is not blocked. */
    if (tracer_serve(note_death)) {
      look = MOVES;
      tree_is_seen = 0;
    }
    if (look == MOVES) explain_movement(tree_mover);
    if (is_over(look)) break;
    if (look == QUIET) is_outside = is_connected_outside(atomic_load(&page->connections), listening_process());
    int is_strange = has_stranger(look) || is_outside;
    /* A nap that began during the looks is rest by the machine's clock: neither an instant nor a stranger's wait. */
    if (look == QUIET && !has_ended && slots_hold_time()) continue;
    if (is_strange) {
      follow_machine();
      continue;
    }
    leave_machine();
    if (look == QUIET) {
      moving_since = 0;
      if (bring_text_of_terminals() && tree_look() != QUIET) continue;
      advance();
    } else {
      watch_movement(known);
    }
  }
  end_what_is_left();
}

/* The beginning. */

static void create_page(void) {
  int descriptor = memfd_create(PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0 || ftruncate(descriptor, sizeof *page)) give_up("no page of memory: %s", strerror(errno));
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* a shorter file would end us by SIGBUS */
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  program = mmap(NULL, sizeof *program, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || program == MAP_FAILED) give_up("no page of memory: %s", strerror(errno));
  struct timespec date;
  clock_gettime(CLOCK_REALTIME, &date);
  page_file = descriptor;
  page->date = date.tv_sec * SECOND; /* whole seconds: programs that count in seconds count alike in every run */
  page->monotonic = is_session ? machine_now() : MONOTONIC_START;
  page->offset = is_session ? -page->monotonic : VIRTUAL;
  const char *traces = getenv("AGENTPROC_CLOCK_TRACE");
  page->is_untraced = traces && !strcmp(traces, "0");
  snprintf(page_path, sizeof page_path, "/proc/%%d/fd/%d", descriptor);
}

static void find_library(void) {
  ssize_t length = readlink("/proc/self/exe", library, sizeof library - 16);
  char *end = length > 0 ? strrchr(library, '/') : NULL;
  if (!end) give_up("/proc is not what it should be");
  strcpy(end, "/shim.so");
}

static void become(char **words) {
  execvp(words[0], words);
  int error = errno;
  say("%s: %s", words[0], strerror(error));
  _exit(error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

/* By a launcher, as the shim starts such a program, too. */
static void become_traced(const char *path, char **words) {
  int count = 0;
  while (words[count]) count++;
  char *traced[count + 4];
  traced[0] = (char *)"coordinator";
  traced[1] = (char *)"--traced";
  traced[2] = (char *)path;
  memcpy(traced + 3, words, (size_t)(count + 1) * sizeof *words);
  execv("/proc/self/exe", traced);
}

static void execute(char **words) {
  char value[sizeof library + 4096], path[64], room[4096] = "";
  const char *others = getenv("LD_PRELOAD"), *found = find_program(words[0], room, sizeof room);
  snprintf(value, sizeof value, others && *others ? "%s:%s" : "%s", library, others);
  snprintf(path, sizeof path, page_path, getppid());
  if (!is_for_musl(found)) setenv("LD_PRELOAD", value, 1);
  setenv(PAGE_VARIABLE, path, 1);
  setpgid(0, group);
  setrlimit(RLIMIT_NOFILE, &user_files);
  sigaction(SIGCHLD, &user_deaths, NULL);
  sigprocmask(SIG_SETMASK, &user_mask, NULL);
  if (!atomic_load(&page->is_untraced) && is_beyond_shim(found)) become_traced(found, words);
  become(words);
}

/* Whoever reads the command's output waits for its end, not for ours. */
static void leave_streams(void) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
}

void write_seconds(int64_t ns, char *text, int size) {
  snprintf(text, (size_t)size, "%lld.%09lld", (long long)(ns / SECOND), (long long)(ns % SECOND));
  char *end = text + strlen(text);
  while (end[-1] == '0') *--end = 0;
  if (end[-1] == '.') end[-1] = 0;
}

static void count_death(int signal) {
  (void)signal;
  atomic_fetch_add(&page->changes, 1);
}

/* A death ends a wait for changes. */
static void notice_deaths(void) {
  struct sigaction action = {.sa_handler = count_death};
  sigset_t deaths;
  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  sigaction(SIGCHLD, &action, NULL);
  sigprocmask(SIG_UNBLOCK, &deaths, NULL);
}

static void be_coordinator(char **words) {
  char virtual[32], paced[80] = "";
  int64_t begin = machine_now();
  struct rlimit files;
  setpgid(0, 0); /* what kills the command's group leaves this process to end the rest */
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int pid = fork();
  if (pid < 0) give_up("no process: %s", strerror(errno));
  if (!pid) execute(words);
  atomic_store(program, pid);
  notice_deaths();
  prctl(PR_SET_TIMERSLACK, 1); /* the usual 50 microseconds would be half of a step */
  note_given_sockets();
  note_earlier_queues();
  leave_streams();
  files = user_files;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (explains) explain_begin();
  coordinate();
  leave_machine();
  if (is_session) _exit(code);
  write_seconds(atomic_load(&page->now), virtual, sizeof virtual);
  if (paced_time) snprintf(paced, sizeof paced, ", %.2f s of it as on the machine", (double)paced_time / SECOND);
  say("%s s of virtual time in %.2f s%s", virtual, (double)(machine_now() - begin) / SECOND, paced);
  _exit(code);
}

/* The terminal's signals reach the command without us. */
static void pass_on(const siginfo_t *info) {
  int pid = atomic_load(program);
  if (info->si_code == SI_KERNEL || pid <= 0) return;
  signal_below(pid, 0, info->si_signo, NULL);
  atomic_fetch_add(&page->wakings, 1);
}

static int watch(int coordinator, const sigset_t *signals) {
  siginfo_t info;
  int status;
  for (;;) {
    if (waitpid(coordinator, &status, WNOHANG) == coordinator) break;
    struct timespec pause = {harness < 0 ? 1000000 : 1, 0};
    if (sigtimedwait(signals, &info, &pause) > 0 && info.si_signo != SIGCHLD) pass_on(&info);
    if (!is_harness_dead()) continue;
    end_tree();
    return KIT_FAILED;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  say("the coordinator was killed by signal %d: the command is ended, too", WTERMSIG(status));
  end_tree();
  return KIT_FAILED;
}

/* The harness reads them: they are none of the supervisor's words. */
static void open_notes(void) {
  const char *path = getenv("AGENTPROC_CLOCK_NOTES");
  int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  if (file >= 0) notes = file;
}

/* In a pid namespace without a /proc of its own, /proc shows other processes under the numbers of ours. A tree that was
 * found there was none of ours, and was killed. */
static void demand_own_proc(void) {
  char number[16] = "", line[300];
  int is_ours = readlink("/proc/self", number, sizeof number - 1) > 0 && atoi(number) == getpid();
  FILE *file = is_ours ? fopen("/proc/self/status", "re") : NULL;
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "NSpid:\t", 7)) is_ours = !strchr(line + 7, '\t'); /* one number for each namespace */
  if (file) fclose(file);
  if (is_ours) return;
  if (*number) say("/proc shows another pid namespace: process %d is %s there", (int)getpid(), number);
  else say("/proc does not show the processes of this pid namespace, but a tree is found there");
  say("mount one in this pid namespace: `mount -t proc proc /proc`, `bwrap --proc /proc`, `unshare --mount-proc`");
  _exit(NOT_HERE);
}

static void find_harness(void) {
  const char *pid = getenv("AGENTPROC_CLOCK_HARNESS");
  if (!pid) return;
  harness = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
  if (harness < 0 || getppid() != atoi(pid)) _exit(KIT_FAILED); /* it has ended already */
}

static void demand(const char *file, const char *name) {
  if (!access(file, R_OK)) return;
  say("this kernel has no %s, and virtual time needs it", name);
  _exit(NOT_HERE);
}

static int is_in_virtual_time(const char *path) {
  int64_t offset = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  return descriptor >= 0 && pread(descriptor, &offset, sizeof offset, offsetof(struct page, offset)) > 0 && offset == VIRTUAL;
}

/* A page of our own begins without that of another coordinator, whose shim is in this process, too. */
static void leave_session(char **words) {
  char *others = getenv("LD_PRELOAD");
  unsetenv(PAGE_VARIABLE);
  if (others && !strncmp(others, library, strlen(library))) {
    others += strlen(library);
    setenv("LD_PRELOAD", *others == ':' ? others + 1 : others, 1);
  }
  syscall(SYS_execve, "/proc/self/exe", words, environ); /* not by libc's function, which is the shim's here */
  give_up("/proc is not what it should be");
}

int main(int count, char **words) {
  char **given = words, *path = getenv(PAGE_VARIABLE);
  if (count > 3 && !strcmp(words[1], "--traced")) launch(words + 2);
  is_session = count > 2 && !strcmp(words[1], "--session");
  explains = count > 2 && !strcmp(words[1], "--explain");
  if (is_session || explains) words++;
  if (!words[1]) give_up("no command");
  if (path && is_in_virtual_time(path)) become(words + 1);
  open_notes();
  demand_own_proc();
  demand("/proc/self/schedstat", "/proc/PID/schedstat");
  demand("/proc/thread-self/children", "/proc/PID/task/TID/children");
  find_library();
  if (path) leave_session(given);
  unsetenv("AGENTPROC_CLOCK_NOTES");
  find_harness();
  unsetenv("AGENTPROC_CLOCK_HARNESS");
  create_page();
  sigset_t passed;
  sigemptyset(&passed);
  for (const int *number = (int[]){SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD, 0}; *number; number++)
    sigaddset(&passed, *number);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &user_mask);
  /* Whoever ignores SIGCHLD hands that on: the kernel then keeps no exit, and we would wait for one for ever. */
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &user_deaths);
  getrlimit(RLIMIT_NOFILE, &user_files);
  group = getpgrp();
  watcher = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int coordinator = fork();
  if (coordinator < 0) give_up("no process: %s", strerror(errno));
  if (!coordinator) be_coordinator(words + 1);
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stops, NULL);
  leave_streams();
  return watch(coordinator, &passed);
}
