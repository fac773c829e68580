/*
 * Keeps, beside a directory, an image of what a power cut at this moment would leave of it.
 *
 * Preloaded into a process that writes files directly in POWER_CUT_WATCHED. When such a file has been synced, its
 * content goes into POWER_CUT_IMAGE, and the call returns only then; what was written and not synced never gets there.
 * A new file waits in POWER_CUT_IMAGE/nameless until its directory has been synced too, for only then has it a name;
 * the others are in POWER_CUT_IMAGE/files. Names that go or change do so at once.
 *
 * With POWER_CUT_BEFORE_SYNC=n the process is killed just before it would sync a file for the n-th time.
 *
 * A copy is made aside and renamed, so that killing the process leaves either the old image or the new one. Writes wait
 * while a copy is made, so that none of them slips into it. Whatever goes wrong here ends the process at once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 4096
#define NAME_BYTES_MAX 256
#define COPY_BYTES 65536

/* The next definition of a function: the C library's own. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (!next && !(next = (__typeof__(&name))dlsym(RTLD_NEXT, #name))) die("finding " #name)

static const char *watched;
static const char *image;
static long syncs_left = LONG_MAX;
/* The name in the watched directory of each open file; that of the directory itself is ".". */
static char names[FDS_MAX][NAME_BYTES_MAX];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *doing) {
    fprintf(stderr, "power cut shim: %s: %s\n", doing, strerror(errno));
    abort();
}

__attribute__((constructor)) static void begin(void) {
    watched = getenv("POWER_CUT_WATCHED");
    image = getenv("POWER_CUT_IMAGE");
    if (!watched || !image) die("reading POWER_CUT_WATCHED and POWER_CUT_IMAGE");
    const char *before_sync = getenv("POWER_CUT_BEFORE_SYNC");
    if (before_sync) syncs_left = atol(before_sync);
}

/* The name of a file directly in the watched directory, "." for the directory, or nothing for anything else. */
static const char *name_of(const char *path) {
    if (!watched || !path) return NULL;
    size_t length = strlen(watched);
    if (strncmp(path, watched, length) != 0) return NULL;
    if (path[length] == '\0') return ".";
    const char *name = path + length + 1;
    return path[length] == '/' && *name && !strchr(name, '/') ? name : NULL;
}

static const char *name_of_fd(int fd) {
    return fd >= 0 && fd < FDS_MAX && names[fd][0] ? names[fd] : NULL;
}

static void place(char *path, const char *where, const char *name) {
    if (snprintf(path, PATH_MAX, "%s/%s%s", image, where, name) >= PATH_MAX) die("naming a file of the image");
}

/* Writes the whole file aside. Reads through the same descriptor: closing another one would drop the file's locks. */
static void copy(int fd, const char *to) {
    static char bytes[COPY_BYTES];
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) die("making a copy");
    off_t at = 0;
    for (;;) {
        ssize_t got = pread(fd, bytes, sizeof bytes, at);
        if (got < 0) die("reading what was synced");
        if (got == 0) break;
        if (pwrite(out, bytes, (size_t)got, at) != got) die("writing a copy");
        at += got;
    }
    if (close(out) != 0) die("closing a copy");
}

static void move(const char *from, const char *to) {
    if (rename(from, to) != 0) die("moving a copy into the image");
}

static void file_synced(int fd, const char *name) {
    char aside[PATH_MAX], nameless[PATH_MAX], named[PATH_MAX];
    place(aside, "", "copy");
    place(nameless, "nameless/", name);
    place(named, "files/", name);
    copy(fd, aside);
    move(aside, access(named, F_OK) == 0 ? named : nameless);
}

static void directory_synced(void) {
    char from[PATH_MAX], to[PATH_MAX];
    place(from, "nameless", "");
    DIR *nameless = opendir(from);
    if (!nameless) die("listing nameless files");
    for (struct dirent *entry; (entry = readdir(nameless));) {
        if (entry->d_name[0] == '.') continue;
        place(from, "nameless/", entry->d_name);
        place(to, "files/", entry->d_name);
        move(from, to);
    }
    closedir(nameless);
}

static int is_directory(int fd) {
    return strcmp(names[fd], ".") == 0;
}

static int sync_unless_cut(int fd, int (*next)(int)) {
    if (!is_directory(fd) && --syncs_left == 0) kill(getpid(), SIGKILL);
    int result = next(fd);
    if (result == 0 && is_directory(fd)) directory_synced();
    else if (result == 0) file_synced(fd, names[fd]);
    return result;
}

