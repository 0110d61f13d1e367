/* What a blocked thread has asked the kernel for (waits.c), and who else can end its wait (holders.c). */
#pragma once
#include "coordinator.h"
#include "../shared/calls.h"

/* `place` is the address of the code that made the call. */
struct call {
  long number;
  unsigned long a[6], place;
};

struct call read_call(const struct thread *thread);

/* Whether the kernel ends the call by its own clock, as its arguments say. */
int is_timed(const struct call *call);

enum use { NO_USE, READS, WRITES, WAITS_FOR };
enum use use_of(long number);

/* The same because of SO_RCVTIMEO or SO_SNDTIMEO. */
int has_limit_of_socket(int pid, int descriptor, enum use use);

/* Whether `check` holds for one of the descriptors that a call waits for. */
typedef int leads(int pid, int descriptor);
int any_in_epoll(int pid, int epoll, leads *check);
int any_descriptor(const struct thread *thread, const struct call *call, leads *check);

/* holders.c: whether somebody outside can end what a thread waits for; `words` say what that is. */
int waits_for_outside(const struct thread *thread, const struct call *call, char *words, size_t size);

/* Whether the last call of it met a terminal. */
extern int has_terminal;

/* outside.c: the words for a socket that leads outside, and that counts only while it is waited for; NULL: it is none. */
const char *socket_outside(unsigned long inode);

/* strangers.c: the line of /proc/PID/maps that holds a text, or that an address lies in: 1 if there is one, -1 if the
 * process has ended, so that it has no lines at all. */
int find_mapping(int pid, const char *text, uint64_t address, char *line, int size);

/* The same line for a process whose time passes as on the machine; it is said once for each flag. */
void name_stranger(struct process *process, int *is_named, const char *reason, ...) __attribute__((format(printf, 3, 4)));
