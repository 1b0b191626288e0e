/* A file in Prometheus's text exposition format (prometheus.io/docs/instrumenting/exposition_formats), for
 * node_exporter's textfile collector: built in memory, written beside and renamed, so that readers see a
 * whole one. Memory is reserved once. */
#ifndef GDN_PROMETHEUS_H
#define GDN_PROMETHEUS_H

#include <stddef.h>

struct prometheus {
    char path[4200], beside[4208];
    char run[8448];                 /* run="…", the label of all samples */
    char *text;                     /* [size] */
    size_t size, used;              /* `used` beyond `size`: it did not fit */
    const char *name, *type, *help; /* of the metric whose samples follow */
    int samples;                    /* of it so far */
    char failure[4608];             /* why the file could not be written */
};

/* For `directory`/metrics.prom with room for about `samples` samples, all with a label `run`: the directory's
 * real path, which is the same however it is spelt, and another one's where names are alike. Creates nothing.
 * Not collective. GDN_INTERNAL without memory or with a path that is too long. */
int prometheus_open(struct prometheus *out, const char *directory, int samples);
void prometheus_free(struct prometheus *prometheus);

/* Removes `directory`/metrics.prom where there is one; `out` then holds no memory. Not collective. −1 as
 * prometheus_write. */
int prometheus_remove(struct prometheus *out, const char *directory);

/* A new text. */
void prometheus_begin(struct prometheus *prometheus);
/* A metric: its name, "gauge", "counter" or "summary", and a line of help; all outlive its samples. It is
 * left out where no sample follows. */
void prometheus_metric(struct prometheus *prometheus, const char *name, const char *type, const char *help);
/* A sample of it, NAN: none. `suffix` is appended to the name ("" but of a summary: "_sum", "_count"); more
 * labels than `run` as text, layer="1",distance="2", or "". */
void prometheus_sample(struct prometheus *prometheus, const char *suffix, const char *labels, double value);
/* A metric of one sample with no labels but `run`. */
void prometheus_value(struct prometheus *prometheus, const char *name, const char *type, const char *help,
                      double value);

/* Writes the file. −1 where that fails, with words in `failure` and the old file still there: whoever calls
 * may have a failure of its own recorded, which is to stay. */
int prometheus_write(struct prometheus *prometheus);

#endif
