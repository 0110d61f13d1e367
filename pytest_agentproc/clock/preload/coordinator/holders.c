/* Who else holds the other end of what a thread waits for. If a process outside the tree does, it can end the wait by the
 * machine's clock. One rule for all kinds; it is looked up when the wait begins.
 *
 * Streams that the command was started with do not count: nobody could be judged then. Of a pipe without a name nobody
 * can say cheaply who has it; it comes from outside only by such streams, or in a message of a socket.
 *
 * A process of another user does not show what it holds. */
#define _GNU_SOURCE
#include "waits.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define AGAIN (SECOND / 20) /* so long the answer for a file is kept: a look at all processes takes milliseconds */
#define FILES 16
#define MOST_WATCHES 64

/* Processes that are neither below nor the coordinator's own two. */
static int is_other(int pid) { return pid > 0 && pid != getpid() && pid != getppid() && !tree_process(pid); }

static int is_ancestor(int pid) {
  for (int above = getpid(); above > 1; above = parent_of(above))
    if (above == pid) return 1;
  return 0;
}

/* Call `found` for each process outside until it gives 1. */
static int any_other(int (*found)(int pid)) {
  DIR *folder = opendir("/proc");
  int is_found = 0;
  for (struct dirent *entry; folder && !is_found && (entry = readdir(folder));)
    is_found = is_other(atoi(entry->d_name)) && found(atoi(entry->d_name));
  if (folder) closedir(folder);
  return is_found;
}

/* Call `found` with each descriptor of a process, and the link that leads to its file. */
static int any_file(int pid, int (*found)(int pid, const char *link)) {
  char path[PATH_MAX];
  int is_found = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && !is_found && (entry = readdir(folder));) {
    snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, entry->d_name);
    is_found = entry->d_name[0] != '.' && found(pid, path);
  }
  if (folder) closedir(folder);
  return is_found;
}

static int target_of(const char *link, char *target, size_t size) {
  ssize_t length = readlink(link, target, size - 1);
  target[length > 0 ? length : 0] = 0;
  return length > 0;
}

/* A file is known by its device and number. */
struct file { dev_t device; ino_t inode; };
static int is_same(const struct file *one, const struct file *other) {
  return one->device == other->device && one->inode == other->inode;
}
static int file_at(const char *path, struct file *file) {
  struct stat found;
  if (stat(path, &found)) return 0;
  *file = (struct file){found.st_dev, found.st_ino};
  return 1;
}

static struct file sought;

/* The answer for a file is kept for a while: a FIFO between two processes of the tree is waited for again and again. */
static int keep(const struct file *file, int (*found)(int pid)) {
  static struct { struct file file; int64_t looked; int is_outside; } kept[FILES];
  static int next;
  int at = 0;
  while (at < FILES && !(is_same(&kept[at].file, file) && kept[at].looked)) at++;
  if (at < FILES && machine_now() - kept[at].looked < AGAIN) return kept[at].is_outside;
  if (at == FILES) at = next++ % FILES;
  kept[at].file = sought = *file;
  kept[at].is_outside = any_other(found);
  kept[at].looked = machine_now();
  return kept[at].is_outside;
}

static int is_sought(int pid, const char *link) {
  struct file file;
  return (void)pid, file_at(link, &file) && is_same(&file, &sought);
}
static int has_open(int pid) { return any_file(pid, is_sought); }

/* Files that are watched (inotify): somebody outside has one of them open to write, or one in a folder of them. */

static struct file watches[MOST_WATCHES];
static int watch_count;

static int is_watched(const struct file *file) {
  for (int i = 0; i < watch_count; i++)
    if (is_same(&watches[i], file)) return 1;
  return 0;
}

static int may_write(int pid, const char *link) {
  char target[PATH_MAX], *end;
  struct stat how;
  struct file file;
  (void)pid;
  if (!target_of(link, target, sizeof target) || target[0] != '/' || lstat(link, &how) || !(how.st_mode & S_IWUSR)) return 0;
  if (file_at(link, &file) && is_watched(&file)) return 1;
  if (!(end = strrchr(target, '/'))) return 0;
  end[end == target] = 0;
  return file_at(target, &file) && is_watched(&file);
}
static int writes_to_watched(int pid) { return any_file(pid, may_write); }

static int is_watched_by_others(int pid, int descriptor) {
  char path[64], line[400];
  unsigned long inode, device;
  watch_count = 0;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, descriptor);
  FILE *info = fopen(path, "re");
  while (info && watch_count < MOST_WATCHES && fgets(line, sizeof line, info))
    if (sscanf(line, "inotify wd:%*x ino:%lx sdev:%lx", &inode, &device) == 2)
      watches[watch_count++] = (struct file){makedev(device >> 20, device & 0xfffff), inode};
  if (info) fclose(info);
  return watch_count && any_other(writes_to_watched);
}

