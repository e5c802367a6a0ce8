#include "batch/lock.h"

#include "job/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char *lock_path(const char *name)
{
    const char *folder = getenv("GPURUN_LOCK_DIR");
    char *path = format_text("%s/gpurun-%s.lock", folder && folder[0] ? folder : "/tmp", name);

    for (char *c = strrchr(path, '/') + 1; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", *c) == NULL)
            *c = '_';
    return path;
}

/* Nothing is ever written, a link is never followed and a pipe never waited for, so whatever somebody put
 * there comes to no harm and does none. O_CREAT alone would not do: in a folder like /tmp the kernel refuses
 * it for another user's file. */
static int open_file(const char *path)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        const mode_t before = umask(0); /* other users are to open it too */

        fd = open(path, flags | O_CREAT | O_EXCL, 0444);
        umask(before);
        if (fd < 0 && errno == EEXIST)
            fd = open(path, flags);
    }
    return fd;
}

/* The process that holds the lock on a file, by the kernel's list; 0 when it does not say. */
static long read_owner(const struct stat *file)
{
    FILE *f = fopen("/proc/locks", "r");
    char line[256];
    unsigned major_number, minor_number;
    unsigned long long inode;
    long pid, owner = 0;

    while (f != NULL && owner <= 0 && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%llu", &pid, &major_number, &minor_number,
                   &inode) == 4 &&
            inode == file->st_ino && major_number == major(file->st_dev) &&
            minor_number == minor(file->st_dev))
            owner = pid;
    if (f != NULL)
        fclose(f);
    return owner > 0 ? owner : 0;
}

/* While others lock and unlock, lines of the list can be missed. */
static long find_owner(const struct stat *file)
{
    long owner = 0;

    for (int tries = 0; tries < 5 && owner == 0; tries++)
        owner = read_owner(file);
    return owner;
}

static enum lock_state lock_file(int fd, const char *path, struct why *why)
{
    struct stat file, now;
    long owner;

    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
        why_fail(why, GPURUN_ERROR, "%s is no regular file", path);
        return LOCK_IMPOSSIBLE;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        /* Somebody cleaned the folder meanwhile: a lock on a file that nobody else finds is none. */
        if (lstat(path, &now) == 0 && now.st_ino == file.st_ino && now.st_dev == file.st_dev)
            return LOCK_HELD;
        why_fail(why, GPURUN_ERROR, "another process");
        return LOCK_BUSY;
    }
    if (errno != EWOULDBLOCK) {
        why_fail(why, GPURUN_ERROR, "%s: %s", path, strerror(errno));
        return LOCK_IMPOSSIBLE;
    }
    if ((owner = find_owner(&file)) > 0)
        why_fail(why, GPURUN_ERROR, "process %ld", owner);
    else
        why_fail(why, GPURUN_ERROR, "another process");
    return LOCK_BUSY;
}

enum lock_state lock_take(struct lock *lock, const char *name, struct why *why)
{
    char *path = lock_path(name);
    enum lock_state state = LOCK_IMPOSSIBLE;

    lock->fd = open_file(path);
    if (lock->fd < 0)
        why_fail(why, GPURUN_ERROR, "%s: %s", path, strerror(errno));
    else
        state = lock_file(lock->fd, path, why);
    if (state != LOCK_HELD)
        lock_release(lock);
    free(path);
    return state;
}

void lock_release(struct lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}
