/* What the parts of the shim share: the page, system calls that nobody intercepts, and waits. */
#pragma once
#define _GNU_SOURCE
#include "../shared/page.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The next definition of a function that the shim defines, too: libc's. */
#define NEXT(name) ({ static __typeof__(&name) next_; if (!next_) next_ = dlsym(RTLD_NEXT, #name); next_; })

/* The page; without one (no coordinator, or one that cannot be reached) everything is passed on to the kernel. */
extern struct page *shim_page;

/* The environment's two entries, for programs that are started without them. */
extern char shim_preload[], shim_variable[];

/* A system call as the kernel takes it: -1 and errno on failure. */
long shim_call(long number, long a, long b, long c, long d, long e, long f);
#define CALL_(n, a, b, c, d, e, f, ...) \
  shim_call((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

int64_t shim_machine(clockid_t clock);
int shim_is_real(void);
int64_t shim_now(void);
int64_t shim_after(int64_t duration);
int64_t shim_base(clockid_t clock);
int shim_is_virtual(clockid_t clock);
int shim_is_dated(clockid_t clock);
int64_t shim_guessed_base(int64_t instant);

/* Count what may have woken a thread that waits for a condition; after the deed, whatever came of it. */
void shim_count_waking(void);

int shim_is_valid(const struct timespec *time);
int64_t shim_ns(const struct timespec *time);
struct timespec shim_timespec(int64_t ns);
int64_t shim_left(const struct slot *slot);

/* The machine's instant for one of the page's, for a wait that the kernel or libc ends: the program is named meanwhile.
 * Where this process is traced, the tracer ends it, at the page's instant. */
struct timespec shim_by_machine(clockid_t clock, const struct timespec *until);

/* Count what a program does that does not wait: who spins moves time at last. */
enum { SPIN_READ = 1, SPIN_YIELD = 100, SPIN_LOOK = 256, SPIN_EXPIRED = 1000, SPIN_POLL = 4096 };
void shim_spin(unsigned weight);

/* Count a look without a wait that found nothing. A wait without a timeout takes such looks back: it was the wait that
 * they led to. It takes nothing else back, as it may be over at once, again and again, at the end of a pipe. */
void shim_spin_look(unsigned weight);
void shim_forgive_looks(void);

/* The thread waits, or need not, as what it waits for is there: either way it does not spin. */
void shim_rest(void);

/* Wait at this instant until nobody else moves; 0: this thread cannot wait. */
int shim_settle(void);

struct slot *shim_claim(int kind);
void shim_free(struct slot *slot);
void shim_set(struct slot *slot, int64_t deadline);
void shim_arm(struct slot *slot, int kind, int64_t deadline);
void shim_disarm(struct slot *slot);
struct slot *shim_mine(void);
struct slot *shim_mine_if_noted(void);
void shim_tell(void);

/* A wait in a call without a timeout, which WAKE_SIGNAL ends:
 *   shim_begin(&wait, deadline, mask);
 *   do result = CALL(..., &wait.mask, ...); while (shim_again(&wait, &result));
 *   shim_end(&wait);
 * The result is 0 if the instant came first; then `expired` is set. */
struct wait {
  struct slot *slot;
  sigset_t mask; /* for the call: that of the caller, which lets WAKE_SIGNAL in */
  int expired;
  int error; /* errno as the caller left it */
};
void shim_begin(struct wait *wait, int64_t deadline, const sigset_t *mask);
int shim_again(struct wait *wait, long *result);
void shim_end(struct wait *wait);

/* Let WAKE_SIGNAL in or keep it out, around calls that take no mask. */
void shim_mask_wake(int how);

/* The same in a call that takes no mask: WAKE_SIGNAL is let in around it. If it comes just before the call, the call does
 * not see it: the coordinator sends it again. If the instant came first, the result is -1, and errno is `late`; 0: it is 0. */
void shim_begin_open(struct wait *wait, int64_t deadline);
int shim_is_granted_already(struct wait *wait);
void shim_end_open(struct wait *wait, long *result, int late);

/* The numbers of the shim's own timers begin here. */
#define FIRST_TIMER 0x10000

/* `a` are the six arguments of futex. */
long shim_call_futex(const long *a);

/* Make sure that this process has its helper. */
void shim_need_helper(void);
void shim_forget_helper(void);
void shim_forget_read_timeout(int descriptor);
void shim_adopt_timers(void);
void shim_forget_timers(void);
