/*
 * Makes the disk fail under a process, as files in FAULTY_DISK say while it runs:
 *
 *   full  no file of the store grows any more: ENOSPC
 *   sync  no file of the store is synced any more: EIO
 *   hang  writes to files of the store wait until this is gone
 *
 * Preloaded. The files of the store are those whose path contains FAULTY_DISK_STORE.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The next definition of a function: the C library's own. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (!next && !(next = (__typeof__(&name))dlsym(RTLD_NEXT, #name))) abort()

static int is_on(const char *fault) {
    const char *directory = getenv("FAULTY_DISK");
    char path[PATH_MAX];
    if (!directory || snprintf(path, sizeof path, "%s/%s", directory, fault) >= PATH_MAX) return 0;
    int before = errno;
    int found = access(path, F_OK) == 0;
    errno = before;
    return found;
}

static int is_of_store(int fd) {
    const char *store = getenv("FAULTY_DISK_STORE");
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!store || length < 0) return 0;
    path[length] = '\0';
    return strstr(path, store) != NULL;
}

/* Whether a write that ends here must fail. Waits while the disk hangs. */
static int is_refused(int fd, off64_t end) {
    if (!is_of_store(fd)) return 0;
    while (is_on("hang")) usleep(10000);
    struct stat64 now;
    if (!is_on("full") || fstat64(fd, &now) != 0 || end <= now.st_size) return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite);
    return is_refused(fd, at + (off64_t)count) ? -1 : next(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    return is_refused(fd, at + (off64_t)count) ? -1 : next(fd, bytes, count, at);
}

int ftruncate(int fd, off_t length) {
    NEXT(ftruncate);
    return is_refused(fd, length) ? -1 : next(fd, length);
}

int ftruncate64(int fd, off64_t length) {
    NEXT(ftruncate64);
    return is_refused(fd, length) ? -1 : next(fd, length);
}

static int is_sync_refused(int fd) {
    if (!is_of_store(fd) || !is_on("sync")) return 0;
    errno = EIO;
    return 1;
}

int fsync(int fd) {
    NEXT(fsync);
    return is_sync_refused(fd) ? -1 : next(fd);
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    return is_sync_refused(fd) ? -1 : next(fd);
}
