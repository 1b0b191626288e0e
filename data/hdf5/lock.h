/* One lock for all of HDF5, which is not made for threads: its state belongs to the process, error stack
 * included. Checkpoints are written on a thread of their own while training reads tokens and makes files of
 * stored differences, so whoever calls HDF5 holds this lock, for short pieces of work: the making of a
 * dataset, one block read; not while it waits for other ranks, syncs or writes much itself. What HDF5 says
 * about a failure is read before the lock is let go. */
#ifndef GDN_HDF5_LOCK_H
#define GDN_HDF5_LOCK_H

/* Takes the lock, which a thread may take again while it holds it; and lets go of it as often. */
void hdf5_enter(void);
void hdf5_leave(void);

/* Holds the lock until the end of the block that this stands in, however that is left. */
#define HDF5_HOLD() __attribute__((cleanup(hdf5_let_go), unused)) int hdf5_held_ = (hdf5_enter(), 0)

static inline void hdf5_let_go(int *held) {
    (void)held;
    hdf5_leave();
}

#endif
