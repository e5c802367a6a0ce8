#include "report/family.h"

#include "job/memory.h"
#include <stdlib.h>
#include <string.h>

/* Where the values of a sweep start in "file:section/n=1M,k=10"; "" when there is none. */
static const char *sweep_of(const char *job)
{
    const char *colon = strchr(job, ':');
    const char *slash = colon ? strchr(colon, '/') : NULL;

    return slash ? slash + 1 : "";
}

char *family_name(const char *job, family_joins joins, const void *user)
{
    const char *items = sweep_of(job);
    char *family = copy_text_n(job, *items ? (size_t)(items - job - 1) : strlen(job)), *longer;

    while (*items != '\0') {
        const size_t length = strcspn(items, ",");

        if (!joins(user, items, strcspn(items, "=,"))) {
            longer = format_text("%s, %.*s", family, (int)length, items);
            free(family);
            family = longer;
        }
        items += length + (items[length] == ',');
    }
    return family;
}
