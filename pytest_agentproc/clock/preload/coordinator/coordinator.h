/* What the parts of the coordinator share: the tree, the waiters, and what does not follow the page. */
#pragma once
#include "../shared/page.h"
#include <signal.h>
#include <stdint.h>

extern struct page *page;
extern int page_file; /* its descriptor */

/* tree.c: the processes and threads below the coordinator, as /proc shows them. */

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
  int stat, schedstat, call, place;    /* its files, kept open */
  uint64_t runs;                       /* how often it had been on a core when it was settled */
  int is_settled;                      /* it was seen blocked, or dead, after so many runs */
  uint64_t vetted;                     /* the run at which its call was looked at */
  int waits_outside;                   /* in that run it waits for what ends by the machine's clock */
  int waits_for_terminal;              /* in that run */
  int64_t vetted_at;                   /* by the machine's clock */
  int waits_for_condition;             /* in that run it waits for a condition, which only `page->wakings` can end */
  uint64_t proven;                     /* the count of wakings before it was last seen blocked */
  char state;                          /* as in /proc/PID/stat */
};

extern struct thread *threads;
extern int thread_count;
extern struct process *processes;
extern int process_count;

/* A reason that no shim counts to look again at each thread which waits for a condition. */
void tree_count_waking(void);

enum look { MOVES, QUIET };

/* QUIET: there was an instant at which every thread was blocked. */
enum look tree_look(void);
void tree_walk(void);

/* From here on walks list processes alone, and keep no files. */
void tree_begin_end(void);

/* The process that moved in the last look; 0: one that comes or goes. */
extern int tree_mover;

/* Whether the last look was QUIET, and nothing has happened since: what the lists say is true now. */
extern int tree_is_seen;

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

/* rights.c: whom the coordinator may command. */

int parent_of(int pid);

/* Whether the kernel says now that the process is below us: the page is no proof. */
int is_below(int pid);

/* Send a signal to a process below, and to no other that has its number meanwhile; 0: it was not sent. */
int signal_below(int pid, int thread, int signal, const siginfo_t *info);

/* The same for the signal that ends a wait: only if the process takes it, as one that carries the page does. */
int wake_below(int pid, int tid);

/* A file of a process, opened here too; -1: the machine forbids it, or there is none. */
int copy_of(int pid, int descriptor);

/* Whether every process below may signal this one: one that may not could have written its order into the page. */
int is_for_all_to_signal(int pid);

int64_t machine_now(void);
void nap(int64_t ns);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* slots.c: the waiters, and which of them goes. */

/* The waiter whose turn it is; `is_busy` says that one that had its turn has not noticed yet. All are blocked. */
struct slot *slots_next(int *is_busy);

/* Let a waiter go, and move time to its deadline. */
void slots_grant(struct slot *slot);

/* Let each wait go that began in real time and is due; gives the nanoseconds until the next one. */
int64_t slots_serve_real_time(void);

/* Let a timerfd run out; `ends` counts those that nobody has read. It is readable before this returns. */
void end_timerfd(int file, uint64_t *ends);

/* Give a slot back, if it is still this thread's. */
void slots_free(struct slot *slot, int tid);

/* So many slots have ever been claimed. */
int slots_count(void);

/* Whether a wait of real time may end what seems to be for ever. */
int slots_have_real_wait(void);

/* Whether a living thread has virtual time stand still. */
int slots_hold_time(void);

/* Whether a thread waits for a condition that an address of its process lies in. */
int slots_have_condition(int tid, uint64_t address);

/* Only while everybody is blocked: the owner of a new slot may not have been seen yet. */
void slots_free_dead(void);

/* The same while nobody walks the tree. */
void slots_free_gone(void);

/* strangers.c, outside.c and holders.c: what does not follow the page. */

/* Whether time must pass as on the machine for now. Each reason is said once. */
int has_stranger(enum look look);

/* Whether a process below is connected to one that is not. Each such process is named once.
 * `connections` is how often anybody below has connected or accepted: only then is there anything new to look for.
 * `listener` is the process whose connections count only while it waits for them; 0: there is none. All are blocked. */
int is_connected_outside(int connections, int listener);

/* Have the text of each terminal that is waited for arrive; gives whether there is one. All are blocked. */
int bring_text_of_terminals(void);

/* What was there before the command counts as somebody's outside. */
void note_earlier_queues(void);

/* The sockets that are open now lead outside, and never count. */
void note_given_sockets(void);

/* explain.c: the table of --explain. */

void explain_begin(void);

/* A look has seen this process move; 0: one that comes or goes. */
void explain_movement(int pid);

/* Time moves to the deadline of a slot, or has moved as on the machine. */
void explain_jump(const struct slot *slot, int64_t from, int64_t to);
void explain_machine_time(int64_t from, int64_t to);

/* coordinator.c: seconds without needless zeros; `text` has room for 32 characters. */
void write_seconds(int64_t ns, char *text, int size);

/* tracer.c: programs that the shim cannot reach. The coordinator is their tracer (ptrace), and a filter (seccomp) stops
 * them at the calls that are about time. */

/* Serve what the traced threads have stopped for, and who asks to be traced; gives how many. Deaths of children that
 * are not traced are told to `died`. */
int tracer_serve(void (*died)(int pid, int status));

/* Whether a process has no shim and is traced: its time is the page's. */
int tracer_has(int pid);

/* Whether a thread has stopped for the tracer, which will let it go on. */
int tracer_holds(int tid);

/* End a wait whose instant has come. */
void tracer_wake(struct slot *slot);

/* End a timer of a traced process; 0: it is none. */
int tracer_end_timer(struct slot *slot);

/* launch.c: `words` are a path and the words of the program there: ask to be traced, and become it. */
_Noreturn void launch(char **words);
