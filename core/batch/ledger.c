#include "batch/ledger.h"

#include "run/record.h"
#include <string.h>

bool ledger_open(struct ledger *l, const struct batch_options *options)
{
    *l = (struct ledger){.options = options};
    if (options->format != OUTPUT_TABLE || options->junit != NULL)
        l->kept = json_array();
    return records_open(&l->records, options->dry_run ? NULL : options->records);
}

static void count(struct ledger *l, json_t *record)
{
    const char *status = json_text_at(record, "status");

    if (strcmp(status, "passed") == 0)
        l->passed++;
    else if (strcmp(status, "unsupported") == 0)
        l->unsupported++;
    else
        l->failed++;
}

void ledger_keep(struct ledger *l, json_t *records)
{
    if (l->kept != NULL)
        json_array_extend(l->kept, records);
}

void ledger_enter(struct ledger *l, json_t *record)
{
    count(l, record);
    records_append(&l->records, record);
}

void ledger_resume(struct ledger *l, json_t *record)
{
    count(l, record);
    l->resumed++;
}

size_t ledger_count(const struct ledger *l)
{
    return l->passed + l->unsupported + l->failed;
}

bool ledger_has_failure(const struct ledger *l)
{
    return l->failed > 0 || (l->options->strict && l->unsupported > 0);
}

bool ledger_close(struct ledger *l)
{
    return records_close(&l->records);
}

void ledger_free(struct ledger *l)
{
    json_decref(l->kept);
}
