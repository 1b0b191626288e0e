/* The key whose value is a list of rules between layers: model.rules. An entry is read by what the row of its
 * kind says of its form: which settings it has, and what they are where the entry does not say. */
#include "train/config/private.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"
#include "model/rules/rules.h"

static const char place_words[] = "before|after|around|head|query|key|value"; /* enum rule_place */

static const char channel_words[] = "query|key|value";       /* the last of these */
static const char mixing_words[] = "free|doubly_stochastic"; /* enum rule_mixing */

#define MEMBER(name) #name, .offset = offsetof(struct rule_config, name)
#define LIST(name) MEMBER(name), .type = KEY_INTS, .count_offset = offsetof(struct rule_config, num_##name)
#define COUNT .min = 1, .max = INT_MAX

static const struct key kind_key = {"kind", .type = KEY_WORD, .rows = rules_words};
static const struct key setting_keys[RULE_SETTINGS] = {
    [SETTING_PLACE] = {MEMBER(place), .type = KEY_WORD, .choices = place_words},
    [SETTING_CHANNELS] = {MEMBER(channels), .type = KEY_INTS},
    [SETTING_SOURCES] = {LIST(sources), .max = INT_MAX},
    [SETTING_DISTANCES] = {LIST(distances), COUNT},
    [SETTING_FROM] = {MEMBER(from), .type = KEY_WORD, .choices = "state|added|both"},
    [SETTING_LAYERS] = {LIST(layers), .max = INT_MAX},
    [SETTING_DILATION] = {MEMBER(dilation), .type = KEY_INT, COUNT},
    [SETTING_PERIOD] = {MEMBER(period), .type = KEY_INT, COUNT},
    [SETTING_BLOCK] = {MEMBER(block), .type = KEY_INT, COUNT},
    [SETTING_GROUPS] = {MEMBER(groups), .type = KEY_INT, COUNT},
    [SETTING_HIDDEN] = {MEMBER(hidden), .type = KEY_INT, COUNT},
    [SETTING_STREAMS] = {MEMBER(streams), .type = KEY_INT, .min = 2, .max = 8},
    [SETTING_MIXING] = {MEMBER(mixing), .type = KEY_WORD, .choices = mixing_words},
    [SETTING_LR_SCALE] = {MEMBER(lr_scale), .type = KEY_REAL, .min = FLT_MIN, .max = FLT_MAX},
};

enum { WORDS = 256 };

/* "a|b" of a row's forms. */
static const char *form_words(const struct rule *row, char out[WORDS]) {
    size_t used = 0;
    for (int f = 0; f < row->num_forms; f++)
        used = text_append(out, WORDS, used, "%s%s", f ? "|" : "", row->forms[f].word);
    return out;
}

static bool has_form_word(const struct rule *row) {
    return row->num_forms > 1;
}

bool rule_has(const struct rule_config *rule, int setting) {
    return rules_row(rule->row)->forms[rule->form].settings >> setting & 1;
}

const char *config_rule_text(const struct rule_config *rule, char out[RULE_TEXT]) {
    const struct rule *row = rules_row(rule->row);
    const char *place = place_words;
    for (int i = 0; i < rule->place; i++) place += strcspn(place, "|") + 1;
    size_t used = text_append(out, RULE_TEXT, 0, "%s: ", row->name);
    if (has_form_word(row)) used = text_append(out, RULE_TEXT, used, "%s, ", row->forms[rule->form].word);
    text_append(out, RULE_TEXT, used, "%.*s", (int)strcspn(place, "|"), place);
    return out;
}

/* ---------------------------------------------------------------------------------------------- reading */

/* One source: a layer's number, or the embedding. */
static int read_source(int *source, const char *label, struct fy_node *node, const struct place *place) {
    static const struct key layer = {.type = KEY_INT, .max = INT_MAX};
    struct fy_node *value;
    char text[SHOWN];
    TRY(yaml_resolve(node, place, label, &value));
    const char *word = value && fy_node_is_scalar(value) ? fy_node_get_scalar0(value) : NULL;
    *source = -1;
    if (word && !strcmp(word, "embedding")) return GDN_OK;
    if (word && strspn(word, "0123456789") == strlen(word))
        return entry_read(source, &layer, label, node, place);
    return fail_at(place, "%s is %s: a layer's number or embedding is expected", label,
                   yaml_shown(value, text));
}

