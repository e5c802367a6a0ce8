#include "plan/setting.h"

#include "job/memory.h"
#include <stdlib.h>
#include <string.h>

struct setting *settings_find(const struct settings *settings, const char *key)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->list[i].key, key) == 0)
            return &settings->list[i];
    return NULL;
}

static void add(struct settings *settings, const struct setting *s)
{
    settings->list = grow(settings->list, settings->count, sizeof *settings->list);
    settings->list[settings->count++] = *s;
}

void settings_put(struct settings *settings, const struct setting *s)
{
    struct setting *old = settings_find(settings, s->key);
    bool shared;

    if (old == NULL) {
        add(settings, s);
        return;
    }
    shared = old->shared && s->shared;
    *old = *s;
    old->shared = shared;
}

void settings_lend(struct settings *settings, const struct setting *s)
{
    struct setting *first = settings_find(settings, s->key);

    if (first == NULL)
        add(settings, s);
    else if (first->rival.file == NULL && s->rival.file != NULL)
        first->rival = s->rival;
    else if (first->rival.file == NULL && strcmp(first->text, s->text) != 0)
        first->rival = s->where;
}

void settings_free(struct settings *settings)
{
    free(settings->list);
    *settings = (struct settings){NULL, 0};
}
