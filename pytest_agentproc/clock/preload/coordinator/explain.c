/* agentproc time --explain: a row for each jump of time. It says who held time at that instant, for how many milliseconds
 * of the machine, and whose deadline is the next one. Owns the table; decides nothing. */
#define _GNU_SOURCE
#include "coordinator.h"
#include <stdio.h>
#include <string.h>

#define MOST_HOLDERS 6 /* of one row; who held time for longer comes first */
#define ROW "%16s %16s  %-32s  %s"

static struct holder { int pid; int64_t ns; char name[32]; } holders[64];
static int holder_count, is_on;
static int64_t looked;

void explain_begin(void) {
  is_on = 1;
  looked = machine_now();
  say(ROW, "at", "jump", "to the deadline of", "held before by (ms of the machine)");
}

static struct holder *holder_of(int pid) {
  for (int i = 0; i < holder_count; i++)
    if (holders[i].pid == pid) return &holders[i];
  if (holder_count == (int)(sizeof holders / sizeof *holders)) return &holders[holder_count - 1];
  holders[holder_count] = (struct holder){.pid = pid};
  if (pid) name_of(pid, holders[holder_count].name, sizeof holders->name);
  return &holders[holder_count++];
}

void explain_movement(int pid) {
  if (!is_on) return;
  int64_t now = machine_now();
  holder_of(pid)->ns += now - looked;
  looked = now;
}

static struct holder *longest(void) {
  struct holder *found = &holders[0];
  for (int i = 1; i < holder_count; i++)
    if (holders[i].ns > found->ns) found = &holders[i];
  return found;
}

static void list_holders(char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < MOST_HOLDERS && holder_count; i++) {
    struct holder *one = longest();
    const char *between = used ? ", " : "";
    if (one->pid)
      used += (size_t)snprintf(text + used, size - used, "%s%s (pid %d) %.1f", between, one->name, one->pid, (double)one->ns / 1e6);
    else used += (size_t)snprintf(text + used, size - used, "%sa process that comes or goes %.1f", between, (double)one->ns / 1e6);
    if (used >= size) return;
    *one = holders[--holder_count];
  }
  if (!used) snprintf(text, size, "nobody");
}

static void print_row(int64_t from, int64_t to, const char *next, const char *held) {
  char at[40], jump[40];
  write_seconds(from, at, sizeof at);
  write_seconds(to - from, jump, sizeof jump);
  say(ROW, strcat(at, " s"), strcat(jump, " s"), next, held);
  holder_count = 0;
  looked = machine_now();
}

void explain_jump(const struct slot *slot, int64_t from, int64_t to) {
  static const char *const kinds[] = {"a wait", "a condition", "a timer", "a timerfd", "", "a wait", "a timerfd", ""};
  char held[400] = "", next[80], name[32];
  unsigned kind = (unsigned)atomic_load(&slot->kind) % (sizeof kinds / sizeof *kinds);
  if (!is_on || to <= from) return;
  name_of(atomic_load(&slot->pid), name, sizeof name);
  snprintf(next, sizeof next, "%s (pid %d): %s", name, atomic_load(&slot->pid), kinds[kind]);
  list_holders(held, sizeof held);
  print_row(from, to, next, held);
}

void explain_machine_time(int64_t from, int64_t to) {
  if (is_on && to > from) print_row(from, to, "(as on the machine)", "-");
}
