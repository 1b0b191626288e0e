/* The files of model/huggingface that an export has beside a model that is gdn's own; a build makes them a
 * part of the program (python.cmake). Private to this folder. */
#ifndef GDN_HUGGINGFACE_PYTHON_H
#define GDN_HUGGINGFACE_PYTHON_H

enum { PYTHON_FILES = 2 };
struct python_file {
    const char *name, *text;
};
extern const struct python_file python_files[PYTHON_FILES];

#endif
