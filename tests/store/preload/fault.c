/*
 * A disk in trouble, for one process: calls on files under $NODEAGENT_FAULT_DIR hang or fail while the
 * file $NODEAGENT_FAULT_FLAG exists. It holds "MODE CLASSES": the mode is hang, eio, enospc or erofs; the
 * classes are any of o (open), r (read), w (write, truncate, allocate) and s (sync). A call that begins to
 * hang writes one byte into the FIFO $NODEAGENT_FAULT_MET, if somebody has it open.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int watched(const char *path) {
    const char *folder = getenv("NODEAGENT_FAULT_DIR");
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

/* Reads the flag by bare system calls, which are not interposed. */
static int flagged(char class, char *mode) {
    char text[64] = "", classes[16] = "";
    const char *flag = getenv("NODEAGENT_FAULT_FLAG");
    int fd = flag == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, flag, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return sscanf(text, "%15s %15s", mode, classes) == 2 && strchr(classes, class) != NULL;
}

static void tell_met(void) {
    const char *fifo = getenv("NODEAGENT_FAULT_MET");
    int fd = fifo == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    syscall(SYS_write, fd, "!", 1);
    syscall(SYS_close, fd);
}

static int refused(const char *path, char class) {
    char mode[16] = "";
    int saved = errno, met = 0;
    if (!watched(path))
        return 0;
    while (flagged(class, mode) && strcmp(mode, "hang") == 0) {
        if (!met++)
            tell_met();
        usleep(1000);
    }
    if (!flagged(class, mode)) {
        errno = saved;
        return 0;
    }
    errno = strcmp(mode, "enospc") == 0 ? ENOSPC : strcmp(mode, "erofs") == 0 ? EROFS : EIO;
    return 1;
}

static int refused_fd(int fd, char class) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return refused(path, class);
}

#define REAL(type, name, ...)                                      \
    static type (*real)(__VA_ARGS__);                              \
    if (real == NULL)                                              \
        real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(function)                                             \
    int function(const char *path, int flags, ...) {               \
        REAL(int, #function, const char *, int, ...);              \
        va_list rest;                                              \
        va_start(rest, flags);                                     \
        int mode = va_arg(rest, int);                              \
        va_end(rest);                                              \
        return refused(path, 'o') ? -1 : real(path, flags, mode);  \
    }
OPEN(open)
OPEN(open64)

#define PREAD(function)                                                          \
    ssize_t function(int fd, void *data, size_t size, off_t at) {                \
        REAL(ssize_t, #function, int, void *, size_t, off_t);                    \
        return refused_fd(fd, 'r') ? -1 : real(fd, data, size, at);              \
    }
PREAD(pread)
PREAD(pread64)

#define PWRITE(function)                                                         \
    ssize_t function(int fd, const void *data, size_t size, off_t at) {          \
        REAL(ssize_t, #function, int, const void *, size_t, off_t);              \
        return refused_fd(fd, 'w') ? -1 : real(fd, data, size, at);              \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return refused_fd(fd, 'w') ? -1 : real(fd, data, size);
}

#define TRUNCATE(function)                                         \
    int function(int fd, off_t size) {                             \
        REAL(int, #function, int, off_t);                          \
        return refused_fd(fd, 'w') ? -1 : real(fd, size);          \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define ALLOCATE(function)                                                 \
    int function(int fd, off_t at, off_t size) {                           \
        REAL(int, #function, int, off_t, off_t);                           \
        return refused_fd(fd, 'w') ? errno : real(fd, at, size);           \
    }
ALLOCATE(posix_fallocate)
ALLOCATE(posix_fallocate64)

#define SYNC(function)                                             \
    int function(int fd) {                                         \
        REAL(int, #function, int);                                 \
        return refused_fd(fd, 's') ? -1 : real(fd);                \
    }
SYNC(fsync)
SYNC(fdatasync)
