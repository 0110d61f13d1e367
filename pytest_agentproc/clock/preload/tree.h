/* The processes and threads below the coordinator, as /proc shows them. */
#pragma once
#include <stdint.h>

struct process {
  int pid, depth;
  int is_alive;       /* a thread of it has not died */
  int round;          /* of the walk that saw it last */
  uint64_t image;     /* where its arguments begin: another program in the same process has another place */
  int carries;        /* 1: it has mapped the page; 0: it has not; -1: nobody has looked yet */
  int64_t used;       /* the time on a core that this image had when it was first looked at; -1: not yet */
  int is_named;       /* it was said to be a stranger */
  int is_connection_named;
  int counts_always;  /* it makes its own system calls: what it reads of the clock is the machine's */
};

struct thread {
  int pid, tid, depth;
  int round;
  int stat, schedstat, children, call, place; /* its files, kept open */
  uint64_t runs;                       /* how often it had been on a core when it was settled */
  int is_settled;                      /* it was seen blocked, or dead, after so many runs */
  uint64_t vetted;                     /* the run at which its call was found to wait by no clock of the kernel's */
  char state;                          /* as in /proc/PID/stat */
};

extern struct thread *threads;
extern int thread_count;
extern struct process *processes;
extern int process_count;

enum look { MOVES, QUIET };

/* QUIET: there was an instant at which every thread was blocked. */
enum look tree_look(void);
void tree_walk(void);

struct process *tree_process(int pid);
struct thread *tree_thread(int tid);
int is_dead(char state);
int is_stopped(char state);

/* Whether the kernel knows it no more, or only as a zombie; it need not be in the list. */
int is_thread_dead(int pid, int tid);

/* Read a file of /proc from its beginning; 0 if there is nothing to read. */
int read_file(int descriptor, char *text, int size);
int open_file(const char *pattern, int pid, int tid);
void name_of(int pid, char *name, int size);

int64_t machine_now(void);
void nap(int64_t ns);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
