/* What the files of the tracer share: the traced threads, their time and their memory. */
#pragma once
#include "coordinator.h"
#include "../shared/calls.h"
#include <sys/syscall.h>
#include <sys/user.h>
#include <time.h>

#if defined(__x86_64__)

#define FOR_EVER (30LL * 365 * 86400 * SECOND)

typedef struct user_regs_struct registers;

/* UNKNOWN: it has just been begun, and by whom is not known yet. PASSED: it carries the library, and serves itself. */
enum mode { UNKNOWN, PASSED, OWNED };

struct tracee {
  int tid, pid;
  enum mode mode;
  int has_stopped;    /* its first stop has come */
  int is_listening;   /* it is stopped as by SIGSTOP: it moves no more than one that is not traced */
  int is_waiting;     /* in a call whose end stops it */
  int is_stepping;    /* that wait is ours: it spins */
  registers entry;    /* of that call, as the program made it */
  int64_t deadline;
  int is_settling;    /* that wait is ours: it is about to look for a child */
  int has_settled;
  int looks;          /* so many at one instant */
  int64_t looked_at;
  int can_resume;     /* the call was interrupted, and the kernel may begin it again: the deadline stays */
  unsigned long area; /* its vDSO reads the page, mapped there; 0: it has none */
  unsigned readings, steps;
  int carries_shim;   /* it makes its own calls besides those of the shim, which serves itself */
  unsigned long shim_begin, shim_end; /* where that lies; 0: not found yet */
  int shim_looks;
  int is_go;          /* the runtime of Go naps while it looks for work: its naps take no time */
  int naps;           /* so many at one instant */
  int64_t napped_at;
  int64_t spinning_since, spun_at; /* by the machine's clock its naps end since then; by the page's */
  int64_t read_at;
  struct slot *slot;
};

/* tracer.c: the traced threads. */

struct tracee *tracee_of(int tid);
int group_of(int tid);

/* Give a list room for one more. */
void *grown_list(void *list, int count, int *room, size_t size);

/* Let a stopped thread go on; `signal` is delivered to it. */
void resume(struct tracee *tracee, int request, int signal);
int get_memory(int tid, unsigned long place, void *into, size_t size);
int put_memory(int tid, unsigned long place, const void *from, size_t size);

/* Whether a call comes from the shim, which knows what it waits for. */
int is_call_of_shim(struct tracee *tracee, unsigned long place);

/* A slot of this thread's, or the end of the coordinator: there is none left. */
struct slot *demand_slot(int tid, int pid, int kind);

/* tracer_calls.c: the calls about time. */

void stop_at_call(struct tracee *tracee);
void stop_at_end(struct tracee *tracee);
void stop_for_signal(struct tracee *tracee, int signal);
void disarm(struct tracee *tracee);

/* The call is not made: it gives `result`. */
void answer(struct tracee *tracee, registers *regs, long result);

int is_real_time(void);
int64_t page_now(void);
int is_dated(long clock);
int is_virtual(long clock);

/* What a clock shows at the page's instant 0. */
int64_t base_of(int dated);
int64_t after(int64_t duration);
int64_t ns_of(struct timespec time);
struct timespec time_of(int64_t ns);

/* tracer_timers.c: timers. */

void serve_timer(struct tracee *tracee, registers *regs);
void note_created_timer(struct tracee *tracee, registers *regs);
void forget_timers(int pid, int keeps_inherited);

/* The shim arms this one from here on. */
void forget_timerfd(int pid, int descriptor);

/* tracer_code.c: what a traced program is made to do. */

/* Have the vDSO of a program that has just begun read the page; gives where the page is mapped. 0: it has no such vDSO,
 * or not all that it takes. */
unsigned long give_clock(int tid);

/* A program that finds no vDSO asks the kernel for the time. */
void hide_vdso(int tid);

/* A thread that stands at the end of `socket` has it hold no small pieces back. */
void send_at_once(struct tracee *tracee, const registers *regs);

/* The file of a descriptor of a thread that stands at a call, opened here; -1: it cannot be had. */
int borrow_file(struct tracee *tracee, const registers *regs, int descriptor);

/* A thread that died while it was made to do something: 0 if there was none. */
int take_lost(int *status);

#endif
