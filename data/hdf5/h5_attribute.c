/* Attributes: one number or one text each. */
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

static int write_attribute(hid_t object, const char *path, const char *name, hid_t stored, hid_t memory,
                           const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    int status = 0;
    if (attribute < 0 || H5Awrite(attribute, memory, value) < 0)
        status = h5_fail(GDN_INTERNAL, path, "attribute %s cannot be written", name);
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    return status;
}

int h5_write_int(hid_t object, const char *path, const char *name, int64_t value) {
    HDF5_HOLD();
    return write_attribute(object, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

int h5_write_double(hid_t object, const char *path, const char *name, double value) {
    HDF5_HOLD();
    return write_attribute(object, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

int h5_write_sum(hid_t object, const char *path, const char *name, uint64_t value) {
    HDF5_HOLD();
    return write_attribute(object, path, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

int h5_write_text(hid_t object, const char *path, const char *name, const char *value) {
    HDF5_HOLD();
    hid_t type = H5Tcopy(H5T_C_S1); /* of variable length: h5py reads it as str */
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    int status = write_attribute(object, path, name, type, type, &value);
    H5Tclose(type);
    return status;
}

int h5_has_attribute(hid_t object, const char *path, const char *name, bool *there) {
    HDF5_HOLD();
    htri_t exists = H5Aexists(object, name);
    *there = exists > 0;
    return exists < 0 ? h5_fail(GDN_INPUT, path, "attribute %s cannot be looked for", name) : 0;
}

/* Opens an attribute that is one value of the class; the caller closes *attribute and *type. */
static int open_attribute(hid_t object, const char *path, const char *name, H5T_class_t kind,
                          hid_t *attribute, hid_t *type) {
    bool there;
    TRY(h5_has_attribute(object, path, name, &there));
    if (!there) return gdn_fail(GDN_INPUT, "%s: attribute %s is missing", path, name);
    *attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (*attribute < 0) return h5_fail(GDN_INPUT, path, "attribute %s cannot be read", name);
    *type = H5Aget_type(*attribute);
    hid_t space = H5Aget_space(*attribute);
    bool right =
        *type >= 0 && space >= 0 && H5Tget_class(*type) == kind && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0) H5Sclose(space);
    if (right) return 0;
    if (*type >= 0) H5Tclose(*type);
    H5Aclose(*attribute);
    return gdn_fail(GDN_INPUT, "%s: attribute %s is not one %s", path, name,
                    kind == H5T_STRING    ? "text"
                    : kind == H5T_INTEGER ? "integer"
                                          : "floating-point number");
}

static int read_number(hid_t object, const char *path, const char *name, H5T_class_t kind, hid_t memory,
                       void *value) {
    hid_t attribute, type;
    TRY(open_attribute(object, path, name, kind, &attribute, &type));
    int status = 0;
    if (H5Aread(attribute, memory, value) < 0)
        status = h5_fail(GDN_INPUT, path, "attribute %s cannot be read", name);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

int h5_read_int(hid_t object, const char *path, const char *name, int64_t *value) {
    HDF5_HOLD();
    return read_number(object, path, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

int h5_read_double(hid_t object, const char *path, const char *name, double *value) {
    HDF5_HOLD();
    return read_number(object, path, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

int h5_read_sum(hid_t object, const char *path, const char *name, uint64_t *value) {
    HDF5_HOLD();
    return read_number(object, path, name, H5T_INTEGER, H5T_NATIVE_UINT64, value);
}

int h5_read_text(hid_t object, const char *path, const char *name, char **value) {
    HDF5_HOLD();
    hid_t attribute, type;
    TRY(open_attribute(object, path, name, H5T_STRING, &attribute, &type));
    int status = 0;
    *value = NULL;
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        if (H5Aread(attribute, type, &text) < 0)
            status = h5_fail(GDN_INPUT, path, "attribute %s cannot be read", name);
        else
            *value = strdup(text ? text : "");
        H5free_memory(text);
    } else {
        *value = calloc(H5Tget_size(type) + 1, 1);
        if (*value && H5Aread(attribute, type, *value) < 0)
            status = h5_fail(GDN_INPUT, path, "attribute %s cannot be read", name);
    }
    if (!status && !*value)
        status = gdn_fail(GDN_INTERNAL, "out of memory for attribute %s of %s", name, path);
    if (status) free(*value), *value = NULL;
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}
