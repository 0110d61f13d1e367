/* Waits for what another process ends, in each way that is no connection. `act` is the other process: it holds the other
 * end, prints `ready`, and lets go after so many milliseconds; 0: at the end of its stdin. `wait` waits for it, and has a
 * limit of 180 s beside that. `both` is both of them in one tree.
 *
 * outside act|wait|both KIND PATH MILLISECONDS */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef F_OFD_SETLKW
#define F_OFD_SETLKW 38
#endif
#define PORT 40000 /* and above, by the inode of the path */

static const char *path;
static int pause_ms, other;
static char bytes[64];

static int demand(long result, const char *what) {
  if (result >= 0) return (int)result;
  perror(what);
  exit(9);
}

static void pause_as_told(void) {
  struct timespec time = {pause_ms / 1000, pause_ms % 1000 * 1000000L};
  if (pause_ms) nanosleep(&time, NULL);
  else while (read(STDIN_FILENO, bytes, 1) > 0) {}
}

static void ready_and_pause(void) {
  puts("ready");
  fflush(stdout);
  pause_as_told();
}

static int opened(int flags) { return demand(open(path, flags | O_CLOEXEC, 0600), path); }

/* UDP without connect. */
static struct sockaddr_in address(void) {
  struct stat found;
  demand(stat(path, &found), path);
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + found.st_ino % 20000)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}
static void act_udp(void) {
  struct sockaddr_in own = address(), from;
  socklen_t size = sizeof from;
  int file = demand(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  demand(bind(file, (void *)&own, sizeof own), "bind");
  puts("ready");
  fflush(stdout);
  demand(recvfrom(file, bytes, sizeof bytes, 0, (void *)&from, &size), "recvfrom");
  pause_as_told();
  demand(sendto(file, "x", 1, 0, (void *)&from, size), "sendto");
}
static void wait_udp(void) {
  struct sockaddr_in to = address();
  int file = demand(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  demand(sendto(file, "x", 1, 0, (void *)&to, sizeof to), "sendto");
  demand(recvfrom(file, bytes, sizeof bytes, 0, NULL, NULL), "recvfrom");
}
static void wait_udp_message(void) {
  struct sockaddr_in to = address();
  int file = demand(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  struct iovec piece = {(void *)"x", 1};
  struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1};
  demand(sendmsg(file, &message, 0), "sendmsg");
  struct pollfd one = {file, POLLIN, 0};
  demand(poll(&one, 1, -1), "poll");
}

/* A FIFO, by each call that waits for a descriptor. */
static void act_fifo(void) {
  int file = opened(O_RDWR);
  ready_and_pause();
  demand(write(file, "x", 1), "write");
}
static void wait_fifo(void) { demand(read(opened(O_RDONLY), bytes, 1), "read"); }
static void wait_fifo_poll(void) {
  struct pollfd one = {opened(O_RDONLY | O_NONBLOCK), POLLIN, 0};
  demand(poll(&one, 1, -1), "poll");
}
static void wait_fifo_select(void) {
  int file = opened(O_RDONLY | O_NONBLOCK);
  fd_set in;
  FD_ZERO(&in);
  FD_SET(file, &in);
  demand(select(file + 1, &in, NULL, NULL, NULL), "select");
}
static void wait_fifo_epoll(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(0);
  demand(epoll_ctl(epoll, EPOLL_CTL_ADD, opened(O_RDONLY | O_NONBLOCK), &event), "epoll_ctl");
  demand(epoll_wait(epoll, &event, 1, -1), "epoll_wait");
}

/* Locks. */
static struct flock whole(void) { return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; }
static void wait_flock(void) { demand(flock(opened(O_RDWR), LOCK_EX), "flock"); }
static void wait_setlkw(void) {
  struct flock lock = whole();
  demand(fcntl(opened(O_RDWR), F_SETLKW, &lock), "F_SETLKW");
}
static void wait_ofd(void) {
  struct flock lock = whole();
  demand(fcntl(opened(O_RDWR), F_OFD_SETLKW, &lock), "F_OFD_SETLKW");
}
static void act_flock(void) { wait_flock(), ready_and_pause(); }
static void act_setlkw(void) { wait_setlkw(), ready_and_pause(); }
static void act_ofd(void) { wait_ofd(), ready_and_pause(); }

/* A file that is watched, or its folder. */
static void act_inotify(void) {
  int file = opened(O_RDWR);
  ready_and_pause();
  demand(write(file, "x", 1), "write");
}
static void wait_inotify_in(const char *place) {
  char events[4096];
  int watch = inotify_init1(IN_CLOEXEC);
  demand(inotify_add_watch(watch, place, IN_MODIFY), "inotify_add_watch");
  demand(read(watch, events, sizeof events), "read");
}
static void wait_inotify(void) { wait_inotify_in(path); }
static void wait_inotify_folder(void) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = 0;
  wait_inotify_in(folder);
}

/* A word in shared memory. */
static uint32_t *shared(void) {
  int file = opened(O_RDWR);
  demand(ftruncate(file, 4096), "ftruncate");
  void *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return word;
}
static void act_futex(void) {
  uint32_t *word = shared();
  ready_and_pause();
  __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
  demand(syscall(SYS_futex, word, 1 /* FUTEX_WAKE */, 9, NULL, NULL, 0), "futex");
}
static void wait_futex(void) {
  uint32_t *word = shared();
  while (!__atomic_load_n(word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

/* Queues and semaphores of System V, and queues of POSIX. */
static int queue(void) { return demand(msgget(ftok(path, 1), IPC_CREAT | 0600), "msgget"); }
static int set(void) { return demand(semget(ftok(path, 1), 1, IPC_CREAT | 0600), "semget"); }
static void act_msg(void) {
  struct { long type; char text[4]; } message = {1, "x"};
  int number = queue();
  ready_and_pause();
  demand(msgsnd(number, &message, 1, 0), "msgsnd");
}
static void wait_msg(void) {
  struct { long type; char text[4]; } message;
  int number = queue();
  demand(msgrcv(number, &message, 4, 0, 0), "msgrcv");
  msgctl(number, IPC_RMID, NULL);
}
static void act_sem(void) {
  struct sembuf give = {0, 1, 0};
  int number = set();
  ready_and_pause();
  demand(semop(number, &give, 1), "semop");
}
static void wait_sem(void) {
  struct sembuf take = {0, -1, 0};
  int number = set();
  demand(semop(number, &take, 1), "semop");
  semctl(number, 0, IPC_RMID);
}
static char name[64];
static mqd_t mail(void) {
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
  struct stat found;
  demand(stat(path, &found), path);
  snprintf(name, sizeof name, "/outside-%lu", (unsigned long)found.st_ino);
  return demand(mq_open(name, O_RDWR | O_CREAT, 0600, &attributes), "mq_open");
}
static void act_mq(void) {
  mqd_t to = mail();
  ready_and_pause();
  demand(mq_send(to, "x", 1, 0), "mq_send");
}
static void wait_mq(void) {
  mqd_t from = mail();
  demand(mq_receive(from, bytes, sizeof bytes, NULL), "mq_receive");
  mq_unlink(name);
}

/* The end of a process that is nobody's child here. */
static void act_pidfd(void) { ready_and_pause(); }
static void wait_pidfd(void) {
  struct pollfd one = {demand(syscall(SYS_pidfd_open, other, 0), "pidfd_open"), POLLIN, 0};
  demand(poll(&one, 1, -1), "poll");
}

static const struct { const char *name; void (*act)(void), (*wait)(void); } kinds[] = {
    {"udp", act_udp, wait_udp}, {"udp_message", act_udp, wait_udp_message},
    {"fifo", act_fifo, wait_fifo}, {"fifo_poll", act_fifo, wait_fifo_poll},
    {"fifo_select", act_fifo, wait_fifo_select}, {"fifo_epoll", act_fifo, wait_fifo_epoll},
    {"flock", act_flock, wait_flock}, {"setlkw", act_setlkw, wait_setlkw}, {"ofd", act_ofd, wait_ofd},
    {"inotify", act_inotify, wait_inotify}, {"inotify_folder", act_inotify, wait_inotify_folder},
    {"futex", act_futex, wait_futex}, {"msg", act_msg, wait_msg}, {"sem", act_sem, wait_sem}, {"mq", act_mq, wait_mq},
    {"pidfd", act_pidfd, wait_pidfd},
};

static void *give_up(void *nothing) {
  sleep(180);
  puts("false timeout");
  exit(0);
  return nothing;
}

int main(int count, char **words) {
  pthread_t limit;
  size_t kind = 0;
  if (count < 5) return 2;
  path = words[3];
  pause_ms = atoi(words[4]);
  other = count > 5 ? atoi(words[5]) : 0;
  while (strcmp(kinds[kind].name, words[2])) kind++;
  if (*words[1] == 'a') {
    kinds[kind].act();
    return 0;
  }
  if (*words[1] == 'b') {
    int ends[2];
    char word[6];
    demand(pipe2(ends, O_CLOEXEC), "pipe");
    if (!(other = fork())) {
      dup2(ends[1], STDOUT_FILENO);
      kinds[kind].act();
      return 0;
    }
    demand(read(ends[0], word, sizeof word), "read");
  }
  pthread_create(&limit, NULL, give_up, NULL);
  kinds[kind].wait();
  puts("answer");
  while (wait(NULL) > 0) {}
  return 0;
}
