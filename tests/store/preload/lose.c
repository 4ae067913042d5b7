/*
 * A page cache that can be lost, for one process. Files under $NODEAGENT_LOSE_DIR work as ever, and
 * $NODEAGENT_LOSE_SHADOW holds what the disk would hold: the content of each file as of its last
 * fsync or fdatasync. Removing and renaming reach the shadow at once. After SIGKILL the shadow is what
 * a machine that lost its power would find. Sub-folders are not followed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes into `shadow` where the file at `path` is shadowed; 0 if it is none of ours. */
static int shadow_of(const char *path, char *shadow) {
    const char *folder = getenv("NODEAGENT_LOSE_DIR"), *kept = getenv("NODEAGENT_LOSE_SHADOW");
    size_t length = folder == NULL ? 0 : strlen(folder);
    if (length == 0 || kept == NULL || strncmp(path, folder, length) != 0 || path[length] != '/')
        return 0;
    if (strchr(path + length + 1, '/') != NULL)
        return 0;
    snprintf(shadow, PATH_MAX, "%s%s", kept, path + length);
    return 1;
}

static int copy(const char *path, const char *shadow) {
    static __thread char block[1 << 16];
    char fresh[PATH_MAX + 8];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(fresh, sizeof fresh, "%s.fresh", shadow);
    int to = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t got = from < 0 || to < 0 ? -1 : 0;
    while (got >= 0 && (got = read(from, block, sizeof block)) > 0)
        if (write(to, block, (size_t)got) != got)
            got = -1;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    /* Not rename: that one is ours. */
    return got < 0 ? -1 : renameat(AT_FDCWD, fresh, AT_FDCWD, shadow);
}

static int sync_shadow(int fd) {
    char link[64], path[PATH_MAX], shadow[PATH_MAX];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return -1;
    path[length] = '\0';
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !shadow_of(path, shadow))
        return 0;
    return copy(path, shadow);
}

int fsync(int fd) {
    return sync_shadow(fd);
}

int fdatasync(int fd) {
    return sync_shadow(fd);
}

int unlink(const char *path) {
    static int (*real)(const char *);
    char shadow[PATH_MAX];
    if (real == NULL)
        real = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    if (shadow_of(path, shadow))
        real(shadow);
    return real(path);
}

int rename(const char *path, const char *target) {
    static int (*real)(const char *, const char *);
    char from[PATH_MAX], to[PATH_MAX];
    if (real == NULL)
        real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    if (shadow_of(path, from) && shadow_of(target, to))
        real(from, to);
    return real(path, target);
}
