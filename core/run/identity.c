#include "run/identity.h"

#include "gpurun/version.h"
#include "job/memory.h"
#include "run/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum {
    HASHED_MAX = 64 << 20
}; /* bytes; of a larger file its size and time stand for its contents */

static uint64_t add_text(uint64_t hash, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

static uint64_t add_number(uint64_t hash, int64_t number)
{
    return XXH3_64bits_withSeed(&number, sizeof number, hash);
}

static void write_hash(uint64_t hash, char *text)
{
    snprintf(text, HASH_TEXT, "%016llx", (unsigned long long)hash);
}

const char *identity_build(void)
{
    static char build[HASH_TEXT];

    if (build[0] == '\0')
        registry_build("/proc/self/exe", build, sizeof build);
    return build;
}

static void read_cpu_model(char *text, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(text, size, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            snprintf(text, size, "%s", strchr(line, ':') + 2);
            text[strcspn(text, "\n")] = '\0';
            break;
        }
    if (f != NULL)
        fclose(f);
}

/* Read once: every case asks, and the system writes pages of text for each processor. */
void identity_cpu_model(char *text, size_t size)
{
    static char model[256];

    if (model[0] == '\0')
        read_cpu_model(model, sizeof model);
    snprintf(text, size, "%s", model);
}

/* --- the question --- */

/* Which cases run beside this one, what is done when one fails, and how much of it is written down is no part
 * of the question. */
static const char *const not_asked[] = {"variant", "cpu",      "timeout",     "retries",
                                        "samples", "baseline", "memory_limit"};

static uint64_t add_bindings(uint64_t hash, const struct job *job)
{
    for (size_t i = 0; i < job->input_count; i++)
        hash = add_text(add_text(hash, job->inputs[i].key), job->inputs[i].text);
    return hash;
}

void identity_question(const struct run *run, char *question)
{
    json_t *options = record_options(run);
    char *text;
    uint64_t hash;

    for (size_t i = 0; i < GPURUN_COUNT(not_asked); i++)
        json_object_del(options, not_asked[i]);
    if (run->job->core.threads == GPURUN_AUTO) /* resolved by the machine */
        json_object_set_new(options, "threads", json_string("auto"));
    text = json_dumps(options, JSON_COMPACT | JSON_SORT_KEYS);
    hash = add_text(add_text(0, run->job->name), text);
    write_hash(add_bindings(hash, run->job), question);
    free(text);
    json_decref(options);
}

bool identity_is_asked(const char *key)
{
    for (size_t i = 0; i < GPURUN_COUNT(not_asked); i++)
        if (strcmp(key, not_asked[i]) == 0)
            return false;
    return true;
}

void identity_of_text(const struct job *job, char *question)
{
    uint64_t hash = add_text(add_text(0, "text"), job->name);

    for (size_t i = 0; i < job->setting_count; i++)
        if (identity_is_asked(job->settings[i].key))
            hash = add_text(add_text(hash, job->settings[i].key), job->settings[i].text);
    write_hash(hash, question);
}

void identity_case(const char *question, const char *name, char *case_id)
{
    write_hash(add_text(add_text(0, question), name), case_id);
}

/* --- the key --- */

static uint64_t key_start(const char *case_id, const char *plugin_build)
{
    const uint64_t hash =
        add_text(add_text(add_text(0, case_id), GPURUN_VERSION), identity_build());

    return add_text(hash, plugin_build);
}

void identity_key_of_text(const char *case_id, const char *plugin_build, char *key)
{
    write_hash(add_text(key_start(case_id, plugin_build), "text"), key);
}

/* A file that cannot be read fails its job later, with the reason. */
static uint64_t add_file(uint64_t hash, const char *path)
{
    char contents[HASH_TEXT];
    struct stat info;

    if (stat(path, &info) != 0)
        return hash;
    if (info.st_size <= HASHED_MAX) {
        registry_build(path, contents, sizeof contents);
        return add_text(hash, contents);
    }
    hash = add_number(add_number(hash, info.st_size), info.st_mtim.tv_sec);
    return add_number(hash, info.st_mtim.tv_nsec);
}

static uint64_t hash_inputs(const struct run *run)
{
    uint64_t hash = 0;

    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];
        const char *source = b->source ? b->source->text : "uniform";

        if (b->declared.role == GPURUN_OUT)
            continue;
        hash = add_number(add_text(hash, b->declared.name), b->declared.dtype);
        for (int k = 0; k < b->declared.rank; k++)
            hash = add_number(hash, b->declared.dims[k]);
        hash = add_text(hash, source);
        if (strncmp(source, "file:", 5) == 0)
            hash = add_file(hash, source + 5);
    }
    return hash;
}

void identity_set(struct run *run)
{
    const uint64_t inputs = hash_inputs(run);
    char question[HASH_TEXT], cpu[256];

    identity_question(run, question);
    identity_cpu_model(cpu, sizeof cpu);
    for (int i = 0; i < run->case_count; i++) {
        struct run_case *c = &run->cases[i];
        uint64_t hash;

        identity_case(question, c->name, c->case_id);
        hash = key_start(c->case_id, run->plugin->build);
        if (c->variant == NULL)
            hash = add_number(add_text(hash, cpu), run->core.threads);
        else
            hash = add_text(hash, run->device_info.name);
        write_hash(XXH3_64bits_withSeed(&inputs, sizeof inputs, hash), c->key);
    }
}
