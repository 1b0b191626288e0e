/* The profile of a machine that plans are made for: configs/machines/NAME.yaml. */
#ifndef GDN_CONFIG_PROFILE_H
#define GDN_CONFIG_PROFILE_H

#include <stdbool.h>

struct profile {
    double flops; /* a rank's arithmetic a second in matrix products, a multiply and an add being two */
    int node;     /* ranks of a node */
    double bandwidth_inside;    /* bytes a second that a rank sends to others of its node, */
    double bandwidth_outside;   /* and to other nodes when all of its node do */
    double bandwidth_memory;    /* bytes a second of a rank's memory */
    double latency;             /* seconds of a message besides those of its bytes */
    bool asynchronous_progress; /* all that a rank sends moves while it computes, not messages between stages
                                   alone; true if not given */
};

/* Reads a profile. Every key but asynchronous_progress must be given. GDN_INPUT with path, line and key of
 * what is wrong, missing or not known. */
int profile_read(const char *path, struct profile *out);

/* The same of NAME, in configs/machines of the source tree or of the installed program; what has a slash or
 * ends in .yaml is a path. GDN_INPUT with all names where there is no such file, and as profile_read. */
int profile_find(const char *name, struct profile *out);

#endif
