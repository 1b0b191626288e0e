/* Profiles of machines: a mapping of numbers, and where those lie that have names. */
#include "train/config/profile.h"

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/append.h"
#include "kernels/base/program.h"
#include "kernels/base/status.h"
#include "train/config/private.h"

#define NUMBER(member, about)                                                                                \
    { #member, KEY_REAL, offsetof(struct profile, member), .min = 1, .max = 1e24, .help = about }
static const struct key keys[] = {
    NUMBER(flops, "a rank's arithmetic a second"),
    {"node", KEY_INT, offsetof(struct profile, node), .min = 1, .max = 1000000, .help = "ranks of a node"},
    NUMBER(bandwidth_inside, "bytes a second to ranks of the same node"),
    NUMBER(bandwidth_outside, "bytes a second to other nodes"),
    NUMBER(bandwidth_memory, "bytes a second of a rank's memory"),
    {"latency", KEY_REAL, offsetof(struct profile, latency), .min = 0, .max = 1e6,
     .help = "seconds of a message besides those of its bytes"},
    {"asynchronous_progress", KEY_BOOL, offsetof(struct profile, asynchronous_progress), .value = "true",
     .help = "whether all that a rank sends moves while it computes, and not messages between stages alone"},
};
enum { KEYS = sizeof keys / sizeof *keys };

static int read_mapping(struct fy_node *mapping, const struct place *file, struct profile *out) {
    static const struct members members = {keys, KEYS,
                                           "flops, node, bandwidth_inside, bandwidth_outside, "
                                           "bandwidth_memory, latency and asynchronous_progress",
                                           "a machine"};
    char text[SHOWN];
    if (!mapping || !fy_node_is_mapping(mapping))
        return fail_at(file, "the machine is %s: a mapping is expected that has %s",
                       yaml_shown(mapping, text), members.words);
    return members_read(out, mapping, file, "machine", "the machine", &members);
}

int profile_read(const char *path, struct profile *out) {
    struct place file = {.file = path};
    struct yaml yaml;
    char *text;
    size_t length;
    *out = (struct profile){0};
    TRY(config_read_file(path, &text, &length));
    int status = yaml_open(text, length, &file, &yaml);
    if (!status) status = read_mapping(yaml_root(&yaml), &file, out);
    yaml_close(&yaml);
    free(text);
    return status;
}

/* ------------------------------------------------------------------------------------------- by name */

/* The i-th folder of profiles: of the source tree that the program was built in, in build/ or a folder in
 * there, and of an installed one. */
static const char *const folders[] = {"/../configs/machines", "/../../configs/machines",
                                      "/../share/gdn/configs/machines"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static bool is_profile(const char *name) {
    size_t length = strlen(name);
    return length > strlen(".yaml") && !strcmp(name + length - strlen(".yaml"), ".yaml");
}

static int keep_profiles(const struct dirent *entry) {
    return is_profile(entry->d_name);
}

/* "a, b, c" of the profiles in a folder. */
static void list_profiles(const char *folder, char *words, size_t size) {
    struct dirent **entry;
    int count = scandir(folder, &entry, keep_profiles, alphasort);
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        int length = (int)(strlen(entry[i]->d_name) - strlen(".yaml"));
        used = text_append(words, size, used, "%s%.*s", i ? ", " : "", length, entry[i]->d_name);
        free(entry[i]);
    }
    if (count >= 0) free(entry);
}

int profile_find(const char *name, struct profile *out) {
    char program[PATH_MAX], folder[PATH_MAX + 64], path[PATH_MAX + 256], words[512] = "", text[SHOWN];
    if (strchr(name, '/') || is_profile(name)) return profile_read(name, out);
    program_folder(program);
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(folder, sizeof folder, "%s%s", program, folders[i]);
        snprintf(path, sizeof path, "%s/%.150s.yaml", folder, name);
        if (!access(path, R_OK)) return profile_read(path, out);
        if (!words[0]) list_profiles(folder, words, sizeof words);
    }
    return gdn_fail(GDN_INPUT, "--machine '%s': %s, or the PATH.yaml of a profile is expected",
                    shown(name, text), words[0] ? words : "no profile is installed");
}
