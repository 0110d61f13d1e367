/* A supervisor with hard-coded limits: 180 s of silence, 5 s between TERM and KILL. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int output;

/* Read until the end (0), or until so many milliseconds have passed in silence. */
static int is_silent(int patience) {
  char bytes[65536];
  struct pollfd stream = {.fd = output, .events = POLLIN};
  int ready;
  while ((ready = poll(&stream, 1, patience)) > 0)
    if (read(output, bytes, sizeof bytes) <= 0) return 0;
  return ready == 0;
}

int main(int count, char **words) {
  int ends[2], status, has_ended_it = 0;
  if (count < 2 || pipe(ends)) return 70;
  pid_t agent = fork();
  if (!agent) {
    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execv(words[1], words + 1);
    _exit(127);
  }
  setpgid(agent, agent);
  close(ends[1]);
  output = ends[0];
  if (is_silent(180000)) {
    has_ended_it = 1;
    kill(-agent, SIGTERM);
    if (is_silent(5000)) kill(-agent, SIGKILL);
  }
  waitpid(agent, &status, 0);
  return has_ended_it ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
