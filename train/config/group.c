/* The key whose value is a list of settings for tensors: train.groups. */
#include "train/config/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* A pattern of tensors' names, as fnmatch reads it. */
static int read_match(char match[GROUP_MATCH], const char *label, struct fy_node *node,
                      const struct place *place) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*?[]!";
    const struct key text = {.type = KEY_STRING};
    char *read = NULL, name[SHOWN];
    int status = entry_read(&read, &text, label, node, place);
    size_t length = read ? strlen(read) : 0;
    if (!status && (!length || length >= GROUP_MATCH || strspn(read, allowed) < length))
        status =
            fail_at(place, "%s is '%s': 1 to %d characters of tensors' names are expected, * for any of them",
                    label, shown(read, name), GROUP_MATCH - 1);
    if (!status) strcpy(match, read);
    free(read);
    return status;
}

static int read_group(void *entry, int index, const struct key *key, const char *label, struct fy_node *node,
                      const struct place *list) {
    static const struct members members = {group_keys, GROUP_KEYS,
                                           "match, and may have lr_scale, weight_decay, beta1 and beta2", "an entry"};
    struct parameter_group *group = entry;
    struct place place = place_of(node, list);
    char text[SHOWN], name[96];
    struct fy_node *mapping;
    (void)index, (void)key;
    *group = (struct parameter_group){"", NAN, NAN, NAN, NAN};
    TRY(yaml_resolve(node, &place, label, &mapping));
    if (!mapping || !fy_node_is_mapping(mapping))
        return fail_at(
            &place,
            "%s is %s: {match: TEXT, lr_scale: NUMBER, weight_decay: NUMBER, beta1: NUMBER, beta2: "
            "NUMBER} is expected",
            label, yaml_shown(mapping, text));
    void *iterator = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(mapping, &iterator));) {
        struct place at;
        int k;
        TRY(list_member(mapping, pair, &place, label, &members, &at, &k));
        snprintf(name, sizeof name, "%s.%s", label, group_keys[k].path);
        if (k == GROUP_NAMES)
            TRY(read_match(group->match, name, fy_node_pair_value(pair), &at));
        else
            TRY(entry_read(group, &group_keys[k], name, fy_node_pair_value(pair), &at));
    }
    if (!group->match[0])
        return fail_at(&place, "%s lacks match: %s is expected", label, group_keys[GROUP_NAMES].help);
    return GDN_OK;
}

static void write_group(const void *entry, FILE *out) {
    const struct parameter_group *group = entry;
    fputs("{match: ", out);
    value_write_string(group->match, out);
    for (int k = GROUP_NAMES + 1; k < GROUP_KEYS; k++) {
        if (isnan(*(const double *)((const char *)group + group_keys[k].offset))) continue;
        fprintf(out, ", %s: ", group_keys[k].path);
        entry_write(group, &group_keys[k], out);
    }
    fputc('}', out);
}

const struct entries group_entries = {GROUPS_MAX, sizeof(struct parameter_group), read_group, write_group};
