/* What ends a wait before its limit, and what programs do with children, timers and signals meanwhile. Prints one line for
 * each, with BAD in front where the time or the result is not the right one. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S 1000000000LL

static int failures;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * S + t.tv_nsec;
}

static void expect(const char *what, long long begin, long long ns, long result, long wanted) {
  long long took = now() - begin;
  int ok = took == ns && result == wanted;
  failures += !ok;
  printf("%s %s: %lld ns, result %ld\n", ok ? "ok " : "BAD", what, took, result);
  fflush(stdout);
}

static volatile int calls;
static void note(union sigval value) { calls += value.sival_int; }
static void count(int signal) { (void)signal, calls++; }
static void waits(int signal) { (void)signal, poll(NULL, 0, 1000); }
static void *sleeps(void *nothing) { return sleep(1000000), nothing; }
static void *execs(void *self) { return sleep(1), execl("/proc/self/exe", self, "again", (char *)NULL), NULL; }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static void *signals_later(void *nothing) {
  sleep(7);
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return nothing;
}
static void *unlocks_later(void *nothing) {
  pthread_mutex_lock(&mutex);
  sleep(5);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

static pthread_mutex_t other;
static void *holds_other(void *nothing) {
  pthread_mutex_lock(&other);
  sleep(9);
  pthread_mutex_unlock(&other);
  return nothing;
}

/* A child that writes one byte after so many seconds. */
static void begin_writer(int file, unsigned seconds) {
  if (fork()) return;
  sleep(seconds);
  if (write(file, "x", 1)) {}
  _exit(0);
}

static void pipes(void) {
  int both[2], epoll = epoll_create1(0);
  char c;
  struct epoll_event event = {.events = EPOLLIN};
  if (pipe(both)) exit(2);
  struct pollfd one = {both[0], POLLIN, 0};
  epoll_ctl(epoll, EPOLL_CTL_ADD, both[0], &event);
  begin_writer(both[1], 1);
  long long t = now();
  expect("epoll_wait of 10 s, written after 1 s", t, S, epoll_wait(epoll, &event, 1, 10000), 1);
  if (read(both[0], &c, 1)) {}
  wait(NULL);
  begin_writer(both[1], 10);
  t = now();
  expect("poll of 10 s, written at its end by a child", t, 10 * S, poll(&one, 1, 10000), 1);
  if (read(both[0], &c, 1)) {}
  wait(NULL);
}

static void locks(void) {
  pthread_t thread;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, signals_later, NULL);
  long long t = now();
  expect("a condition of 60 s, signalled after 7 s", t, 7 * S, pthread_cond_timedwait(&condition, &mutex, &until), 0);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, unlocks_later, NULL);
  usleep(1000);
  until.tv_sec += 60;
  t = now();
  expect("a lock with a limit of 60 s, given back after 5 s", t, 5 * S - 1000000, pthread_mutex_timedlock(&mutex, &until), 0);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  for (int kind = PTHREAD_MUTEX_NORMAL; kind <= PTHREAD_MUTEX_RECURSIVE; kind++) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutex_init(&other, &attributes);
    pthread_create(&thread, NULL, holds_other, NULL);
    usleep(1000);
    until.tv_sec += 60;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 3;
    t = now();
    expect("a lock of its kind, held for longer than the limit of 3 s", t, 3 * S, pthread_mutex_timedlock(&other, &soon), ETIMEDOUT);
    pthread_join(thread, NULL);
  }
}

static void children(void) {
  int status, looks = 0;
  for (int i = 0; i < 50; i++) { /* a pipe ends before its process does */
    int both[2];
    char c;
    if (pipe(both)) exit(2);
    pid_t child = fork();
    if (!child) usleep(1000), _exit(3);
    close(both[1]);
    long long t = now();
    while (read(both[0], &c, 1) > 0) {}
    pid_t seen = waitpid(child, &status, WNOHANG);
    if (seen != child || i == 49) expect("a look for a child at the end of its pipe", t, 1000000, seen, child);
    if (seen != child) waitpid(child, &status, 0);
    close(both[0]);
  }
  pid_t child = fork();
  if (!child) sleep(12), _exit(5);
  long long t = now();
  while (!waitpid(child, &status, WNOHANG)) usleep(100000), looks++;
  expect("looks for a child of 12 s", t, 12 * S, looks, 120);
  child = fork();
  if (!child) pause(), _exit(0);
  t = now();
  usleep(1000);
  kill(child, SIGTERM);
  waitpid(child, &status, 0);
  expect("a child that is killed", t, 1000000, WTERMSIG(status), SIGTERM);
  child = fork();
  if (!child) {
    for (int i = 0; i < 3; i++) sleep(10);
    _exit(7);
  }
  t = now();
  sleep(1);
  kill(child, SIGSTOP);
  waitpid(child, &status, WUNTRACED);
  expect("a child that is stopped", t, S, WIFSTOPPED(status) != 0, 1);
  sleep(100);
  kill(child, SIGCONT);
  waitpid(child, &status, 0); /* the sleep of a stopped process goes on: 101 s, and then two more of 10 s */
  expect("its end, when it goes on after 100 s", t, 121 * S, WEXITSTATUS(status), 7);
}

/* The child of a child is nobody's when its parent is reaped: the coordinator reaps it at the same instant. */
static void groups(void) {
  int looks = 0;
  long long t = now();
  for (int i = 0; i < 30; i++) {
    pid_t child = fork();
    if (!child) {
      setpgid(0, 0);
      fork();
      sleep(1000);
      _exit(0);
    }
    setpgid(child, child);
    sleep(1);
    kill(-child, SIGTERM);
    waitpid(child, NULL, 0);
    while (!kill(-child, 0)) usleep(20000), looks++;
  }
  expect("looks for 30 groups that were just killed", t, 30 * S, looks, 0);
}

