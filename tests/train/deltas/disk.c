#include "tests/train/deltas/disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t left;
static int write_error, sync_error;
static bool waiting;

void disk_full(size_t bytes, int error) {
    pthread_mutex_lock(&lock);
    left = bytes, write_error = error;
    pthread_mutex_unlock(&lock);
}

void disk_sync_fails(int error) {
    pthread_mutex_lock(&lock);
    sync_error = error;
    pthread_mutex_unlock(&lock);
}

void disk_wait(void) {
    pthread_mutex_lock(&lock);
    waiting = true;
    pthread_mutex_unlock(&lock);
}

void disk_go_on(void) {
    pthread_mutex_lock(&lock);
    waiting = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* MPI's and HDF5's own descriptors are left alone. */
static bool is_file(int fd) {
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (is_file(fd)) {
        pthread_mutex_lock(&lock);
        while (waiting) pthread_cond_wait(&changed, &lock);
        int error = 0;
        if (write_error && !left) error = write_error;
        if (write_error && count > left) count = left;
        if (write_error) left -= count;
        pthread_mutex_unlock(&lock);
        if (error) {
            errno = error;
            return -1;
        }
    }
    return syscall(SYS_write, fd, bytes, count);
}

int fsync(int fd) {
    pthread_mutex_lock(&lock);
    int error = sync_error;
    pthread_mutex_unlock(&lock);
    if (error && is_file(fd)) {
        errno = error;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}
