/* An HDF5 file driver for reading files that somebody else has made, or changed. HDF5 1.10 trusts what it
 * reads: with its own driver a damaged address, which it calls undefined, is looked for in a buffer that is
 * not there; a length that is too small in one of its buffers for data; and an empty entry in a heap of texts
 * is looked at for ever. This driver has no buffers, refuses whatever does not lie in the file, and looks
 * through heaps before HDF5 does. It does not find all that HDF5 fails at (tests/fuzz/README.md). */
#ifndef GDN_HDF5_SOURCE_H
#define GDN_HDF5_SOURCE_H

#include <hdf5.h>

/* Selects the driver in the properties with which a file is then opened, for reading alone. Less than 0 on
 * failure. To be called with the lock of HDF5 (lock.h). */
herr_t hdf5_source_select(hid_t access);

#endif
