/*
 * A simulated disk under SQLite, for stores in directories whose name begins with "redeliver-disk-".
 *
 * Preloaded. Whoever runs a store there tells the disk what to do by writing to the file `control` beside it, at any
 * offset, with pwrite:
 *
 *   fault KIND BEFORE COUNT  calls of this kind fail, COUNT of them, after BEFORE of them have succeeded
 *   heal                     nothing fails any more
 *   cut                      the power is gone: from now on nothing is read, written or synced
 *
 * Kinds: 0 reads fail (EIO), 1 writes fail after half of their bytes (EIO), 2 files don't grow (ENOSPC), 3 syncs fail (EIO).
 * Reading `control` with pread gives how many calls of each kind have failed.
 *
 * A file that is synced is copied to `synced-NAME` beside it: that is what the disk has. Once a sync of a file has failed,
 * later ones succeed and copy nothing, as a kernel does that has dropped the pages. All calls are made one at a time, so
 * that nothing is under way when a command has been taken.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "redeliver-disk-"
#define STORE "store.db"
#define CONTROL "control"
/* Disks in use at the same time; the one that was not used for longest makes room for a new one. */
#define DISKS_MAX 64
#define COPY_BYTES 65536

enum { READ, WRITE, FULL, SYNC, KINDS };

struct disk {
    char directory[PATH_MAX];
    unsigned long used_at;
    int kind;
    long before, count;
    long fired[KINDS];
    int is_cut;
    /* Whether a sync has failed: what it should have written is gone. */
    int is_database_lost, is_log_lost;
};

static struct disk disks[DISKS_MAX];
static unsigned long uses;
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;

/* The next definition of a function: the C library's own. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (!next && !(next = (__typeof__(&name))dlsym(RTLD_NEXT, #name))) abort()

static ssize_t read_at(int fd, void *bytes, size_t count, off64_t at) {
    NEXT(pread64);
    return next(fd, bytes, count, at);
}

static ssize_t write_at(int fd, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    return next(fd, bytes, count, at);
}

/* Splits the path of an open file, and gives its name if it is on a simulated disk. */
static const char *name_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = before;
    if (length < 0) return NULL;
    path[length] = '\0';
    char *name = strrchr(path, '/');
    if (!name) return NULL;
    *name++ = '\0';
    const char *directory = strrchr(path, '/');
    if (!directory || strncmp(directory + 1, PREFIX, strlen(PREFIX)) != 0) return NULL;
    return strncmp(name, STORE, strlen(STORE)) == 0 || strcmp(name, CONTROL) == 0 ? name : NULL;
}

static struct disk *disk_in(const char *directory) {
    struct disk *oldest = &disks[0];
    for (int n = 0; n < DISKS_MAX; n++) {
        if (strcmp(disks[n].directory, directory) == 0) {
            disks[n].used_at = ++uses;
            return &disks[n];
        }
        if (disks[n].used_at < oldest->used_at) oldest = &disks[n];
    }
    memset(oldest, 0, sizeof *oldest);
    strcpy(oldest->directory, directory);
    oldest->used_at = ++uses;
    return oldest;
}

/* Whether a call of this kind fails now. */
static int fires(struct disk *disk, int kind) {
    if (disk->kind != kind || disk->count <= 0) return 0;
    if (disk->before > 0) return disk->before--, 0;
    disk->count--;
    disk->fired[kind]++;
    return 1;
}

static int is_grown(int fd, off64_t end) {
    struct stat64 now;
    return fstat64(fd, &now) == 0 && end > now.st_size;
}

static void command(struct disk *disk, const void *bytes, size_t count) {
    char text[128] = {0};
    memcpy(text, bytes, count < sizeof text ? count : sizeof text - 1);
    if (sscanf(text, "fault %d %ld %ld", &disk->kind, &disk->before, &disk->count) == 3) return;
    if (strcmp(text, "heal") == 0) disk->count = 0;
    else if (strcmp(text, "cut") == 0) disk->is_cut = 1;
    else abort();
}

static int failed(int with) {
    errno = with;
    return -1;
}

