/* A store of differences on one rank, shown made-up connections. */
#ifndef GDN_DELTA_STORE_FIXTURE_H
#define GDN_DELTA_STORE_FIXTURE_H

#include "train/deltas/delta_store_private.h"
#include "train/deltas/list.h"

enum { B = 2, S = 20, T = B * S, D = 24, GATES = 8, LD = 11, DECAY = 5 };

/* A store, and what it stands on. */
struct fixture {
    struct config config;
    struct layout layout;
    struct edges edges;
    struct edge_set active[MAX_DISTANCES + 1]; /* by how many distances are introduced, as far as asked for */
    struct mesh mesh;
    struct delta_place place;
    struct delta_store *store;
    long memory; /* as planned */
};

/* What is wrong with a connection. */
enum fault { NOTHING, NAN_DIFFERENCE, INFINITE_DIFFERENCE, NAN_GATE };

/* The store with at most two overrides (NULL: none), in the scratch folder. */
void create(struct fixture *f, char *first, char *second);
void destroy(struct fixture *f);
/* The edges of a step; the fixture's. */
const struct edge_set *active_at(struct fixture *f, int64_t step);
/* A forward pass: all active connections of the layers that are watched; `faulty` is edge number of
 * `fault`. */
void pass(struct fixture *f, const struct delta_watch *watch, int64_t step, int faulty, enum fault fault);
struct delta_report store(struct fixture *f, int64_t step, int faulty, enum fault fault);
struct delta_list listed(void);
/* The stored connection, or NULL. */
const struct delta_entry *find(const struct delta_list *list, int64_t step, const struct edge *edge);
/* Checks a stored connection against the made-up one; its rank. */
long check_stored(const struct delta_list *list, int64_t step, const struct edge *edge);
/* A teardown: removes what was stored. */
int remove_files(void **state);

#endif
