/* Numbers of system calls that are newer than the oldest headers. They are the same on every machine. */
#pragma once
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
