/* Whom the coordinator may command. Owns the last look before a signal; knows no slot.
 *
 * Every process below writes into the page, and a program may give up rights without another image. It could then have
 * a coordinator of root kill any process whose number it writes there. So a signal goes out only if three things are
 * true: the process is below the coordinator, it is the same process as at that look, and all who share the page may
 * signal it. */
#define _GNU_SOURCE
#include "coordinator.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_LINE_OF_PARENTS 100000
#define KILL_CAPABILITY (1ull << 5) /* CAP_KILL */

struct rights { unsigned real, effective, saved; uint64_t capabilities, caught; };

int parent_of(int pid) {
  char text[700];
  int descriptor = open_file("/proc/%d/stat", pid, 0), parent = 0;
  char *name_end = read_file(descriptor, text, sizeof text) ? strrchr(text, ')') : NULL;
  if (descriptor >= 0) close(descriptor);
  if (name_end) sscanf(name_end + 1, " %*c %d", &parent);
  return parent;
}

int is_below(int pid) {
  int self = getpid();
  for (int i = 0; pid > 1 && i < LONGEST_LINE_OF_PARENTS; i++) {
    int parent = parent_of(pid);
    if (parent == self) return 1;
    pid = parent;
  }
  return 0;
}

static int read_rights(int pid, struct rights *rights) {
  char text[4096];
  int descriptor = open_file("/proc/%d/status", pid, 0);
  int is_known = read_file(descriptor, text, sizeof text);
  if (descriptor >= 0) close(descriptor);
  char *ids = is_known ? strstr(text, "\nUid:") : NULL;
  char *capabilities = is_known ? strstr(text, "\nCapEff:") : NULL;
  char *caught = is_known ? strstr(text, "\nSigCgt:") : NULL;
  if (!ids || !capabilities || !caught) return 0;
  rights->capabilities = strtoull(capabilities + 8, NULL, 16);
  rights->caught = strtoull(caught + 8, NULL, 16);
  return sscanf(ids + 5, "%u %u %u", &rights->real, &rights->effective, &rights->saved) == 3;
}

/* A namespace of its own makes a process the master of nobody outside of it. */
static int is_in_our_user_namespace(int pid) {
  char path[64], own[64] = "", other[64] = "";
  snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
  if (readlink("/proc/self/ns/user", own, sizeof own - 1) < 0) return 1; /* this kernel has none */
  return readlink(path, other, sizeof other - 1) > 0 && !strcmp(own, other);
}

static int may_signal(const struct rights *one, int pid, const struct rights *other) {
  if (one->real == other->real || one->real == other->saved || one->effective == other->real ||
      one->effective == other->saved)
    return 1;
  return one->capabilities & KILL_CAPABILITY && is_in_our_user_namespace(pid);
}

int copy_of(int pid, int descriptor) {
  int process = (int)syscall(SYS_pidfd_open, pid, 0);
  int file = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, descriptor, 0);
  if (process >= 0) close(process);
  return file;
}

/* Without CAP_KILL the kernel refuses by itself, as the coordinator has the rights of the command. */
static int has_more_rights_than_a_user(void) {
  static int has = -1;
  struct rights own;
  if (has < 0) has = !read_rights(getpid(), &own) || own.capabilities & KILL_CAPABILITY;
  return has;
}

int is_for_all_to_signal(int pid) {
  struct rights asked, one;
  if (!has_more_rights_than_a_user()) return 1;
  tree_walk();
  if (!read_rights(pid, &asked)) return 0;
  for (int i = 0; i < process_count; i++)
    if (read_rights(processes[i].pid, &one) && !may_signal(&one, processes[i].pid, &asked)) return 0;
  return 1;
}

/* The descriptor is opened before the look. If the process ends and another one gets its number, nobody is signalled. */
int signal_below(int pid, int thread, int signal, const siginfo_t *info) {
  if (pid <= 1 || signal <= 0 || signal > 64) return 0;
  int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
  if (descriptor < 0) return 0;
  int is_sent = 0;
  if (is_below(pid)) {
    if (thread <= 0) is_sent = !syscall(SYS_pidfd_send_signal, descriptor, signal, info, 0);
    else if (!syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0))
      is_sent = !(info ? syscall(SYS_rt_tgsigqueueinfo, pid, thread, signal, info) : syscall(SYS_tgkill, pid, thread, signal));
  }
  close(descriptor);
  return is_sent;
}

int wake_below(int pid, int tid) {
  struct rights rights;
  if (pid <= 1 || tid <= 0 || !read_rights(pid, &rights) || !(rights.caught >> (WAKE_SIGNAL - 1) & 1)) return 0;
  return signal_below(pid, tid, WAKE_SIGNAL, NULL);
}
