/*
 * The time since boot, which can be set forward for one process and its children: CLOCK_BOOTTIME is the kernel's
 * plus the whole seconds that stand in the file $NODEAGENT_BOOT_CLOCK. The other clocks are left alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Bare system calls: nothing here may ask the time, or take a lock of the C library. */
static long offset(void) {
    char text[32] = "";
    const char *path = getenv("NODEAGENT_BOOT_CLOCK");
    int fd = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && clock == CLOCK_BOOTTIME)
        now->tv_sec += offset();
    return answer;
}
