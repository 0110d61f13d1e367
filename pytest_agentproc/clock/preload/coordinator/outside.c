/* Finds TCP and UDP connections whose other end lies outside the tree: its answers come by the machine's clock.
 * Reads /proc/PID/fd for the sockets of the tree, and /proc/net for where they lead.
 *
 * Programs hold connections that have no part in the test: a worker of pytest-xdist has one to its controller. So those
 * of the process that listens for alarms, which is pytest, count only while a thread of it waits for them. */
#define _GNU_SOURCE
#include "coordinator.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define AGAIN (SECOND / 20) /* so often a connection to the outside is looked at */
#define MAPPED "0000000000000000FFFF0000"
enum { ESTABLISHED = 1, CONNECTING = 2 };

struct owned { unsigned long inode; int pid, descriptor; };
struct row { char local[40], remote[40]; unsigned local_port, remote_port, state; unsigned long inode; };

static struct owned *sockets, *idle;
static struct row *rows;
static int socket_count, socket_room, row_count, row_room, idle_count, idle_room;

static void *grown(void *list, int count, int *room, size_t size) {
  if (count < *room) return list;
  *room = *room ? *room * 2 : 64;
  list = realloc(list, (size_t)*room * size);
  if (!list) give_up("there is no memory for so many sockets");
  return list;
}

static void collect_sockets(int pid) {
  char path[300], target[64];
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *folder = opendir(path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    struct owned found = {0, pid, atoi(entry->d_name)};
    snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, entry->d_name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    if (sscanf(target, "socket:[%lu]", &found.inode) != 1) continue;
    sockets = grown(sockets, socket_count, &socket_room, sizeof *sockets);
    sockets[socket_count++] = found;
  }
  closedir(folder);
}

/* An IPv4 address is written alike in both families. */
static void shorten(char *address) {
  if (!strncmp(address, MAPPED, strlen(MAPPED))) memmove(address, address + strlen(MAPPED), 9);
}

static void collect_rows(const char *path) {
  char line[400];
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    struct row row;
    if (sscanf(line, " %*d: %39[0-9A-F]:%x %39[0-9A-F]:%x %x %*s %*s %*s %*u %*d %lu", row.local, &row.local_port,
               row.remote, &row.remote_port, &row.state, &row.inode) != 6)
      continue;
    shorten(row.local);
    shorten(row.remote);
    rows = grown(rows, row_count, &row_room, sizeof *rows);
    rows[row_count++] = row;
  }
  if (file) fclose(file);
}

static struct owned *owned(unsigned long inode) {
  for (int i = 0; i < socket_count; i++)
    if (sockets[i].inode == inode) return &sockets[i];
  return NULL;
}

static int is_any(const char *address) { return strspn(address, "0") == strlen(address); }

/* The other end, or whoever listens for it, is below. */
static int leads_inside(const struct row *row) {
  for (int i = 0; i < row_count; i++)
    if (rows[i].local_port == row->remote_port && (is_any(rows[i].local) || !strcmp(rows[i].local, row->remote)) &&
        owned(rows[i].inode))
      return 1;
  return 0;
}

/* Whether a process waits for a descriptor: by itself, in a list, or in an epoll. */

static int is_in_list(int pid, unsigned long place, unsigned long count, int descriptor) {
  struct pollfd list[64];
  struct iovec here = {list, sizeof list}, there = {(void *)place, count * sizeof *list};
  if (count > 64) return 1;
  if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)there.iov_len) return 1;
  for (unsigned long i = 0; i < count; i++)
    if (list[i].fd == descriptor) return 1;
  return 0;
}

static int is_in_sets(int pid, const unsigned long *sets, unsigned long count, int descriptor) {
  long word;
  unsigned long at = (unsigned long)descriptor / (8 * sizeof word), bit = (unsigned long)descriptor % (8 * sizeof word);
  struct iovec here = {&word, sizeof word}, there = {NULL, sizeof word};
  for (int i = 0; i < 3 && (unsigned long)descriptor < count; i++) {
    if (!sets[i]) continue;
    there.iov_base = (void *)(sets[i] + at * sizeof word);
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof word || word >> bit & 1) return 1;
  }
  return 0;
}