/* Descriptors. */

static char *reason;
static size_t reason_size;
static enum use use;

static int say_reason(const char *format, const char *what) {
  snprintf(reason, reason_size, format, what);
  return 1;
}

static int number_in(int pid, int descriptor, const char *key) {
  char text[400], *line;
  int file = open_file("/proc/%d/fdinfo/%d", pid, descriptor), number = -1;
  if (read_file(file, text, sizeof text) && (line = strstr(text, key))) number = atoi(line + strlen(key));
  if (file >= 0) close(file);
  return number;
}

/* Terminals. The kernel brings what was written to the other end in a thread of its own, which is none of the tree. A look
 * at that end (poll) waits for it. What is typed comes back as an echo, so both ends are looked at twice. */

int has_terminal;

static int is_terminal(const char *target) {
  return !strncmp(target, "/dev/pts/", 9) || !strcmp(target, "/dev/ptmx") || !strcmp(target, "/dev/tty");
}

static int bring_text(int pid, int descriptor) {
  char link[64], target[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, descriptor);
  int file = target_of(link, target, sizeof target) && is_terminal(target) ? copy_of(pid, descriptor) : -1;
  struct pollfd seen = {.fd = file, .events = POLLIN};
  poll(&seen, 1, 0);
  if (file >= 0) close(file); /* at once: the other end hears of the last one that is closed */
  return 0;
}

int bring_text_of_terminals(void) {
  int are_any = 0;
  for (int i = 0; i < 2 * thread_count; i++) {
    struct thread *thread = &threads[i % thread_count];
    if (!thread->waits_for_terminal || thread->vetted != thread->runs) continue;
    struct call call = read_call(thread);
    any_descriptor(thread, &call, bring_text);
    are_any = 1;
  }
  return are_any;
}

static int is_armed(int pid, int descriptor) {
  char text[400];
  int file = open_file("/proc/%d/fdinfo/%d", pid, descriptor);
  int is_armed = read_file(file, text, sizeof text) && strstr(text, "it_value: (") && !strstr(text, "it_value: (0, 0)");
  if (file >= 0) close(file);
  return is_armed;
}

static int leads_outside(int pid, int descriptor) {
  char link[64], target[PATH_MAX];
  unsigned long inode;
  struct file file;
  const char *words;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, descriptor);
  if (!target_of(link, target, sizeof target)) return 0;
  if (sscanf(target, "socket:[%lu]", &inode) == 1) {
    if ((words = socket_outside(inode))) return say_reason("%s", words);
    return (use == READS || use == WRITES) && has_limit_of_socket(pid, descriptor, use) &&
           say_reason("waits for a socket%s whose limit (SO_RCVTIMEO, SO_SNDTIMEO) virtual time does not know", "");
  }
  if (is_terminal(target)) return has_terminal = 1, 0;
  if (target[0] == '/') {
    struct stat kind; /* a character device is never waited for */
    if (stat(link, &kind) || !(S_ISFIFO(kind.st_mode) || S_ISREG(kind.st_mode))) return 0;
    file = (struct file){kind.st_dev, kind.st_ino};
    return keep(&file, has_open) && say_reason("waits for %s, which a process outside the command has open", target);
  }
  if (!strcmp(target, "anon_inode:[eventpoll]")) return any_in_epoll(pid, descriptor, leads_outside); /* one in another */
  if (!strcmp(target, "anon_inode:[timerfd]")) /* the shim's and the tracer's are armed by nobody */
    return is_armed(pid, descriptor) && say_reason("waits for a timerfd%s that a library has armed by a system call of its own", "");
  if (!strcmp(target, "anon_inode:inotify"))
    return is_watched_by_others(pid, descriptor) &&
           say_reason("waits for changes of a file (inotify)%s, which a process outside the command has open", "");
  if (strstr(target, "pidfd")) {
    int other = number_in(pid, descriptor, "\nPid:\t");
    return is_other(other) && !is_ancestor(other) && say_reason("waits for the end of a process%s outside the command", "");
  }
  return 0;
}

/* Locks of files. /proc/locks has the line of each lock, and below it the lines of those who wait for it. */

static ino_t locked;
static char lock_type[16];

/* Its descriptors say which locks were taken by them: they stay with a copy of the descriptor in another process. */
static int has_lock(int pid, const char *link) {
  char path[PATH_MAX], line[400], type[16];
  unsigned long inode;
  int is_found = 0;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", pid, strrchr(link, '/') + 1);
  FILE *info = fopen(path, "re");
  while (info && !is_found && fgets(line, sizeof line, info))
    is_found = sscanf(line, "lock: %*d: %15s %*s %*s %*d %*x:%*x:%lu", type, &inode) == 2 && inode == locked && !strcmp(type, lock_type);
  if (info) fclose(info);
  return is_found;
}

