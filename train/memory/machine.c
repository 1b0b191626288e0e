/* How much memory the machine has for this process: the system's own estimate, which counts cached files as
 * free, and the limits of the control groups that the process is in. */
#include "train/memory/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, PAGE = 4096 /* nothing left is not the same as not known */ };

/* The number after `key` in a file of lines "key value"; of a file that is one number where `key` is "". −1:
 * not there, or no number ("max"). */
static int64_t number_in(const char *path, const char *key) {
    char line[512];
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    int64_t found = -1;
    size_t length = strlen(key);
    while (found < 0 && fgets(line, sizeof line, file)) {
        char *end;
        if (strncmp(line, key, length)) continue;
        long long value = strtoll(line + length, &end, 10);
        if (end != line + length && value >= 0) found = value;
    }
    fclose(file);
    return found;
}

/* One control group's files. */
struct version {
    const char *mount, *limit, *usage, *cached;
};
static const struct version versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* What a group may still take; −1: it has no limit. Cached files that nobody has open would make way. */
static int64_t left_in(const char *root, const struct version *v, const char *group) {
    char path[PATH];
    snprintf(path, sizeof path, "%s%s%s/%s", root, v->mount, group, v->limit);
    int64_t limit = number_in(path, "");
    if (limit < 0 || limit > INT64_MAX / 2) return -1;
    snprintf(path, sizeof path, "%s%s%s/%s", root, v->mount, group, v->usage);
    int64_t usage = number_in(path, "");
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, v->mount, group);
    int64_t cached = number_in(path, v->cached);
    int64_t left = limit - (usage > 0 ? usage : 0) + (cached > 0 ? cached : 0);
    return left < 0 ? 0 : left < limit ? left : limit;
}

/* The group in a line of /proc/self/cgroup, "4:memory:/a/b" or of version 2 "0::/a/b", or NULL. */
static char *group_of(char *line, const struct version **version) {
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return NULL;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    controllers++;
    *version = &versions[controllers[0] ? 1 : 0];
    if (!controllers[0]) return strncmp(line, "0:", 2) ? NULL : group;
    for (char *one = strtok(controllers, ","); one; one = strtok(NULL, ","))
        if (!strcmp(one, "memory")) return group;
    return NULL;
}

/* Lowers `*min` to what the group and all groups around it have left. In a container the path may be the
 * host's, of which only the upper end is mounted: what is not there sets no limit. */
static void lower(const char *root, const struct version *v, char *group, int64_t *min) {
    for (;;) {
        size_t length = strlen(group);
        if (length && group[length - 1] == '/') group[length - 1] = 0;
        int64_t left = left_in(root, v, group);
        if (left >= 0 && left < *min) *min = left;
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = 0;
    }
}

int64_t memory_of_machine(const char *root) {
    char path[PATH], line[PATH];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    int64_t kib = number_in(path, "MemAvailable:"), min = kib < 0 ? INT64_MAX : kib * 1024;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const struct version *version;
        char *group = group_of(line, &version);
        if (group) lower(root, version, group, &min);
    }
    if (file) fclose(file);
    return min == INT64_MAX ? 0 : min < PAGE ? PAGE : min;
}
