/*
 * A main for the fuzzers where libFuzzer is missing, with its arguments as far as they have a meaning:
 *
 *     fuzz_NAME [--seconds N | -max_total_time=N] [-artifact_prefix=PREFIX] [FILE|FOLDER ...]
 *
 * Runs every input it is given, then mutates them for N seconds. Blind, but always in the same order:
 * each round depends on its number alone. The input that is running lies in PREFIXfuzz-PID.bin, so that
 * it is still there after a crash; the file goes away when all is well.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_MAX = 1 << 16, /* bytes */
    CORPUS_MAX = 4096,   /* inputs */
    MUTATIONS_MAX = 6,   /* in one round */
    COPY_MAX = 32,       /* bytes that move at once */
    CLOCK_ROUNDS = 1024, /* between two looks at the clock */
};

struct input {
    uint8_t *bytes;
    size_t size;
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_count;
static char last_path[4096];
static int last_fd;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* --- the corpus -------------------------------------------------------------------------------- */

static void add_file(const char *path)
{
    struct input *input = &corpus[corpus_count];
    FILE *stream = fopen(path, "rb");

    if (stream == NULL)
        die(path);
    if (corpus_count == CORPUS_MAX) {
        fprintf(stderr, "%s: more than %d inputs\n", path, CORPUS_MAX);
        exit(2);
    }
    input->bytes = malloc(INPUT_MAX);
    if (input->bytes == NULL)
        die(path);
    input->size = fread(input->bytes, 1, INPUT_MAX, stream);
    fclose(stream);
    corpus_count++;
}

/* A file, or the files of a folder in the order of their names. */
static void add_path(const char *path)
{
    struct dirent **entries;
    struct stat info;
    int count;

    if (stat(path, &info) != 0)
        die(path);
    if (!S_ISDIR(info.st_mode)) {
        add_file(path);
        return;
    }
    count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        die(path);
    for (int i = 0; i < count; i++) {
        char *name = NULL;

        if (entries[i]->d_name[0] != '.' && asprintf(&name, "%s/%s", path, entries[i]->d_name) > 0)
            add_path(name);
        free(name);
        free(entries[i]);
    }
    free(entries);
}

/* --- mutation ---------------------------------------------------------------------------------- */

static uint64_t random_state;

/* A number below `limit`, which is not 0. */
static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % limit);
}

static void insert_bytes(struct input *input, const uint8_t *from, size_t count)
{
    const size_t at = random_below(input->size + 1);

    if (input->size + count > INPUT_MAX)
        return;
    memmove(input->bytes + at + count, input->bytes + at, input->size - at);
    memcpy(input->bytes + at, from, count);
    input->size += count;
}

static void delete_bytes(struct input *input)
{
    const size_t at = random_below(input->size);
    const size_t most = input->size - at < COPY_MAX ? input->size - at : COPY_MAX;
    const size_t count = 1 + random_below(most);

    memmove(input->bytes + at, input->bytes + at + count, input->size - at - count);
    input->size -= count;
}

/* A piece of any input, put in at any place. */
static void insert_piece(struct input *input)
{
    const struct input *other = &corpus[random_below(corpus_count)];
    uint8_t piece[COPY_MAX];
    size_t at, count;

    if (other->size == 0)
        return;
    at = random_below(other->size);
    count = 1 + random_below(other->size - at < COPY_MAX ? other->size - at : COPY_MAX);
    memcpy(piece, other->bytes + at, count);
    insert_bytes(input, piece, count);
}

/* Characters that parsers care about come more often than chance would bring them. */
static uint8_t odd_byte(void)
{
    static const char odd[] = "0123456789-+.,:;=_'\"()[]{}<>|$#*%\\ \t\r\n\0\xff\x80\x7f";

    return random_below(2) == 0 ? (uint8_t)random_below(256)
                                : (uint8_t)odd[random_below(sizeof odd - 1)];
}

static void mutate(struct input *input)
{
    const uint8_t byte = odd_byte();

    switch (input->size == 0 ? 0 : random_below(6)) {
    case 0:
        insert_bytes(input, &byte, 1);
        break;
    case 1:
        delete_bytes(input);
        break;
    case 2:
        insert_piece(input);
        break;
    case 3:
        input->bytes[random_below(input->size)] ^= (uint8_t)(1u << random_below(8));
        break;
    case 4:
        input->size = random_below(input->size + 1);
        break;
    default:
        input->bytes[random_below(input->size)] = byte;
        break;
    }
}

/* --- running ----------------------------------------------------------------------------------- */

/* In a block of just its size, so that a sanitizer sees a read beyond it. */
static void run(const struct input *input)
{
    uint8_t *copy = malloc(input->size);

    if (copy == NULL && input->size > 0)
        die("malloc");
    if (input->size > 0)
        memcpy(copy, input->bytes, input->size);
    if (pwrite(last_fd, input->bytes, input->size, 0) < 0 ||
        ftruncate(last_fd, (off_t)input->size) != 0)
        die(last_path);
    LLVMFuzzerTestOneInput(copy, input->size);
    free(copy);
}

static void run_round(uint64_t round, struct input *scratch)
{
    const struct input *seed;

    random_state = (round + 1) * 0x9e3779b97f4a7c15;
    seed = &corpus[random_below(corpus_count)];
    memcpy(scratch->bytes, seed->bytes, seed->size);
    scratch->size = seed->size;
    for (size_t i = 1 + random_below(MUTATIONS_MAX); i > 0; i--)
        mutate(scratch);
    run(scratch);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void open_last(const char *prefix)
{
    snprintf(last_path, sizeof last_path, "%sfuzz-%ld.bin", prefix, (long)getpid());
    last_fd = open(last_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (last_fd < 0)
        die(last_path);
}

/* What follows `name` in an argument, or NULL. */
static const char *option(const char *argument, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

int main(int argc, char **argv)
{
    struct input scratch = {.bytes = malloc(INPUT_MAX)};
    const char *prefix = "", *value;
    double seconds = 0, start;
    uint64_t round = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = strtod(argv[++i], NULL);
        else if ((value = option(argv[i], "-max_total_time=")) != NULL)
            seconds = strtod(value, NULL);
        else if ((value = option(argv[i], "-artifact_prefix=")) != NULL)
            prefix = value;
        else if (argv[i][0] != '-') /* other options of libFuzzer change nothing here */
            add_path(argv[i]);
    }
    if (corpus_count == 0)
        add_file("/dev/null"); /* from nothing, then */
    if (scratch.bytes == NULL)
        die("malloc");
    open_last(prefix);
    for (size_t i = 0; i < corpus_count; i++)
        run(&corpus[i]);
    for (start = now(); round % CLOCK_ROUNDS != 0 || now() - start < seconds; round++)
        run_round(round, &scratch);
    printf("%zu inputs and %llu mutations\n", corpus_count, (unsigned long long)round);
    unlink(last_path);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].bytes);
    free(scratch.bytes);
    return 0;
}
