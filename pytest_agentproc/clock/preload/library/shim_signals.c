/* Signals: those that a program sends are counted, and that of the coordinator is hidden from it. */
#include "shim.h"
#include <pthread.h>
#include <string.h>

/* What sends a signal. A thread that wakes by one has its waiting call interrupted. */

#define COUNTED(name, ...)                 \
  __typeof__(NEXT(name)(__VA_ARGS__)) result = NEXT(name)(__VA_ARGS__); \
  shim_count_waking();                     \
  return result

/* Signal 0 asks whether somebody is there. One who was killed just now, or an orphan that nobody has reaped, still is, by
 * chance: so all others do what they do at this instant before the answer. */
EXPORT int kill(pid_t pid, int number) {
  if (!number) {
    int found = NEXT(kill)(pid, 0);
    return found || !shim_settle() ? found : NEXT(kill)(pid, 0);
  }
  COUNTED(kill, pid, number);
}

EXPORT int killpg(pid_t group, int number) {
  if (group < 0) return NEXT(killpg)(group, number);
  return kill(group ? -group : 0, number);
}

EXPORT int sigqueue(pid_t pid, int number, const union sigval value) { COUNTED(sigqueue, pid, number, value); }

EXPORT int pthread_kill(pthread_t thread, int number) { COUNTED(pthread_kill, thread, number); }

EXPORT int pthread_sigqueue(pthread_t thread, int number, const union sigval value) {
  COUNTED(pthread_sigqueue, thread, number, value);
}

EXPORT int tgkill(pid_t pid, pid_t tid, int number) { COUNTED(tgkill, pid, tid, number); }

EXPORT int pthread_cancel(pthread_t thread) { COUNTED(pthread_cancel, thread); }

/* WAKE_SIGNAL is the shim's: no program handles it, lets it in or sees it in its mask. */

EXPORT int sigaction(int number, const struct sigaction *restrict new, struct sigaction *restrict old) {
  if (!shim_page || number != WAKE_SIGNAL) return NEXT(sigaction)(number, new, old);
  if (old) memset(old, 0, sizeof *old);
  return 0;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler) {
  return shim_page && number == WAKE_SIGNAL ? SIG_DFL : NEXT(signal)(number, handler);
}

EXPORT int pthread_sigmask(int how, const sigset_t *restrict new, sigset_t *restrict old) {
  sigset_t copy;
  if (shim_page && new && how != SIG_BLOCK) {
    copy = *new;
    if (how == SIG_SETMASK) sigaddset(&copy, WAKE_SIGNAL);
    else sigdelset(&copy, WAKE_SIGNAL);
    new = &copy;
  }
  int error = NEXT(pthread_sigmask)(how, new, old);
  if (shim_page && old && !error) sigdelset(old, WAKE_SIGNAL);
  return error;
}

EXPORT int sigprocmask(int how, const sigset_t *restrict new, sigset_t *restrict old) {
  int error = pthread_sigmask(how, new, old);
  if (error) errno = error;
  return error ? -1 : 0;
}
