/* oneDNN's matrix product for its versions 2 and 3, whose descriptions of matrices and products differ: in 2
 * they are values, in 3 the library's, and there is no description of a product without the product. */
#ifndef GDN_CPU_ONEDNN_H
#define GDN_CPU_ONEDNN_H

#include <dnnl.h>
#include <stdbool.h>
#include <string.h>

/* Whether a product that the library offers is the one that is wanted, by the beginning of its name. */
static inline bool onednn_is(const_dnnl_primitive_desc_t offered, const char *wanted) {
    const char *name = "";
    dnnl_primitive_desc_query(offered, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, wanted, strlen(wanted)) == 0;
}

/* Each of these in both versions. All but onednn_is give the library's status.
 *   ONEDNN_DESC(matrix)   what the library's other calls take of a dnnl_memory_desc_t *
 *   onednn_lay_out        describes a matrix by its numbers and strides of rows and columns
 *   onednn_drop           gives a description back
 *   onednn_scratch        describes the memory that a product works with
 *   onednn_add_sum        a product is added to what is there
 *   onednn_matmul         the product of matrix[0] and [1] into [2]: the one whose name begins with `wanted`, or
 *                         where that is NULL, or there is no such one, the library's first choice */
#if DNNL_VERSION_MAJOR >= 3

#define ONEDNN_DESC(matrix) (*(matrix))

static inline dnnl_status_t onednn_lay_out(dnnl_memory_desc_t *matrix, dnnl_data_type_t type,
                                           const dnnl_dims_t dims, const dnnl_dims_t strides) {
    return dnnl_memory_desc_create_with_strides(matrix, 2, dims, type, strides);
}

static inline void onednn_drop(dnnl_memory_desc_t *matrix) {
    if (*matrix) dnnl_memory_desc_destroy(*matrix);
}

static inline dnnl_status_t onednn_scratch(dnnl_memory_desc_t *matrix, const_dnnl_primitive_desc_t product) {
    return dnnl_memory_desc_clone(matrix, dnnl_primitive_desc_query_md(product, dnnl_query_scratchpad_md, 0));
}

static inline dnnl_status_t onednn_add_sum(dnnl_post_ops_t after) {
    return dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef);
}

static inline dnnl_status_t onednn_matmul(dnnl_memory_desc_t matrix[3], dnnl_primitive_attr_t attributes,
                                          dnnl_engine_t engine, const char *wanted,
                                          dnnl_primitive_desc_t *out) {
    dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(out, engine, matrix[0], matrix[1], NULL, matrix[2], attributes);
    while (!status && wanted && !onednn_is(*out, wanted))
        if (dnnl_primitive_desc_next_impl(*out) != dnnl_success) { /* there is no such product */
            dnnl_primitive_desc_destroy(*out);
            return onednn_matmul(matrix, attributes, engine, NULL, out);
        }
    return status;
}

#else

#define ONEDNN_DESC(matrix) (matrix)

static inline dnnl_status_t onednn_lay_out(dnnl_memory_desc_t *matrix, dnnl_data_type_t type,
                                           const dnnl_dims_t dims, const dnnl_dims_t strides) {
    return dnnl_memory_desc_init_by_strides(matrix, 2, dims, type, strides);
}

static inline void onednn_drop(dnnl_memory_desc_t *matrix) {
    (void)matrix;
}

static inline dnnl_status_t onednn_scratch(dnnl_memory_desc_t *matrix, const_dnnl_primitive_desc_t product) {
    *matrix = *dnnl_primitive_desc_query_md(product, dnnl_query_scratchpad_md, 0);
    return dnnl_success;
}

static inline dnnl_status_t onednn_add_sum(dnnl_post_ops_t after) {
    return dnnl_post_ops_append_sum(after, 1);
}

static inline dnnl_status_t onednn_matmul(dnnl_memory_desc_t matrix[3], dnnl_primitive_attr_t attributes,
                                          dnnl_engine_t engine, const char *wanted,
                                          dnnl_primitive_desc_t *out) {
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_iterator_t choices;
    bool found = false;
    dnnl_status_t status = dnnl_matmul_desc_init(&product, &matrix[0], &matrix[1], NULL, &matrix[2]);
    if (status) return status;
    if (!wanted || dnnl_primitive_desc_iterator_create(&choices, &product, attributes, engine, NULL))
        return dnnl_primitive_desc_create(out, &product, attributes, engine, NULL);
    do {
        *out = dnnl_primitive_desc_iterator_fetch(choices);
        found = onednn_is(*out, wanted);
        if (!found) dnnl_primitive_desc_destroy(*out);
    } while (!found && dnnl_primitive_desc_iterator_next(choices) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(choices);
    return found ? dnnl_success : dnnl_primitive_desc_create(out, &product, attributes, engine, NULL);
}

#endif
#endif
