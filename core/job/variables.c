#include "job/variables.h"

#include "job/memory.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One variable as written: ${NAME} or ${NAME:-DEFAULT}. */
struct variable {
    const char *name, *fallback; /* not terminated; fallback NULL: none */
    size_t name_length, fallback_length;
};

/* Puts `length` bytes behind the text that *out holds. */
static void append(char **out, const char *from, size_t length)
{
    char *longer = format_text("%s%.*s", *out, (int)length, from);

    free(*out);
    *out = longer;
}

static bool is_name(const char *text, size_t length)
{
    static const char letters[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    return length > 0 && strspn(text, letters) >= length && (*text < '0' || *text > '9');
}

/* `at` is the dollar; the closing brace through *end. */
static enum gpurun_status scan_variable(const char *at, struct variable *v, const char **end,
                                        struct why *why)
{
    const char *close = strchr(at, '}');
    size_t inner, name;

    if (close == NULL)
        return why_fail(why, GPURUN_INVALID,
                        "'%.40s' has no '}': write ${NAME} or ${NAME:-DEFAULT}", at);
    inner = (size_t)(close - at) - 2;
    name = strcspn(at + 2, ":}");
    *v = (struct variable){.name = at + 2, .name_length = name};
    if (name < inner && strncmp(at + 2 + name, ":-", 2) == 0) {
        v->fallback = at + 2 + name + 2;
        v->fallback_length = inner - name - 2;
    }
    if (!is_name(v->name, name) || (name < inner && v->fallback == NULL))
        return why_fail(why, GPURUN_INVALID,
                        "'%.*s' is no variable: write ${NAME} or ${NAME:-DEFAULT}",
                        (int)(inner < 40 ? inner + 3 : 43), at);
    if (v->fallback != NULL && memchr(v->fallback, '$', v->fallback_length) != NULL)
        return why_fail(why, GPURUN_INVALID, "'%.*s': a default is plain text, without '$'",
                        (int)(inner < 40 ? inner + 3 : 43), at);
    *end = close;
    return GPURUN_OK;
}

static enum gpurun_status append_variable(char **out, const struct variable *v, struct why *why)
{
    char *name = copy_text_n(v->name, v->name_length);
    const char *value = getenv(name);
    enum gpurun_status status = GPURUN_OK;

    if (v->fallback != NULL && (value == NULL || *value == '\0'))
        append(out, v->fallback, v->fallback_length);
    else if (value == NULL)
        status = why_fail(why, GPURUN_INVALID,
                          "${%.80s} is not set: export %.80s, or write ${%.80s:-DEFAULT}", name,
                          name, name);
    else if (strpbrk(value, "\r\n") != NULL)
        status = why_fail(why, GPURUN_INVALID, "${%.80s} holds more than one line", name);
    else
        append(out, value, strlen(value));
    free(name);
    return status;
}

enum gpurun_status variables_expand(const char *text, char **out, struct why *why)
{
    char *made = copy_text("");
    enum gpurun_status status = GPURUN_OK;
    struct variable v = {.fallback = NULL};

    while (status == GPURUN_OK && *text != '\0') {
        const size_t plain = strcspn(text, "$");

        append(&made, text, plain);
        text += plain;
        if (text[0] == '$' && text[1] == '{') {
            status = scan_variable(text, &v, &text, why);
            if (status == GPURUN_OK)
                status = append_variable(&made, &v, why);
            text++;
        } else if (text[0] == '$') {
            append(&made, "$", 1);
            text += text[1] == '$' ? 2 : 1;
        }
    }
    if (status == GPURUN_OK)
        *out = made;
    else
        free(made);
    return status;
}
