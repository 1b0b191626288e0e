/* gdn report: the configuration of one run, or what differs between several. */
#include "train/report/page.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/config/private.h"
#include "train/report/html.h"

static void write_problems(const struct report *report) {
    for (int r = 0; r < report->count; r++) {
        if (report->run[r].configured) continue;
        fprintf(report->page, "<p class=\"lacks\">");
        html_text(report->page, report->run[r].name);
        fprintf(report->page, ": config.yaml is not what this version takes (");
        html_text(report->page, report->run[r].problem ? report->run[r].problem : "?");
        fprintf(report->page, ").</p>\n");
    }
}

/* Writes the key's row where not all runs have the same value; returns whether it did. */
static int write_key(const struct report *report, const struct key *key, char **value, bool *written) {
    *written = false;
    const char *first = NULL;
    bool differ = false;
    int status = GDN_OK;
    for (int r = 0; r < report->count; r++) {
        value[r] = NULL;
        if (!report->run[r].configured) continue;
        value[r] = value_text(&report->run[r].config, key);
        if (!value[r]) status = report_no_memory();
        if (first && value[r]) differ |= strcmp(first, value[r]) != 0;
        if (!first) first = value[r];
    }
    if (differ && !status) {
        *written = true;
        fprintf(report->page, "<tr><th><code>%s</code></th>", key->path);
        for (int r = 0; r < report->count; r++) {
            fprintf(report->page, "<td class=\"w\"><code>");
            html_text(report->page, value[r] ? value[r] : "\xe2\x80\x93");
            fprintf(report->page, "</code></td>");
        }
        fprintf(report->page, "</tr>\n");
    }
    for (int r = 0; r < report->count; r++) free(value[r]);
    return status;
}

static int write_differences(const struct report *report) {
    FILE *page = report->page;
    char **value = calloc((size_t)report->count, sizeof *value);
    if (!value) return report_no_memory();
    fprintf(page, "<div class=\"card scroll tall\"><h3>Keys that differ</h3><table "
                  "class=\"full\"><thead><tr><th>key</th>");
    for (int r = 0; r < report->count; r++) {
        fprintf(page, "<th>");
        report_name(report, r);
        fprintf(page, "</th>");
    }
    fprintf(page, "</tr></thead>\n");
    int status = GDN_OK, rows = 0;
    for (int k = 0; k < CONFIG_KEYS && !status; k++) {
        bool written;
        status = write_key(report, &config_keys[k], value, &written);
        rows += written;
    }
    fprintf(page, "</table>%s</div>\n",
            rows ? "" : "<p class=\"lacks\">None: all configurations are the same.</p>");
    free(value);
    return status;
}

int report_settings(const struct report *report) {
    report_heading(report, "settings", "Configuration");
    write_problems(report);
    if (report->count > 1) return write_differences(report);
    const struct report_run *run = &report->run[0];
    if (!run->text) return GDN_OK;
    fprintf(report->page,
            "<div class=\"card\"><details><summary>config.yaml, every setting written out</summary><pre>");
    html_text(report->page, run->text);
    fprintf(report->page, "</pre></details></div>\n");
    return GDN_OK;
}
