/* Finds TCP and UDP connections whose other end lies outside the tree: its answers come by the machine's clock.
 * Reads /proc/PID/fd for the sockets of the tree, and /proc/net for where they lead. */
#define _GNU_SOURCE
#include "outside.h"
#include "page.h"
#include "tree.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGAIN (SECOND / 20) /* so often a connection to the outside is looked at */
#define MAPPED "0000000000000000FFFF0000"
enum { ESTABLISHED = 1, CONNECTING = 2 };

struct owned { unsigned long inode; int pid; };
struct row { char local[40], remote[40]; unsigned local_port, remote_port, state; unsigned long inode; };

static struct owned *sockets;
static struct row *rows;
static int socket_count, socket_room, row_count, row_room;

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

static int owner(unsigned long inode) {
  for (int i = 0; i < socket_count; i++)
    if (sockets[i].inode == inode) return sockets[i].pid;
  return 0;
}

static int is_any(const char *address) { return strspn(address, "0") == strlen(address); }

/* The other end, or whoever listens for it, is below. */
static int leads_inside(const struct row *row) {
  for (int i = 0; i < row_count; i++)
    if (rows[i].local_port == row->remote_port && (is_any(rows[i].local) || !strcmp(rows[i].local, row->remote)) &&
        owner(rows[i].inode))
      return 1;
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

static int look_for_connections(void) {
  static const char *files[] = {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"};
  int is_found = 0;
  socket_count = row_count = 0;
  for (int i = 0; i < process_count; i++) collect_sockets(processes[i].pid);
  for (int i = 0; i < 4; i++) collect_rows(files[i]);
  for (int i = 0; i < row_count; i++) {
    int pid = rows[i].state == ESTABLISHED || rows[i].state == CONNECTING ? owner(rows[i].inode) : 0;
    if (!pid || leads_inside(&rows[i])) continue;
    name(pid, &rows[i]);
    is_found = 1;
  }
  return is_found;
}

int is_connected_outside(int connections) {
  static int known, is_outside;
  static int64_t looked;
  if (connections == known && !is_outside) return 0;
  if (connections == known && machine_now() - looked < AGAIN) return 1;
  known = connections;
  is_outside = look_for_connections();
  looked = machine_now();
  return is_outside;
}
