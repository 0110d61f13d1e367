/* The one page of memory that the coordinator and every process below it share. Owns its layout.
 *
 * Each process below can write anything here, also one that has given up its rights. So the coordinator takes what it
 * reads for the word of a stranger: it reads a value once, checks it, and asks the kernel whom it may command. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define SECOND 1000000000LL
#define SLOTS 4096
#define NOTED_SLOTS 256 /* of these alone it counts for which condition a thread waits: each waker looks through them */
#define NEVER 0

/* The signal that ends a wait whose instant has come. Programs do not see it: each wait lets it in, all else keeps it out. */
#define WAKE_SIGNAL 63

/* The value of `offset` while time is virtual. The fakes and the broker read it and the listener at their places. */
#define VIRTUAL INT64_MIN

/* The kernel's order to a timerfd to have run out so many times (TFD_IOC_SET_TICKS). Its header is none beside libc's. */
#define SET_TICKS _IOW('T', 0, uint64_t)

#define PAGE_NAME "agentproc-clock"
#define PAGE_VARIABLE "AGENTPROC_CLOCK"

enum kind {
  WAITS,     /* a thread in a call that WAKE_SIGNAL ends */
  CONDITION, /* a thread in pthread_cond_wait, which no signal ends: the helper of its process does */
  TIMER,     /* a timer of the process: its end is a signal */
  TIMERFD,   /* a descriptor that becomes readable */
  HELPER,    /* the thread of the shim's own in a process: it waits for orders, never for an instant */
  TRACED,    /* a thread in a call that the tracer ends: its program has no shim */
  TRACED_FILE, /* a timerfd that the tracer ends */
  ASKS,      /* a process that asks to be traced before it becomes such a program: launch.c */
};

struct slot {
  _Atomic int32_t tid; /* the thread that has claimed it; 0: it is free */
  _Atomic int32_t pid; /* its process; 0: it is being claimed */
  _Atomic int32_t kind;
  _Atomic int32_t granted;    /* its instant has come */
  _Atomic int64_t armed;      /* the page's instant at which the deadline was set */
  _Atomic int64_t deadline;   /* the page's instant in nanoseconds; NEVER: it waits for none */
  _Atomic int32_t is_real;    /* the wait began in real time, so its deadline is an instant of the machine's */
  _Atomic uint32_t serial;    /* which of its process's waits this is: the order on ties */
  _Atomic uint32_t order;     /* HELPER: the number of the slot to serve plus one; it waits for this word to change */
  _Atomic int32_t holds;      /* so often its thread has virtual time stand still; -1 lets it go on within another hold */
  _Atomic int64_t interval;   /* timers: the nanoseconds until the next end; 0: there is one end */
  int32_t signal, thread;     /* TIMER: what to send (0: nothing), and to which thread (0: to the process) */
  int32_t descriptor;         /* TIMERFD */
  int32_t is_dated;           /* TIMER: it counts on the clock of dates */
  int32_t is_inherited;       /* TIMER: of setitimer and alarm, which another image of the process keeps */
  uint64_t value;             /* TIMER: what its signal carries; TIMERFD: so many ends were not read */
  void (*_Atomic notify)(uint64_t); /* TIMER: the function to call in place of a signal */
  void *_Atomic condition;    /* what a thread waits for, with or without a deadline */
};

/* A waiter was let go at its deadline; `times` counts those that followed it with nothing else between them. */
struct wake {
  int32_t pid, tid;
  int64_t armed, at, times;
};
#define WAKES 4096

/* Where a UDP socket that is not connected has sent to: its other end, as far as anybody knows. */
struct destination {
  uint64_t inode; /* of the socket; 0: none */
  uint32_t address[4], port;
  int32_t is_long; /* IPv6 */
};
#define DESTINATIONS 64

struct page {
  _Atomic int64_t now;     /* the virtual instant, in nanoseconds since the coordinator began */
  _Atomic int64_t offset;  /* real time passes: the page's instants minus the machine's; VIRTUAL: `now` is the instant */
  _Atomic int32_t listener, alarm; /* the thread that gets this signal when time stands still; 0: there is none */
  _Atomic int64_t date;    /* what the clocks of dates showed at the beginning; real time has the machine's date */
  int64_t monotonic;       /* what the clocks of durations showed then */
  _Atomic uint32_t changes; /* counts what waiters do: the coordinator looks again */
  _Atomic int32_t top;     /* no slot from here on was ever claimed */
  _Atomic int32_t connections; /* counts what may lead out of the tree */
  _Atomic int32_t wake_count; /* so many of the wakes are noted; the harness sets it to 0 */
  _Atomic uint32_t wakings; /* counts, after each, what may wake a thread that waits for a condition */
  struct wake wakes[WAKES];   /* the first ones: `harness/_wakes.py` reads them */
  char notes[2048];           /* what was said since the listener began */
  char waits[1024];           /* the threads and processes that wait as time stands still */
  struct slot slots[SLOTS];
  _Atomic int32_t asks;       /* counts the processes that have asked to be traced */
  _Atomic uint32_t destination_count; /* so many were ever noted: the oldest one makes room */
  struct destination destinations[DESTINATIONS];
  _Atomic int32_t is_untraced; /* nobody is traced: the user or the machine forbids it */
};

/* A free slot for a thread or a timer; NULL: there is none left. */
struct slot *page_claim(struct page *page, int tid, int pid, int kind);
void page_free(struct slot *slot);

/* Note where a socket sends to; `to` is the address as the call has it. */
struct sockaddr;
void page_note_destination(struct page *page, uint64_t inode, const struct sockaddr *to);