static int is_in_epoll(int pid, unsigned long epoll, int descriptor) {
  char path[64], line[200];
  int found = 0, number;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%lu", pid, epoll);
  FILE *file = fopen(path, "re");
  while (file && !found && fgets(line, sizeof line, file)) found = sscanf(line, "tfd: %d", &number) == 1 && number == descriptor;
  if (file) fclose(file);
  return found;
}

static int is_in_call(const struct thread *thread, int descriptor) {
  char text[256];
  long number;
  unsigned long a[4];
  if (!read_file(thread->call, text, sizeof text)) return 0;
  if (sscanf(text, "%ld %lx %lx %lx %lx", &number, a, a + 1, a + 2, a + 3) < 5) return 0;
  switch (number) {
#ifdef SYS_poll
  case SYS_poll:
#endif
  case SYS_ppoll: return is_in_list(thread->pid, a[0], a[1], descriptor);
#ifdef SYS_select
  case SYS_select:
#endif
  case SYS_pselect6: return is_in_sets(thread->pid, a + 1, a[0], descriptor);
#ifdef SYS_epoll_wait
  case SYS_epoll_wait:
#endif
#ifdef SYS_epoll_pwait2
  case SYS_epoll_pwait2:
#endif
  case SYS_epoll_pwait: return is_in_epoll(thread->pid, a[0], descriptor);
  case SYS_read:
  case SYS_readv:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_write:
  case SYS_writev:
  case SYS_connect: return a[0] == (unsigned long)descriptor;
  default: return 0;
  }
}

static int is_waited_for(const struct owned *socket) {
  for (int i = 0; i < thread_count; i++)
    if (threads[i].pid == socket->pid && is_in_call(&threads[i], socket->descriptor)) return 1;
  return 0;
}

static int is_any_waited_for(void) {
  for (int i = 0; i < idle_count; i++)
    if (is_waited_for(&idle[i])) return 1;
  return 0;
}

static void name(int pid, const struct row *row) {
  struct process *process = tree_process(pid);
  struct in_addr address;
  char text[32];
  if (!process || process->is_connection_named) return;
  process->is_connection_named = 1;
  name_of(pid, text, sizeof text);
  address.s_addr = (in_addr_t)strtoul(row->remote, NULL, 16);
  say("time passes as on the machine while %s (pid %d) is connected to %s port %u, which is outside the command", text,
      pid, strlen(row->remote) == 8 ? inet_ntoa(address) : row->remote, row->remote_port);
}

static int look_for_connections(int listener) {
  static const char *files[] = {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"};
  int is_found = 0;
  socket_count = row_count = idle_count = 0;
  for (int i = 0; i < process_count; i++) collect_sockets(processes[i].pid);
  for (int i = 0; i < 4; i++) collect_rows(files[i]);
  for (int i = 0; i < row_count; i++) {
    struct owned *socket = rows[i].state == ESTABLISHED || rows[i].state == CONNECTING ? owned(rows[i].inode) : NULL;
    if (!socket || leads_inside(&rows[i])) continue;
    if (socket->pid == listener && !is_waited_for(socket)) {
      idle = grown(idle, idle_count, &idle_room, sizeof *idle);
      idle[idle_count++] = *socket;
      continue;
    }
    name(socket->pid, &rows[i]);
    is_found = 1;
  }
  return is_found;
}

int is_connected_outside(int connections, int listener) {
  static int known, is_outside;
  static int64_t looked;
  if (connections == known && !is_outside && !is_any_waited_for()) return 0;
  if (connections == known && machine_now() - looked < AGAIN) return 1;
  known = connections;
  is_outside = look_for_connections(listener);
  looked = machine_now();
  return is_outside;
}
