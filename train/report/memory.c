/* gdn report: where memory goes, of the rank that needs most, by category. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/rows.h"

/* Whether any run has memory of this category, planned or reserved. */
static bool used(const struct report *report, int part) {
    for (int r = 0; r < report->count; r++)
        if (report->run[r].memory.planned.bytes[part] > 0 || report->run[r].memory.reserved.bytes[part] > 0) return true;
    return false;
}

static void write_bar(const struct report *report, const char *what, const struct memory *memory,
                      int64_t max) {
    FILE *page = report->page;
    char number[32];
    int64_t sum = memory_sum(memory);
    fprintf(page, "<span>%s</span><span class=\"bar\" style=\"width:%.2f%%\">", what,
            max > 0 ? 100 * (double)sum / (double)max : 0);
    for (int part = 0; part < MEMORY_PARTS; part++)
        if (memory->bytes[part] > 0)
            fprintf(page, "<i class=\"c%d\" style=\"width:%.2f%%\" title=\"%s %s\"></i>",
                    part % FIGURE_COLOURS, 100 * (double)memory->bytes[part] / (double)sum, memory_word[part],
                    bytes_text((double)memory->bytes[part], number));
    fprintf(page, "</span><span>%s</span>\n", bytes_text((double)sum, number));
}

static void write_bars(const struct report *report) {
    FILE *page = report->page;
    int64_t max = 0;
    for (int r = 0; r < report->count; r++) {
        int64_t planned = memory_sum(&report->run[r].memory.planned),
                reserved = memory_sum(&report->run[r].memory.reserved);
        if (planned > max) max = planned;
        if (reserved > max) max = reserved;
    }
    fprintf(page, "<ul class=\"legend\">");
    for (int part = 0; part < MEMORY_PARTS; part++)
        if (used(report, part))
            fprintf(page, "<li><i class=\"dot c%d\"></i>%s</li>", part % FIGURE_COLOURS, memory_word[part]);
    fprintf(page, "</ul>\n");
    for (int r = 0; r < report->count; r++) {
        const struct report_run *run = &report->run[r];
        if (!run->memory.there) continue;
        if (report->count > 1) {
            fprintf(page, "<h3 style=\"margin-top:12px\">");
            report_name(report, r);
            fprintf(page, "</h3>");
        }
        fprintf(page, "<div class=\"bars\">\n");
        write_bar(report, "planned", &run->memory.planned, max);
        write_bar(report, "reserved", &run->memory.reserved, max);
        fprintf(page, "</div>\n");
    }
}

static void write_row(const struct report *report, const char *name,
                      double (*value)(const struct report_run *, int), int part) {
    char number[32];
    fprintf(report->page, "<tr><th>%s</th>", name);
    for (int r = 0; r < report->count; r++)
        fprintf(report->page, "<td class=\"n\">%s</td>",
                bytes_text(report->run[r].memory.there ? value(&report->run[r], part) : NAN, number));
    fprintf(report->page, "</tr>\n");
}

static double reserved_of(const struct report_run *run, int part) {
    return part < MEMORY_PARTS ? (double)run->memory.reserved.bytes[part] : (double)memory_sum(&run->memory.reserved);
}
static double planned_of(const struct report_run *run, int part) {
    (void)part;
    return (double)memory_sum(&run->memory.planned);
}
static double peak_of(const struct report_run *run, int part) {
    (void)part;
    return run->memory.peak_resident;
}
static double available_of(const struct report_run *run, int part) {
    (void)part;
    return run->memory.available;
}

static void write_table(const struct report *report) {
    FILE *page = report->page;
    fprintf(page, "<div class=\"scroll\" style=\"margin-top:14px\"><table>\n<thead><tr><th>reserved</th>");
    for (int r = 0; r < report->count; r++) {
        fprintf(page, "<th class=\"n\">");
        if (report->count > 1) report_name(report, r);
        fprintf(page, "</th>");
    }
    fprintf(page, "</tr></thead>\n");
    for (int part = 0; part < MEMORY_PARTS; part++)
        if (used(report, part)) write_row(report, memory_word[part], reserved_of, part);
    write_row(report, "together", reserved_of, MEMORY_PARTS);
    write_row(report, "planned before the start", planned_of, 0);
    write_row(report, "most resident at a time", peak_of, 0);
    write_row(report, "available", available_of, 0);
    fprintf(page, "</table></div>\n");
}

/* The last figure, which ends the grid. */
static int draw_use(const struct report *report) {
    static const char *const places[] = {"resident on the host", "on the device"};
    struct figure_row row = {
        {.title = "Memory in use", .name = places, .kinds = 2, .axis = AXIS_BYTES, .zero = true},
        {CURVE_RESIDENT, CURVE_DEVICE},
        {false, false},
        "memory over time: " NO_MONITOR};
    row.look.wide = report->count > 2; /* as the card before it */
    TRY(report_row(report, &row));
    fprintf(report->page, "</div>\n");
    return report_row_lacks(report, &row);
}

int report_memory(const struct report *report) {
    report_heading(report, "memory", "Memory");
    bool *lacking = calloc((size_t)report->count, sizeof *lacking), any = false;
    if (!lacking) return report_no_memory();
    for (int r = 0; r < report->count; r++)
        lacking[r] = !report->run[r].memory.there, any |= report->run[r].memory.there;
    fprintf(report->page, "<div class=\"grid\">\n");
    if (any) {
        report_card(report, report->count > 2, "By category, of the rank that needs most", NULL);
        write_bars(report);
        write_table(report);
        report_card_end(report);
    }
    int status = draw_use(report);
    report_lacks(report, lacking, "no <code>memory</code> events: they come with the start of a run");
    free(lacking);
    return status;
}