static const char *const PARTS[] = {"nameless/", "files/"};

static void removed(const char *name) {
    char path[PATH_MAX];
    for (size_t part = 0; part < 2; part++) {
        place(path, PARTS[part], name);
        if (unlink(path) != 0 && errno != ENOENT) die("removing a file of the image");
    }
}

static void renamed(const char *from, const char *to) {
    char before[PATH_MAX], after[PATH_MAX];
    removed(to);
    for (size_t part = 0; part < 2; part++) {
        place(before, PARTS[part], from);
        place(after, PARTS[part], to);
        if (access(before, F_OK) == 0) move(before, after);
    }
}

static int opened(int fd, const char *path) {
    const char *name = name_of(path);
    if (fd < 0 || !name) return fd;
    if (fd >= FDS_MAX || strlen(name) >= NAME_BYTES_MAX) die("remembering an open file");
    pthread_mutex_lock(&changing);
    strcpy(names[fd], name);
    pthread_mutex_unlock(&changing);
    return fd;
}

#define MODE(flags, mode)                                                                                              \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    NEXT(open);
    MODE(flags, mode)
    return opened(next(path, flags, mode), path);
}

int open64(const char *path, int flags, ...) {
    NEXT(open64);
    MODE(flags, mode)
    return opened(next(path, flags, mode), path);
}

int openat(int directory, const char *path, int flags, ...) {
    NEXT(openat);
    MODE(flags, mode)
    return opened(next(directory, path, flags, mode), path);
}

int openat64(int directory, const char *path, int flags, ...) {
    NEXT(openat64);
    MODE(flags, mode)
    return opened(next(directory, path, flags, mode), path);
}

int creat(const char *path, mode_t mode) {
    NEXT(creat);
    return opened(next(path, mode), path);
}

int creat64(const char *path, mode_t mode) {
    NEXT(creat64);
    return opened(next(path, mode), path);
}

int close(int fd) {
    NEXT(close);
    if (!name_of_fd(fd)) return next(fd);
    pthread_mutex_lock(&changing);
    names[fd][0] = '\0';
    int result = next(fd);
    pthread_mutex_unlock(&changing);
    return result;
}

/* Makes a call alone if the file is watched. The C library's unlocking leaves errno as it is. */
#define ALONE(type, call)                                                                                              \
    pthread_mutex_lock(&changing);                                                                                     \
    type result = call;                                                                                                \
    pthread_mutex_unlock(&changing);                                                                                   \
    return result

ssize_t write(int fd, const void *bytes, size_t count) {
    NEXT(write);
    if (!name_of_fd(fd)) return next(fd, bytes, count);
    ALONE(ssize_t, next(fd, bytes, count));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (!name_of_fd(fd)) return next(fd, parts, count);
    ALONE(ssize_t, next(fd, parts, count));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite);
    if (!name_of_fd(fd)) return next(fd, bytes, count, at);
    ALONE(ssize_t, next(fd, bytes, count, at));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    if (!name_of_fd(fd)) return next(fd, bytes, count, at);
    ALONE(ssize_t, next(fd, bytes, count, at));
}

int ftruncate(int fd, off_t length) {
    NEXT(ftruncate);
    if (!name_of_fd(fd)) return next(fd, length);
    ALONE(int, next(fd, length));
}

int ftruncate64(int fd, off64_t length) {
    NEXT(ftruncate64);
    if (!name_of_fd(fd)) return next(fd, length);
    ALONE(int, next(fd, length));
}

int fsync(int fd) {
    NEXT(fsync);
    if (!name_of_fd(fd)) return next(fd);
    ALONE(int, sync_unless_cut(fd, next));
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    if (!name_of_fd(fd)) return next(fd);
    ALONE(int, sync_unless_cut(fd, next));
}

static int unlinked(int result, const char *path) {
    const char *name = name_of(path);
    if (result != 0 || !name) return result;
    pthread_mutex_lock(&changing);
    removed(name);
    pthread_mutex_unlock(&changing);
    return result;
}

int unlink(const char *path) {
    NEXT(unlink);
    return unlinked(next(path), path);
}

int unlinkat(int directory, const char *path, int flags) {
    NEXT(unlinkat);
    return unlinked(next(directory, path, flags), path);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    const char *before = name_of(from), *after = name_of(to);
    if (!before && !after) return next(from, to);
    if (!before || !after) die("renaming a file into or out of the watched directory");
    pthread_mutex_lock(&changing);
    int result = next(from, to);
    if (result == 0) renamed(before, after);
    pthread_mutex_unlock(&changing);
    return result;
}