static void timers(void) {
  timer_t timer;
  uint64_t times = 0;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = note, .sigev_value.sival_int = 1};
  struct itimerspec every = {{2, 0}, {5, 0}}, once = {{0, 0}, {100, 0}};
  calls = 0;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &every, NULL);
  long long t = now();
  sleep(10);
  usleep(1);
  expect("a function called at 5, 7 and 9 s", t, 10 * S + 1000, calls, 3);
  timer_delete(timer);
  sleep(20);
  expect("no call after the timer was deleted", now(), 0, calls, 3);
  int epoll = epoll_create1(0), files[20], wrong = 0;
  struct epoll_event ready = {.events = EPOLLIN};
  t = now();
  for (int i = 0; i < 20; i++) {
    struct itimerspec after = {{0, 0}, {20 - i, 0}};
    files[i] = timerfd_create(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, TFD_NONBLOCK);
    timerfd_settime(files[i], 0, &after, NULL);
    ready.data.fd = i;
    epoll_ctl(epoll, EPOLL_CTL_ADD, files[i], &ready);
  }
  for (int i = 19; i >= 0; i--)
    wrong += epoll_wait(epoll, &ready, 1, -1) != 1 || ready.data.fd != i || read(files[i], &times, sizeof times) != sizeof times;
  expect("20 timerfds in one epoll, in their order", t, 20 * S, wrong, 0);
  close(files[0]);
  int again = timerfd_create(CLOCK_MONOTONIC, 0);
  once.it_value.tv_sec = 8;
  timerfd_settime(again, 0, &once, NULL);
  t = now();
  if (read(again, &times, sizeof times)) {}
  expect("a timerfd with the number of a closed one", t, 8 * S, (long)times, 1);
  struct itimerspec each = {{2, 0}, {1, 0}};
  timerfd_settime(again, 0, &each, NULL);
  t = now();
  sleep(10);
  if (read(again, &times, sizeof times)) {}
  expect("a timerfd that was not read for five ends", t, 10 * S, (long)times, 5);
  if (read(again, &times, sizeof times)) {}
  expect("its next end", t, 11 * S, (long)times, 1);
  once.it_value.tv_sec = 6;
  timerfd_settime(again, 0, &once, NULL);
  int copy = dup(again);
  close(again);
  t = now();
  if (read(copy, &times, sizeof times)) {}
  expect("a timerfd whose first number was closed", t, 6 * S, (long)times, 1);
  again = copy;
  once.it_value.tv_sec = 100;
  timerfd_settime(again, 0, &once, NULL);
  pid_t child = fork();
  int status;
  if (!child) _exit(read(again, &times, sizeof times) != sizeof times);
  t = now();
  waitpid(child, &status, 0);
  expect("a timerfd that a child reads", t, 100 * S, status, 0);
}

static void handlers(void) {
  struct sigaction action = {.sa_handler = count};
  struct timespec minute = {60, 0}, rest;
  struct pollfd none = {-1, 0, 0};
  int status;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  pid_t child = fork();
  if (!child) {
    sleep(3), kill(getppid(), SIGUSR1);
    sleep(4), kill(getppid(), SIGWINCH);
    _exit(0);
  }
  long long t = now();
  int result = nanosleep(&minute, &rest);
  expect("a sleep of 60 s, cut by a handler at 3 s", t, 3 * S, result < 0 ? errno : result, EINTR);
  expect("what is left of it", now(), 0, rest.tv_sec, 57);
  t = now();
  result = nanosleep(&minute, &rest);
  expect("a sleep of 60 s beside an ignored signal and a death", t, 60 * S, result, 0);
  waitpid(child, &status, 0);
  struct itimerval soon = {{0, 0}, {3, 500000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  t = now();
  result = nanosleep(&minute, &rest);
  expect("a sleep of 60 s, cut by an alarm at 3.5 s", t, 3500000000LL, result < 0 ? errno : result, EINTR);
  struct sigaction slow = {.sa_handler = waits};
  sigaction(SIGALRM, &slow, NULL);
  soon = (struct itimerval){{0, 0}, {3, 0}};
  setitimer(ITIMER_REAL, &soon, NULL);
  t = now();
  result = nanosleep(&minute, NULL);
  expect("a sleep of 60 s, cut by a handler that waits for 1 s", t, 4 * S, result < 0 ? errno : result, EINTR);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  child = fork();
  if (!child) {
    for (int i = 0; i < 5; i++) sleep(3), kill(getppid(), SIGUSR1);
    _exit(0);
  }
  t = now();
  result = poll(&none, 1, 30000);
  expect("a poll of 30 s, cut at 3 s although handlers restart", t, 3 * S, result < 0 ? errno : result, EINTR);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  pthread_mutex_lock(&mutex);
  t = now();
  result = pthread_cond_timedwait(&condition, &mutex, &until);
  pthread_mutex_unlock(&mutex);
  expect("a condition of 20 s beside four handlers", t, 20 * S, result, ETIMEDOUT);
  waitpid(child, &status, 0);
}

int main(int count, char **words) {
  pthread_t thread;
  if (count > 1) {
    long long t = now();
    sleep(9);
    expect("a sleep of 9 s after exec from a thread", t, 9 * S, 0, 0);
    return failures;
  }
  pipes();
  locks();
  children();
  groups();
  timers();
  handlers();
  for (int i = 0; i < 5; i++) pthread_create(&thread, NULL, sleeps, NULL);
  if (failures) return 1;
  pthread_create(&thread, NULL, execs, words[0]);
  pause();
  return 1;
}
