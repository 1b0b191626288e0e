/* An HDF5 file driver for writing that HDF5 never sees fail. HDF5 1.10 cannot go on from a write that failed:
 * its flush leaves the metadata cache locked, closing the file then fails, and the program crashes when it
 * ends. So this driver remembers the first failure, drops all writes after it, and reports success; the
 * writer looks at `error` between HDF5's calls. It also takes a descriptor that is open already, with which
 * the caller can reserve space before and sync after. Private to dist/ and to train/deltas/rebuild.c. */
#ifndef GDN_H5_SINK_H
#define GDN_H5_SINK_H

#include <hdf5.h>

struct h5_sink {
    int fd;    /* an empty file, open for reading and writing; stays the caller's to close */
    int error; /* errno of the first call that failed, 0: none */
};

/* Registers the driver and selects it in the access properties. `sink` must outlive the file. Returns the
 * driver's identifier, to be given to H5FDunregister once the file is closed; −1 on failure. */
hid_t h5_sink_select(hid_t access, struct h5_sink *sink);

#endif