static ssize_t write_on(struct disk *disk, int fd, const void *bytes, size_t count, off64_t at) {
    if (disk->is_cut) return failed(EIO);
    if (fires(disk, WRITE)) {
        write_at(fd, bytes, count / 2, at);
        return failed(EIO);
    }
    if (is_grown(fd, at + (off64_t)count) && fires(disk, FULL)) return failed(ENOSPC);
    return write_at(fd, bytes, count, at);
}

static ssize_t read_on(struct disk *disk, int fd, void *bytes, size_t count, off64_t at) {
    return disk->is_cut || fires(disk, READ) ? failed(EIO) : read_at(fd, bytes, count, at);
}

static ssize_t report(const struct disk *disk, char *bytes, size_t count) {
    const long *fired = disk->fired;
    int length = snprintf(bytes, count, "fired %ld %ld %ld %ld ", fired[READ], fired[WRITE], fired[FULL], fired[SYNC]);
    return length < (int)count ? length : failed(EINVAL);
}

/* Reads through the same descriptor: closing another one would drop the file's locks. */
static void copy(struct disk *disk, int fd, const char *name) {
    static char bytes[COPY_BYTES];
    char to[PATH_MAX + 128];
    snprintf(to, sizeof to, "%s/synced-%s", disk->directory, name);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) abort();
    off64_t at = 0;
    for (ssize_t got; (got = read_at(fd, bytes, sizeof bytes, at)) > 0; at += got) {
        if (write_at(out, bytes, (size_t)got, at) != got) abort();
    }
    close(out);
}

static int sync_on(struct disk *disk, int fd, const char *name) {
    if (disk->is_cut) return failed(EIO);
    int *is_lost = strcmp(name, STORE) == 0 ? &disk->is_database_lost : &disk->is_log_lost;
    if (fires(disk, SYNC)) {
        *is_lost = 1;
        return failed(EIO);
    }
    if (!*is_lost) copy(disk, fd, name);
    return 0;
}

static int truncate_on(struct disk *disk, int fd, off64_t length, int (*next)(int, off64_t)) {
    if (disk->is_cut || fires(disk, WRITE)) return failed(EIO);
    if (is_grown(fd, length) && fires(disk, FULL)) return failed(ENOSPC);
    return next(fd, length);
}

/* Makes a call on the disk of this file, or the C library's own if it is on none. */
#define ON_DISK(type, call, otherwise)                                                                                 \
    char path[PATH_MAX];                                                                                               \
    const char *name = name_of(fd, path);                                                                              \
    if (!name) return otherwise;                                                                                       \
    pthread_mutex_lock(&alone);                                                                                        \
    struct disk *disk = disk_in(path);                                                                                 \
    type result = call;                                                                                                \
    pthread_mutex_unlock(&alone);                                                                                      \
    return result

static ssize_t told(struct disk *disk, const char *name, int fd, const void *bytes, size_t count, off64_t at) {
    if (strcmp(name, CONTROL) != 0) return write_on(disk, fd, bytes, count, at);
    command(disk, bytes, count);
    return (ssize_t)count;
}

static ssize_t asked(struct disk *disk, const char *name, int fd, void *bytes, size_t count, off64_t at) {
    return strcmp(name, CONTROL) == 0 ? report(disk, bytes, count) : read_on(disk, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    ON_DISK(ssize_t, told(disk, name, fd, bytes, count, at), write_at(fd, bytes, count, at));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    ON_DISK(ssize_t, told(disk, name, fd, bytes, count, at), write_at(fd, bytes, count, at));
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at) {
    ON_DISK(ssize_t, asked(disk, name, fd, bytes, count, at), read_at(fd, bytes, count, at));
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at) {
    ON_DISK(ssize_t, asked(disk, name, fd, bytes, count, at), read_at(fd, bytes, count, at));
}

int ftruncate(int fd, off_t length) {
    NEXT(ftruncate);
    ON_DISK(int, truncate_on(disk, fd, length, next), next(fd, length));
}

int ftruncate64(int fd, off64_t length) {
    NEXT(ftruncate64);
    ON_DISK(int, truncate_on(disk, fd, length, next), next(fd, length));
}

int fsync(int fd) {
    NEXT(fsync);
    ON_DISK(int, sync_on(disk, fd, name), next(fd));
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    ON_DISK(int, sync_on(disk, fd, name), next(fd));
}
