/* gdn deltas reconstruct. */
#include "train/deltas/rebuild.h"
#include "data/output.h"
#include "kernels/base/status.h"
#include "train/command/deltas.h"
#include "train/command/outputs.h"

#include <unistd.h>

static int find_one(const struct delta_survey *survey, const char *run, const struct delta_entry **entry) {
    if (survey->damaged) return gdn_fail(GDN_INPUT, "%s", survey->damage[0].text);
    *entry = survey->list.entry;
    if (survey->list.count == 1) return 0;
    const struct delta_entry *last = &survey->list.entry[survey->list.count - 1];
    return gdn_fail(GDN_INPUT,
                    "gdn deltas reconstruct writes one difference, and %d of %s are chosen, from layer %d, "
                    "distance %d to layer %d, distance %d: choose with --step, --layer and --distance",
                    survey->list.count, run, (*entry)->layer, (*entry)->distance, last->layer,
                    last->distance);
}

static int rebuild_entry(const struct deltas_settings *settings, const struct delta_entry *entry) {
    struct delta_record record;
    TRY(delta_record_read(entry, &record));
    long stored = record.factors.rank, rank = settings->rank == DELTAS_ALL ? stored : settings->rank;
    int status = 0;
    if (rank < 1 || rank > stored)
        status = gdn_fail(
            GDN_INPUT, "--rank is %ld, and the rank stored in %s is %ld: a number from 1 to %ld is expected",
            rank, entry->path, stored, stored);
    if (!status && rank < stored) delta_cut(&record.factors, rank);
    if (!status) status = delta_rebuild(&record, stored, entry->path, settings->out);
    delta_record_free(&record);
    return status;
}

int deltas_reconstruct(const struct deltas_settings *settings) {
    if (!settings->out) return gdn_fail(GDN_INPUT, "gdn deltas reconstruct: --out FILE.h5 is missing");
    if (!settings->force && access(settings->out, F_OK) == 0)
        return gdn_fail(GDN_INPUT, "%s exists; --force replaces it", settings->out);
    TRY(outputs_verify("--out", settings->out, settings->run));
    struct delta_survey survey;
    const struct delta_entry *entry = NULL;
    TRY(delta_survey(settings->run, &settings->choice, &survey));
    int status = find_one(&survey, settings->run, &entry);
    if (!status) status = output_refuse_input(settings->out, entry->path, "the stored difference");
    if (!status) status = rebuild_entry(settings, entry);
    delta_survey_free(&survey);
    return status;
}
