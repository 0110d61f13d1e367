/* What pytest's own process asks of the shim, by ctypes: when time is virtual, and the machine's clock meanwhile.
 * pytest lives below the coordinator for its whole session; time is virtual for one test after the other. */
#include "shim.h"

static int64_t earlier_date;
static int earlier_listener; /* of a test around this pytest, in virtual time as well */

/* Whether this process follows a coordinator's page. */
EXPORT int agentproc_is_below(void) { return shim_page != NULL; }

EXPORT int agentproc_is_virtual(void) { return shim_page && !shim_is_real(); }

EXPORT int64_t agentproc_machine(int clock) { return shim_machine(clock); }

/* From here on time is virtual, and begins at a date. The calling thread gets the signal if time stands still for good.
 * Returns whether real time passed before. */
EXPORT int agentproc_enter(int64_t date, int alarm) {
  int was_real = shim_is_real();
  int64_t now = shim_now();
  now += SECOND - (shim_page->monotonic + now) % SECOND; /* floats of whole seconds have exact differences */
  atomic_store(&shim_page->now, now); /* nobody looks at it until the offset says so */
  earlier_date = atomic_load(&shim_page->date);
  atomic_store(&shim_page->date, date - now);
  shim_page->notes[0] = 0;
  atomic_store(&shim_page->alarm, alarm);
  earlier_listener = atomic_exchange(&shim_page->listener, (int)CALL(SYS_gettid));
  atomic_store(&shim_page->offset, VIRTUAL);
  shim_tell();
  return was_real;
}

/* The clock of durations goes on from where it is, and that of dates is the machine's again. */
EXPORT void agentproc_leave(int was_real) {
  atomic_store(&shim_page->listener, earlier_listener);
  atomic_store(&shim_page->date, earlier_date);
  if (was_real) atomic_store(&shim_page->offset, shim_now() - shim_machine(CLOCK_MONOTONIC));
  shim_tell();
}

/* Have virtual time stand still, for as long as there is one holder (1), or let it go on (-1). It is noted with the
 * thread: one that is killed meanwhile holds no more. */
EXPORT void agentproc_hold(int more) {
  atomic_fetch_add(&shim_mine()->holds, more);
  shim_tell();
}

/* Wait by the machine's clock; meanwhile virtual time stands still, and the other processes come to rest. */
EXPORT void agentproc_nap(int64_t ns) {
  struct timespec time = shim_timespec(ns);
  agentproc_hold(1);
  CALL(SYS_ppoll, 0, 0, &time, 0, 8);
  agentproc_hold(-1);
}

/* Let all others do what they do at this instant; time does not move. */
EXPORT void agentproc_settle(void) {
  struct wait wait;
  long result;
  if (shim_is_real()) return;
  shim_begin(&wait, shim_now(), NULL);
  do result = CALL(SYS_ppoll, 0, 0, 0, &wait.mask, 8);
  while (shim_again(&wait, &result));
  shim_end(&wait);
}

EXPORT const char *agentproc_notes(void) { return shim_page->notes; }

EXPORT const char *agentproc_waits(void) { return shim_page->waits; }
