/* Wakes threads that wait for conditions, and sleeps: each of them must go on before time moves. Prints what is late. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#define SECOND 1000000000LL
#define WORKERS 6
#define ROUNDS 600

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static mtx_t timed_lock;
static cnd_t timed_work;
static pthread_t workers[WORKERS];
static int turn, is_chain, is_timed_turn, late;
static volatile int64_t went_on[WORKERS], signalled, timed_went_on;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

static void note_signal(int number) {
  (void)number;
  signalled = now();
}

static void *run_worker(void *argument) {
  intptr_t number = (intptr_t)argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (turn != number + 1) pthread_cond_wait(&work, &lock);
    went_on[number] = now();
    turn = is_chain ? turn + 1 : 0;
    if (is_chain) pthread_cond_broadcast(&work);
  }
  return NULL;
}

static int run_timed_worker(void *nothing) {
  struct timespec until;
  (void)nothing;
  mtx_lock(&timed_lock);
  for (;;) {
    timespec_get(&until, TIME_UTC);
    until.tv_sec += 3600;
    while (!is_timed_turn) cnd_timedwait(&timed_work, &timed_lock, &until);
    timed_went_on = now();
    is_timed_turn = 0;
  }
  return 0;
}

static void expect(const char *what, int64_t seen, int64_t expected) {
  if (seen == expected) return;
  late++;
  printf("%s: %lld ns late\n", what, (long long)(seen - expected));
}

static void wake_workers(int number) {
  pthread_mutex_lock(&lock);
  memset((void *)went_on, 0, sizeof went_on);
  is_chain = number % 2;
  turn = is_chain ? 1 : number % WORKERS + 1;
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&lock);
}

static void wake_timed_worker(void) {
  mtx_lock(&timed_lock);
  is_timed_turn = 1;
  cnd_signal(&timed_work);
  mtx_unlock(&timed_lock);
}

int main(void) {
  struct timespec second = {1, 0};
  thrd_t timed_worker;
  mtx_init(&timed_lock, mtx_plain);
  cnd_init(&timed_work);
  signal(SIGUSR1, note_signal);
  for (intptr_t i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, run_worker, (void *)i);
  thrd_create(&timed_worker, run_timed_worker, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    nanosleep(&second, NULL); /* all others are blocked now */
    int64_t begun = now();
    if (round % 3 == 0) wake_workers(round);
    else if (round % 3 == 1) wake_timed_worker();
    else pthread_kill(workers[round % WORKERS], SIGUSR1);
    nanosleep(&second, NULL);
    for (int i = 0; round % 3 == 0 && i < WORKERS; i++)
      if (is_chain || i == round % WORKERS) expect("a worker", went_on[i], begun);
    if (round % 3 == 1) expect("a worker with a deadline", timed_went_on, begun);
    if (round % 3 == 2) expect("a handler", signalled, begun);
  }
  printf("%d late\n", late);
  return 0;
}
