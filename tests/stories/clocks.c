/*
 * Clocks that can be stepped, for one process and its children: CLOCK_REALTIME and CLOCK_BOOTTIME are the kernel's
 * plus the whole seconds that stand in the files $NODEAGENT_WALL_CLOCK and $NODEAGENT_BOOT_CLOCK, where named.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Bare system calls: nothing here may ask the time, or take a lock of the C library. */
static long offset(const char *variable) {
    char text[32] = "";
    const char *path = getenv(variable);
    int fd = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += offset("NODEAGENT_WALL_CLOCK");
    if (answer == 0 && clock == CLOCK_BOOTTIME)
        now->tv_sec += offset("NODEAGENT_BOOT_CLOCK");
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where != NULL)
        *where = precise.tv_sec;
    return precise.tv_sec;
}