static int waits_for_lock_outside(int pid, int descriptor) {
  char link[64], line[400], type[16] = "";
  struct file file;
  int owner, holder = 0, is_found = 0;
  unsigned long inode;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, descriptor);
  if (!file_at(link, &file)) return 0;
  FILE *locks = fopen("/proc/locks", "re");
  while (locks && !is_found && fgets(line, sizeof line, locks)) {
    char *waits = strstr(line, "-> ");
    if (sscanf(waits ? waits + 3 : line + strcspn(line, " "), " %15s %*s %*s %d %*x:%*x:%lu", type, &owner, &inode) != 3) continue;
    if (!waits) holder = owner, strcpy(lock_type, type);
    else is_found = owner == pid || (owner == -1 && inode == file.inode);
  }
  if (locks) fclose(locks);
  if (!is_found) return 1; /* its holder has no number in this pid namespace */
  if (holder > 0 && tree_process(holder)) return 0;
  locked = file.inode;
  for (int i = 0; i < process_count; i++)
    if (any_file(processes[i].pid, has_lock)) return 0;
  return 1;
}

static int is_lock(const struct call *call) {
  return call->number == SYS_flock || (call->number == SYS_fcntl && (call->a[1] == F_SETLKW || call->a[1] == 38 /* F_OFD_SETLKW */));
}

/* Words in shared memory. */

static int has_mapped(int pid) {
  char path[64], line[4400];
  unsigned major, minor;
  unsigned long inode;
  int is_found = 0;
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  FILE *file = fopen(path, "re");
  while (file && !is_found && fgets(line, sizeof line, file))
    is_found = sscanf(line, "%*x-%*x %*3s%*1[s] %*x %x:%x %lu", &major, &minor, &inode) == 3 && inode == sought.inode &&
               makedev(major, minor) == sought.device;
  if (file) fclose(file);
  return is_found;
}

static int waits_for_word_outside(int pid, unsigned long place) {
  char line[4400];
  unsigned major, minor;
  unsigned long inode;
  if (find_mapping(pid, NULL, place, line, sizeof line) != 1 || strstr(line, "memfd:" PAGE_NAME)) return 0;
  if (sscanf(line, "%*x-%*x %*3s%*1[s] %*x %x:%x %lu", &major, &minor, &inode) != 3 || !inode) return 0;
  struct file file = {makedev(major, minor), inode};
  return keep(&file, has_mapped);
}

/* Queues and semaphores of System V belong to nobody. One that was there before the command counts as somebody's outside,
 * and so does one that a process outside has used last. */

static int earlier[2][256], earlier_count[2];
static const char *const queue_files[] = {"/proc/sysvipc/msg", "/proc/sysvipc/sem"};

void note_earlier_queues(void) {
  char line[300];
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(queue_files[i], "re");
    while (file && earlier_count[i] < 256 && fgets(line, sizeof line, file))
      earlier_count[i] += sscanf(line, " %*d %d", &earlier[i][earlier_count[i]]) == 1;
    if (file) fclose(file);
  }
}

static int is_queue_outside(int is_set, int number) {
  char line[300];
  int found, sender = 0, receiver = 0;
  for (int i = 0; i < earlier_count[is_set]; i++)
    if (earlier[is_set][i] == number) return 1;
  if (is_set) {
    sender = semctl(number, 0, GETPID);
    return is_other(sender) && !kill(sender, 0);
  }
  FILE *file = fopen(queue_files[0], "re");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, " %*d %d %*o %*u %*u %d %d", &found, &sender, &receiver) == 3 && found == number) break;
    else sender = receiver = 0;
  if (file) fclose(file);
  return (is_other(sender) && !kill(sender, 0)) || (is_other(receiver) && !kill(receiver, 0));
}

int waits_for_outside(const struct thread *thread, const struct call *call, char *words, size_t size) {
  reason = words;
  reason_size = size;
  has_terminal = 0;
  use = use_of(call->number);
  switch (call->number) {
  case SYS_flock:
  case SYS_fcntl:
    return is_lock(call) && waits_for_lock_outside(thread->pid, (int)call->a[0]) &&
           say_reason("waits for a lock of a file%s, which a process outside the command holds", "");
  case SYS_futex:
    return !(call->a[1] & FUTEX_PRIVATE_FLAG) && waits_for_word_outside(thread->pid, call->a[0]) &&
           say_reason("waits in shared memory%s, which a process outside the command has, too", "");
#ifdef SYS_semop
  case SYS_semop:
#endif
  case SYS_semtimedop:
    return is_queue_outside(1, (int)call->a[0]) && say_reason("waits for a semaphore of System V%s from outside the command", "");
  case SYS_msgrcv:
  case SYS_msgsnd:
    return is_queue_outside(0, (int)call->a[0]) && say_reason("waits for a queue of System V%s from outside the command", "");
  default: return any_descriptor(thread, call, leads_outside);
  }
}
