/* Finds TCP, UDP and Unix connections whose other end lies outside the tree: its answers come by the machine's clock.
 * Reads /proc/PID/fd for the sockets of the tree, /proc/net for where they lead, and asks the kernel (sock_diag) for the
 * other ends of Unix sockets.
 *
 * Programs hold connections that have no part in the test: a worker of pytest-xdist has one to its controller. So those
 * of the process that listens for alarms, which is pytest, count only while a thread of it waits for them (holders.c).
 * The same is true for Unix sockets: programs keep one to the desktop, the log or a keyring. It is true as well for UDP
 * without connect, whose destinations are noted in the page. Those that the command was started with do not count, as
 * its other streams do not: who starts it often gives it sockets in place of pipes. */
#define _GNU_SOURCE
#include "waits.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AGAIN (SECOND / 20) /* so often a connection to the outside is looked at */
#define MAPPED "0000000000000000FFFF0000"
enum { ESTABLISHED = 1, CONNECTING = 2, UNCONNECTED = 7 };

struct owned { unsigned long inode; int pid; };

/* One that counts while it is waited for. */
struct idle { unsigned long inode; char words[200]; };
struct row { char local[40], remote[40]; unsigned local_port, remote_port, state; unsigned long inode; };

/* A Unix socket, the number of its other end, and the name of that, which is the server's. */
struct ends { unsigned inode, peer; char name[109]; };

static struct owned *sockets;
static struct idle *idle;
static struct row *rows;
static struct ends *pairs;
static unsigned long *given;
static int socket_count, socket_room, row_count, row_room, idle_count, idle_room, pair_count, pair_room, given_count,
    given_room;

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
    struct owned found = {0, pid};
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

const char *socket_outside(unsigned long inode) {
  for (int i = 0; i < idle_count; i++)
    if (idle[i].inode == inode) return idle[i].words;
  return NULL;
}

static void add_idle(unsigned long inode, const char *format, const char *place, unsigned port) {
  idle = grown(idle, idle_count, &idle_room, sizeof *idle);
  idle[idle_count].inode = inode;
  snprintf(idle[idle_count++].words, sizeof idle->words, format, place, port);
}

#define CONNECTED "is connected to %s port %u, which is outside the command"
#define ASKED "waits for an answer (UDP) from %s port %u, which is outside the command"

static const char *address_of(const struct row *row) {
  struct in_addr address = {(in_addr_t)strtoul(row->remote, NULL, 16)};
  return strlen(row->remote) == 8 ? inet_ntoa(address) : row->remote;
}

/* Where a socket that is not connected has sent to. */
static void look_for_destinations(const struct row *socket) {
  struct row row = *socket;
  for (int i = 0; i < DESTINATIONS; i++) {
    struct destination *to = &page->destinations[i];
    const uint32_t *a = to->address;
    if (to->inode != socket->inode) continue;
    snprintf(row.remote, sizeof row.remote, to->is_long ? "%08X%08X%08X%08X" : "%08X", a[0], a[1], a[2], a[3]);
    shorten(row.remote);
    row.remote_port = to->port;
    if (!leads_inside(&row)) add_idle(row.inode, ASKED, address_of(&row), row.remote_port);
  }
}

/* Unix sockets. */

static void note_pair(const struct nlmsghdr *header) {
  struct unix_diag_msg *message = NLMSG_DATA(header);
  struct ends pair = {.inode = message->udiag_ino};
  int left = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof *message);
  for (struct rtattr *part = (void *)(message + 1); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    size_t size = RTA_PAYLOAD(part);
    if (part->rta_type == UNIX_DIAG_PEER && size >= sizeof pair.peer) memcpy(&pair.peer, RTA_DATA(part), sizeof pair.peer);
    if (part->rta_type == UNIX_DIAG_NAME && size < sizeof pair.name) memcpy(pair.name, RTA_DATA(part), size);
  }
  if (!*pair.name) pair.name[0] = '@'; /* an abstract one begins with a null */
  pairs = grown(pairs, pair_count, &pair_room, sizeof *pairs);
  pairs[pair_count++] = pair;
}

/* All that are connected, in this network namespace. */
static void collect_pairs(void) {
  struct { struct nlmsghdr header; struct unix_diag_req request; } ask = {
      {sizeof ask, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
      {.sdiag_family = AF_UNIX, .udiag_states = 1u << ESTABLISHED, .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_NAME}};
  char answer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
  struct timeval limit = {1, 0};
  int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), is_over = 0;
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ssize_t size = send(file, &ask, sizeof ask, 0);
  while (!is_over && size > 0 && (size = recv(file, answer, sizeof answer, 0)) > 0)
    for (struct nlmsghdr *header = (void *)answer; NLMSG_OK(header, size); header = NLMSG_NEXT(header, size)) {
      is_over |= header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR;
      if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY) note_pair(header);
    }
  if (file >= 0) close(file);
}

static const struct ends *pair_of(unsigned long inode) {
  for (int i = 0; i < pair_count; i++)
    if (pairs[i].inode == inode) return &pairs[i];
  return NULL;
}

static int is_given(unsigned long inode) {
  for (int i = 0; i < given_count; i++)
    if (given[i] == inode) return 1;
  return 0;
}

void note_given_sockets(void) {
  collect_sockets(getpid());
  for (int i = 0; i < socket_count; i++) {
    given = grown(given, given_count, &given_room, sizeof *given);
    given[given_count++] = sockets[i].inode;
  }
}

static void look_for_unix_connections(void) {
  for (int i = 0; i < socket_count; i++) {
    const struct ends *pair = pair_of(sockets[i].inode), *other;
    if (!pair || !pair->peer || owned(pair->peer) || is_given(pair->inode)) continue;
    other = pair_of(pair->peer);
    add_idle(pair->inode, "waits for the Unix socket %s, whose other end is outside the command",
             other && other->name[0] ? other->name : "without a name", 0);
  }
}

static int look_for_connections(int listener) {
  static const char *files[] = {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"};
  int is_found = 0;
  socket_count = row_count = idle_count = pair_count = 0;
  for (int i = 0; i < process_count; i++) collect_sockets(processes[i].pid);
  for (int i = 0; i < 4; i++) collect_rows(files[i]);
  for (int i = 0; i < row_count; i++) {
    struct row *row = &rows[i];
    struct owned *socket = owned(row->inode);
    if (socket && row->state == UNCONNECTED) look_for_destinations(row);
    if (!socket || (row->state != ESTABLISHED && row->state != CONNECTING) || leads_inside(row)) continue;
    if (socket->pid == listener) {
      add_idle(row->inode, CONNECTED, address_of(row), row->remote_port);
      continue;
    }
    struct process *process = tree_process(socket->pid);
    if (process) name_stranger(process, &process->is_connection_named, CONNECTED, address_of(row), row->remote_port);
    is_found = 1;
  }
  collect_pairs();
  look_for_unix_connections();
  for (int i = 0; i < thread_count; i++) threads[i].vetted = UINT64_MAX; /* each wait for one of them counts from here on */
  return is_found;
}

int is_connected_outside(int connections, int listener) {
  static int known, is_outside;
  static int64_t looked;
  if (connections == known && (!is_outside || machine_now() - looked < AGAIN)) return is_outside;
  known = connections;
  is_outside = look_for_connections(listener);
  looked = machine_now();
  return is_outside;
}
