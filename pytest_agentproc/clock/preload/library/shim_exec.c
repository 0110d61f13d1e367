/* Programs that are started: they get the shim whatever environment they are given, because SDKs scrub it. The caller
 * may be a child of vfork, so nothing but the stack is used. */
#include "../shared/image.h"
#include "shim.h"
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>

extern char **environ;

#define PRELOAD "LD_PRELOAD="
#define VARIABLE PAGE_VARIABLE "="

static const char *library(void) { return shim_preload + strlen(PRELOAD); }

static int begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static size_t count(char *const *list) {
  size_t n = 0;
  while (list && list[n]) n++;
  return n;
}

static const char *foreign_preload(char *const *environment) {
  for (; environment && *environment; environment++)
    if (begins(*environment, PRELOAD) && !strstr(*environment, library())) return *environment + strlen(PRELOAD);
  return NULL;
}

/* A program for musl does not start with a library for glibc. */
static char *const *without_shim(char *const *environment, char **full) {
  size_t n = 0;
  for (; environment && *environment; environment++)
    if (!begins(*environment, VARIABLE) && (!begins(*environment, PRELOAD) || !strstr(*environment, library())))
      full[n++] = *environment;
  full[n++] = shim_variable;
  full[n] = NULL;
  return full;
}

/* The caller's environment with our two entries; the shim comes before what else is preloaded. */
static char *const *complete(const char *path, char *const *environment, char **full, char *preload) {
  if (!shim_page) return environment;
  if (is_for_musl(path)) return without_shim(environment, full);
  const char *foreign = foreign_preload(environment);
  int has_preload = 0;
  size_t n = 0;
  strcpy(preload, shim_preload);
  if (foreign && *foreign) strcat(strcat(preload, ":"), foreign);
  for (; environment && *environment; environment++) {
    if (begins(*environment, VARIABLE) || (foreign && begins(*environment, PRELOAD))) continue;
    if (begins(*environment, PRELOAD)) has_preload = 1;
    full[n++] = *environment;
  }
  if (!has_preload) full[n++] = preload;
  full[n++] = shim_variable;
  full[n] = NULL;
  return full;
}

/* A program that the shim does not reach is started through the coordinator's launcher, which has it traced: `launcher`
 * lies beside the shim. `traced` has room for three words more than `words`. */
#define MORE_WORDS 4
static const char *started(const char *path, char *const **words, char **traced, char *launcher) {
  if (!shim_page || atomic_load(&shim_page->is_untraced) || !is_beyond_shim(path)) return path;
  strcpy(launcher, library());
  strcpy(strrchr(launcher, '/') + 1, "coordinator");
  traced[0] = launcher;
  traced[1] = (char *)"--traced";
  traced[2] = (char *)path;
  size_t n = 0;
  for (; *words && (*words)[n]; n++) traced[n + 3] = (*words)[n];
  traced[n + 3] = NULL;
  *words = traced;
  return launcher;
}

#define START(path, words)                     \
  char *traced_[count(words) + MORE_WORDS];    \
  char launcher_[PATH_MAX];                    \
  const char *start_ = path;                   \
  char *const *words_ = words;                 \
  start_ = started(start_, &words_, traced_, launcher_)

#define COMPLETE(path, given)                                                               \
  const char *foreign_ = foreign_preload(given);                                            \
  char *full_[count(given) + 3];                                                            \
  char preload_[strlen(shim_preload) + (foreign_ ? strlen(foreign_) : 0) + 2];              \
  char *const *environment = complete(path, given, full_, preload_)

#define COMPLETE_NAMED(name, given) \
  char path_[PATH_MAX] = "";        \
  COMPLETE(find_program(name, path_, sizeof path_), given)

EXPORT int execve(const char *path, char *const words[], char *const given[]) {
  COMPLETE(path, given);
  START(path, words);
  return (int)CALL(SYS_execve, start_, words_, environment);
}

EXPORT int execv(const char *path, char *const words[]) { return execve(path, words, environ); }

EXPORT int execvpe(const char *name, char *const words[], char *const given[]) {
  COMPLETE_NAMED(name, given);
  START(find_program(name, path_, sizeof path_), words);
  return NEXT(execvpe)(words_ == traced_ ? start_ : name, words_, environment);
}

EXPORT int execvp(const char *name, char *const words[]) { return execvpe(name, words, environ); }

EXPORT int execveat(int folder, const char *path, char *const words[], char *const given[], int flags) {
  COMPLETE(path, given); /* where the path counts from another folder, no program for musl is recognized */
  return (int)CALL(SYS_execveat, folder, path, words, environment, flags);
}

EXPORT int fexecve(int descriptor, char *const words[], char *const given[]) {
  return execveat(descriptor, "", words, given, AT_EMPTY_PATH);
}

/* The words that a list of arguments holds, on the caller's stack; the list goes on after them. */
#define WORDS(first, list)                                     \
  size_t size_ = 1;                                            \
  va_list list;                                                \
  va_start(list, first);                                       \
  while (va_arg(list, char *)) size_++;                        \
  va_end(list);                                                \
  char *words[size_ + 1];                                      \
  words[0] = (char *)first;                                    \
  va_start(list, first);                                       \
  for (size_t i_ = 1; i_ <= size_; i_++) words[i_] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...) {
  WORDS(first, list);
  va_end(list);
  return execve(path, words, environ);
}

EXPORT int execlp(const char *name, const char *first, ...) {
  WORDS(first, list);
  va_end(list);
  return execvpe(name, words, environ);
}

EXPORT int execle(const char *path, const char *first, ...) {
  WORDS(first, list);
  char *const *given = va_arg(list, char *const *);
  va_end(list);
  return execve(path, words, given);
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attributes, char *const words[restrict],
                       char *const given[restrict]) {
  COMPLETE(path, given);
  START(path, words);
  return NEXT(posix_spawn)(pid, start_, actions, attributes, words_, environment);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict name, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *restrict attributes, char *const words[restrict],
                        char *const given[restrict]) {
  COMPLETE_NAMED(name, given);
  START(find_program(name, path_, sizeof path_), words);
  return NEXT(posix_spawnp)(pid, words_ == traced_ ? start_ : name, actions, attributes, words_, environment);
}
