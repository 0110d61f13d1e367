/* A child may be silent for 180 s; it answers after the seconds that are given. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int count, char **words) {
  int ends[2], begin = now();
  if (count < 2 || pipe(ends)) return 1;
  int child = fork();
  if (!child) {
    dup2(ends[1], 1);
    execlp("sh", "sh", "-c", "sleep $0; echo answer; exec sleep 1000", words[1], (char *)0);
  }
  struct pollfd seen = {ends[0], POLLIN, 0};
  int ready = poll(&seen, 1, 180000);
  printf("%s %ld\n", ready ? "data" : "timeout", now() - begin);
  return kill(child, SIGKILL);
}