static int read_sources(struct rule_config *rule, const char *label, struct fy_node *node,
                        const struct place *place) {
    struct fy_node *list;
    char text[SHOWN];
    TRY(yaml_resolve(node, place, label, &list));
    if (!list || !fy_node_is_sequence(list) || fy_node_sequence_item_count(list) > MAX_DISTANCES)
        return fail_at(place, "%s is %s: a list of at most %d layers' numbers, or embedding, is expected",
                       label, yaml_shown(list, text), MAX_DISTANCES);
    rule->num_sources = 0;
    void *iterator = NULL;
    for (struct fy_node *item; (item = fy_node_sequence_iterate(list, &iterator));) {
        char name[128];
        int n = rule->num_sources++;
        struct place at = place_of(item, place);
        snprintf(name, sizeof name, "%s[%d]", label, n);
        TRY(read_source(&rule->sources[n], name, item, &at));
        for (int i = 0; i < n; i++)
            if (rule->sources[i] == rule->sources[n])
                return fail_at(&at, "%s is %s once more: each source is expected once", name,
                               yaml_shown(item, text));
    }
    return GDN_OK;
}

/* The place is one of the row's. */
static int validate_place(const struct rule_config *rule, const char *label, const struct place *place) {
    const struct rule *row = rules_row(rule->row);
    char words[WORDS] = "";
    size_t used = 0;
    int number = 0;
    if (row->places >> rule->place & 1) return GDN_OK;
    for (const char *at = place_words; *at; at += strspn(at, "|"), number++) {
        int length = (int)strcspn(at, "|");
        if (row->places >> number & 1)
            used = text_append(words, sizeof words, used, "%s%.*s", used ? ", " : "", length, at);
        at += length;
    }
    return fail_at(place, "%s: %s does not enter there; expected is one of %s", label, row->name, words);
}

static int read_ints(struct rule_config *rule, const struct key *key, const char *label, struct fy_node *node,
                     const struct place *place) {
    struct fy_node *list;
    TRY(list_resolve(key, label, node, place, &list));
    return list_read_ints(rule, key, label, list, place);
}

/* A list of words, each once, into a bit set. */
static int read_channels(struct rule_config *rule, const char *label, struct fy_node *node,
                         const struct place *place) {
    static const struct key channel = {.type = KEY_WORD, .choices = channel_words};
    struct fy_node *list;
    char text[SHOWN];
    TRY(yaml_resolve(node, place, label, &list));
    if (!list || !fy_node_is_sequence(list))
        return fail_at(place, "%s is %s: a list of query, key and value is expected", label,
                       yaml_shown(list, text));
    void *iterator = NULL;
    for (struct fy_node *item; (item = fy_node_sequence_iterate(list, &iterator));) {
        struct place at = place_of(item, place);
        int word;
        TRY(entry_read(&word, &channel, label, item, &at));
        if (rule->channels >> (PLACE_QUERY + word) & 1)
            return fail_at(&at, "%s has %s once more: each channel is expected once", label,
                           yaml_shown(item, text));
        rule->channels |= 1u << (PLACE_QUERY + word);
    }
    return GDN_OK;
}

static int read_setting(struct rule_config *rule, int setting, const char *label, struct fy_node *node,
                        const struct place *place) {
    const struct key *key = &setting_keys[setting];
    if (setting == SETTING_SOURCES) return read_sources(rule, label, node, place);
    if (setting == SETTING_CHANNELS) return read_channels(rule, label, node, place);
    if (key->type == KEY_INTS) return read_ints(rule, key, label, node, place);
    TRY(entry_read(rule, key, label, node, place));
    return setting == SETTING_PLACE ? validate_place(rule, label, place) : GDN_OK;
}

/* Kind and form decide what else there may be, wherever they stand. Fills the rest with the kind's defaults.
 */
static int read_kind(struct rule_config *rule, const char *label, struct fy_node *mapping,
                     const struct place *place) {
    struct fy_node *kind = fy_node_mapping_lookup_by_string(mapping, kind_key.path, FY_NT),
                   *form = fy_node_mapping_lookup_by_string(mapping, "form", FY_NT);
    char name[96], words[WORDS];
    int number;
    if (!kind) return fail_at(place, "%s lacks kind: a rule's name is expected", label);
    struct place at = place_of(kind, place);
    snprintf(name, sizeof name, "%s.kind", label);
    TRY(entry_read(&number, &kind_key, name, kind, &at));
    const struct rule *row = rules_row(1 + number);
    *rule = row->defaults;
    rule->row = 1 + number;
    if (!form || !has_form_word(row)) return GDN_OK;
    const struct key key = {"form", .type = KEY_WORD, .choices = form_words(row, words)};
    at = place_of(form, place);
    snprintf(name, sizeof name, "%s.form", label);
    return entry_read(&rule->form, &key, name, form, &at);
}

/* What an entry of this kind and form may have: keys into key [2 + RULE_SETTINGS], kind and form first, with
 * the setting that each is; "kind, which is mix, and may have distances". Returns how many. */
