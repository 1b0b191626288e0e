/* Bytes into a file, all of them or a reason. */
#ifndef GDN_WRITE_WHOLE_H
#define GDN_WRITE_WHOLE_H

#include <stddef.h>
#include <stdint.h>

/* Writes `count` bytes where the descriptor stands, at the end of one that appends. What a signal or a disk
 * that is nearly full has cut is gone on with, so that the reason is the system's. 0, or errno with a part of
 * the bytes written. */
int write_whole(int file, const void *bytes, size_t count);

/* Appends all or nothing: what a failure has left of them is cut off again. 0, or errno. */
int write_whole_or_none(int file, const void *bytes, size_t count);

/* write_whole at a position, which leaves the descriptor where it stands. */
int write_whole_at(int file, const void *bytes, size_t count, int64_t at);

#endif
