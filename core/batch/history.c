#include "batch/history.h"

#include "job/memory.h"
#include "report/reader.h"
#include "run/record.h"
#include <stdlib.h>
#include <string.h>

struct history_entry {
    char key[17];
    const char *path; /* the caller's */
    size_t order;
    long offset;
};

static void add(void *user, const json_t *record, long offset)
{
    struct history *h = user;
    const char *key = json_text_at(record, "key");

    if (strlen(key) + 1 != sizeof h->entries[0].key)
        return;
    h->entries = grow(h->entries, h->count, sizeof *h->entries);
    h->entries[h->count] =
        (struct history_entry){.path = h->path, .order = h->count, .offset = offset};
    memcpy(h->entries[h->count++].key, key, sizeof h->entries[0].key);
}

static int compare(const void *a, const void *b)
{
    const struct history_entry *x = a, *y = b;
    const int by_key = strcmp(x->key, y->key);

    return by_key != 0 ? by_key : (x->order > y->order) - (x->order < y->order);
}

bool history_read(struct history *h, const char *path)
{
    bool is_read;

    h->path = path;
    is_read = reader_read(path, add, h);
    if (h->count > 0)
        qsort(h->entries, h->count, sizeof *h->entries, compare);
    return is_read;
}

json_t *history_find(const struct history *h, const char *key)
{
    size_t low = 0, high = h->count;
    json_t *record = NULL;

    while (low < high) { /* the first entry beyond the key */
        const size_t middle = low + (high - low) / 2;

        if (strcmp(h->entries[middle].key, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && strcmp(h->entries[low - 1].key, key) == 0)
        record = reader_at(h->entries[low - 1].path, h->entries[low - 1].offset);
    if (strcmp(json_text_at(record, "key"), key) == 0)
        return record;
    json_decref(record);
    return NULL;
}

void history_free(struct history *h)
{
    free(h->entries);
    *h = (struct history){0};
}