static int list_members(const struct rule_config *rule, struct key *key, int *setting, char words[WORDS]) {
    const struct rule *row = rules_row(rule->row);
    int n = 0;
    size_t used = text_append(words, WORDS, 0, "kind, which is %s, and may have", row->name);
    key[n] = kind_key, setting[n++] = -1;
    if (has_form_word(row)) key[n] = (struct key){"form", .type = KEY_WORD}, setting[n++] = -1;
    for (int s = 0; s < RULE_SETTINGS; s++)
        if (rule_has(rule, s)) key[n] = setting_keys[s], setting[n++] = s;
    for (int i = 1; i < n; i++)
        used = text_append(words, WORDS, used, "%s %s", i == 1 ? "" : i < n - 1 ? "," : " and", key[i].path);
    if (n == 1) text_append(words, WORDS, used, " nothing else");
    return n;
}

static int read_rule(void *entry, int index, const struct key *member, const char *label,
                     struct fy_node *node, const struct place *list) {
    struct rule_config *rule = entry;
    struct place place = place_of(node, list);
    struct key key[2 + RULE_SETTINGS];
    int setting[2 + RULE_SETTINGS];
    char text[SHOWN], name[96], words[WORDS];
    struct fy_node *mapping;
    (void)index, (void)member;
    TRY(yaml_resolve(node, &place, label, &mapping));
    if (!mapping || !fy_node_is_mapping(mapping))
        return fail_at(&place, "%s is %s: {kind: KIND, and settings of that kind} is expected", label,
                       yaml_shown(mapping, text));
    TRY(read_kind(rule, label, mapping, &place));
    struct members members = {key, list_members(rule, key, setting, words), words, "an entry"};
    void *iterator = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(mapping, &iterator));) {
        struct place at;
        int k;
        TRY(list_member(mapping, pair, &place, label, &members, &at, &k));
        snprintf(name, sizeof name, "%s.%s", label, key[k].path);
        if (setting[k] >= 0) TRY(read_setting(rule, setting[k], name, fy_node_pair_value(pair), &at));
    }
    return GDN_OK;
}

/* ---------------------------------------------------------------------------------------------- writing */

static void write_sources(const struct rule_config *rule, FILE *out) {
    fputc('[', out);
    for (int i = 0; i < rule->num_sources; i++) {
        if (i) fputs(", ", out);
        if (rule->sources[i] < 0)
            fputs("embedding", out);
        else
            fprintf(out, "%d", rule->sources[i]);
    }
    fputc(']', out);
}

static void write_channels(const struct rule_config *rule, FILE *out) {
    static const char *const word[] = {"query", "key", "value"};
    const char *between = "";
    fputc('[', out);
    for (int i = 0; i < 3; i++) {
        if (!(rule->channels >> (PLACE_QUERY + i) & 1)) continue;
        fprintf(out, "%s%s", between, word[i]);
        between = ", ";
    }
    fputc(']', out);
}

static void write_setting(const struct rule_config *rule, int setting, FILE *out) {
    const struct key *key = &setting_keys[setting];
    if (setting == SETTING_SOURCES)
        write_sources(rule, out);
    else if (setting == SETTING_CHANNELS)
        write_channels(rule, out);
    else if (key->type == KEY_INTS)
        list_write((const char *)rule + key->offset, key,
                   *(const int *)((const char *)rule + key->count_offset), out);
    else
        entry_write(rule, key, out);
}

char *rule_setting_text(const struct rule_config *rule, const char *name) {
    const struct rule *row = rules_row(rule->row);
    char *text = NULL;
    size_t length;
    if (!strcmp(name, kind_key.path)) return strdup(row->name);
    if (!strcmp(name, "form")) return has_form_word(row) ? strdup(row->forms[rule->form].word) : NULL;
    int setting = 0;
    while (setting < RULE_SETTINGS && strcmp(setting_keys[setting].path, name) != 0) setting++;
    if (setting == RULE_SETTINGS || !rule_has(rule, setting)) return NULL;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    write_setting(rule, setting, out);
    return fclose(out) ? (free(text), NULL) : text;
}

static void write_rule(const void *entry, FILE *out) {
    const struct rule_config *rule = entry;
    const struct rule *row = rules_row(rule->row);
    fprintf(out, "{kind: %s", row->name);
    if (has_form_word(row)) fprintf(out, ", form: %s", row->forms[rule->form].word);
    for (int s = 0; s < RULE_SETTINGS; s++) {
        if (!rule_has(rule, s)) continue;
        fprintf(out, ", %s: ", setting_keys[s].path);
        write_setting(rule, s, out);
    }
    fputc('}', out);
}

/* The delta rule stands beside them. */
const struct entries rule_entries = {MAX_RULES - 1, sizeof(struct rule_config), read_rule, write_rule};
