#include "data/hdf5/lock.h"

#include <pthread.h>

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void hdf5_enter(void) {
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
}

void hdf5_leave(void) {
    pthread_mutex_unlock(&lock);
}
