/* Disks that fail, for tests of stored differences: write() and fsync() of this program on regular files do
 * as told. */
#ifndef GDN_DELTA_DISK_H
#define GDN_DELTA_DISK_H

#include <stddef.h>

/* After so many bytes more, writes fail with `error`, the last of them in the middle. error 0: none fails. */
void disk_full(size_t bytes, int error);

/* fsync fails with this; 0: it does not. */
void disk_sync_fails(int error);

/* From now on writes wait, until disk_go_on. */
void disk_wait(void);
void disk_go_on(void);

#endif
