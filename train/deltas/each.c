#include "train/deltas/each.h"

#include "kernels/base/status.h"

#include <math.h>

int deltas_each(struct delta_survey *survey, deltas_take *take, void *context) {
    for (int i = 0; i < survey->list.count; i++) {
        const struct delta_entry *entry = &survey->list.entry[i];
        struct delta_record record;
        int element, status = delta_record_read_sized(entry, &record, &element);
        if (status == GDN_INPUT) {
            TRY(delta_survey_damaged(survey, entry));
            continue;
        }
        TRY(status);
        status = take(context, entry, &record, element);
        delta_record_free(&record);
        TRY(status);
    }
    return 0;
}

int deltas_report_damage(const struct delta_survey *survey) {
    if (survey->damaged == 0) return 0;
    if (survey->files == 1) return gdn_fail(GDN_INPUT, "%s", survey->damage[0].text);
    return gdn_fail(GDN_INPUT, "%d of %d files cannot be read; the first: %s", survey->damaged, survey->files,
                    survey->damage[0].text);
}

/* The factors' own error and what the dropped singular values hold are orthogonal. */
double deltas_error_of(const struct factors *f, long k) {
    double dropped = 0;
    if (f->norm == 0) return 0;
    for (long i = f->rank; i-- > k;) dropped += (double)f->sigma[i] * (double)f->sigma[i];
    return sqrt(f->error * f->error + dropped / f->norm / f->norm);
}
