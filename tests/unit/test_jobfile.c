#include "job/jobfile.h"

#include "job/memory.h"
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct parsed {
    struct jobfile file;
    struct faults faults;
};

static struct parsed parse_bytes(const char *bytes, size_t size)
{
    struct parsed p = {.faults = {0}};

    jobfile_parse("x.ini", bytes, size, &p.file, &p.faults);
    return p;
}

static void release(struct parsed *p)
{
    jobfile_free(&p->file);
    faults_free(&p->faults);
}

/* Parses text that must have no fault. */
static struct parsed parse_good(const char *text)
{
    struct parsed p = parse_bytes(text, strlen(text));

    ck_assert_msg(p.faults.count == 0, "%s: %s", text, p.faults.count ? p.faults.texts[0] : "");
    return p;
}

static void check_entry(const struct section *s, size_t i, const char *key, const char *value,
                        int line)
{
    ck_assert_uint_lt(i, s->count);
    ck_assert_str_eq(s->entries[i].key, key);
    ck_assert_str_eq(s->entries[i].value, value);
    ck_assert_int_eq(s->entries[i].line, line);
}

/* --- what is right ------------------------------------------------------------------------------- */

START_TEST(test_sections_keys_and_lines)
{
    struct parsed p = parse_good("; a comment\n"
                                 "[global]\n"
                                 "plugin = topk\n"
                                 "\n"
                                 "# another\n"
                                 "[ first job ]\n"
                                 "k=20\n"
                                 "  input.in  =  uniform min=0 max=9  \n"
                                 "[empty]\n"
                                 "[global]\n"
                                 "seed = 2");

    ck_assert_str_eq(p.file.path, "x.ini");
    ck_assert_uint_eq(p.file.count, 4);
    ck_assert_str_eq(p.file.sections[0].name, "global");
    ck_assert_str_eq(p.file.sections[1].name, "first job");
    ck_assert_str_eq(p.file.sections[2].name, "empty");
    ck_assert_int_eq(p.file.sections[0].line, 2);
    ck_assert_int_eq(p.file.sections[1].line, 6);
    ck_assert_int_eq(p.file.sections[2].line, 9);
    ck_assert_uint_eq(p.file.sections[2].count, 0);
    check_entry(&p.file.sections[0], 0, "plugin", "topk", 3);
    check_entry(&p.file.sections[1], 0, "k", "20", 7);
    check_entry(&p.file.sections[1], 1, "input.in", "uniform min=0 max=9", 8);
    check_entry(&p.file.sections[3], 0, "seed", "2", 11);
    ck_assert_uint_eq(p.file.global_count, 2);
    ck_assert_uint_eq(p.file.globals[0], 0);
    ck_assert_uint_eq(p.file.globals[1], 3);
    ck_assert(section_is_global(&p.file.sections[3]));
    ck_assert(!section_is_global(&p.file.sections[2]));
    release(&p);
}
END_TEST

/* One text, the value of its only key. */
static const struct value_case {
    const char *text, *value;
} value_cases[] = {
    {"[a]\nk = v", "v"},
    {"[a]\r\nk = v\r\n", "v"},
    {"[a]\nk = v\r", "v"},
    {"\xEF\xBB\xBF[a]\nk = v\n", "v"},
    {"\xEF\xBB\xBF; c\r\n[a]\r\n\r\nk = v\r\n", "v"},
    {"[a]\nk =\tv \t\n", "v"},
    {"[a]\nk==v\n", "=v"},
    {"[a]\nk = a = b\n", "a = b"},
    {"[a]\nk = [b]\n", "[b]"},
    {"[a]\nk = a;b#c\n", "a;b#c"},
    {"[a]\nk = \"quoted\"\n", "\"quoted\""},
    {"[a]\nk = a:b\n", "a:b"},
    {"[a]\nk = \xC3\xA4\xE2\x82\xAC\n", "\xC3\xA4\xE2\x82\xAC"},
    {"[a]\n   k = indented\n", "indented"},
    {"[a]\n   ; indented comment\n\t# another\nk = v\n", "v"},
    {"   [a]   \nk = v\n", "v"},
    {"[a]\nk = <${SET}>\n", "<1 ; 2>"}, /* what a variable holds is no comment */
    {"[a]\nk = ${UNSET:- v } \n", "v"},
    {"[a]\nk = $${SET} $x\n", "${SET} $x"},
};

START_TEST(test_values)
{
    const struct value_case *c = &value_cases[_i];
    struct parsed p = parse_good(c->text);

    ck_assert_uint_eq(p.file.count, 1);
    ck_assert_str_eq(p.file.sections[0].name, "a");
    ck_assert_uint_eq(p.file.sections[0].count, 1);
    ck_assert_str_eq(p.file.sections[0].entries[0].key, "k");
    ck_assert_str_eq(p.file.sections[0].entries[0].value, c->value);
    release(&p);
}
END_TEST

/* Line breaks inside what inih would join or cut: 199 to 201 bytes are its buffer, 49 its section name. */
static const size_t lengths[] = {1, 48, 49, 50, 51, 198, 199, 200, 201, 202, 1000, 65000};

START_TEST(test_long_names_and_values_are_whole)
{
    const size_t length = lengths[_i];
    char *name = allocate(length + 1, 1), *text;
    struct parsed p;

    for (size_t i = 0; i < length; i++)
        name[i] = (char)('a' + i % 26);
    text = format_text("[%s]\nkey = %s\nnext = 1\n", name, name);
    p = parse_good(text);
    ck_assert_uint_eq(p.file.count, 1);
    ck_assert_str_eq(p.file.sections[0].name, name);
    ck_assert_uint_eq(p.file.sections[0].count, 2);
    ck_assert_str_eq(p.file.sections[0].entries[0].value, name);
    check_entry(&p.file.sections[0], 1, "next", "1", 3);
    release(&p);
    free(text);
    free(name);
}
END_TEST

/* inih keeps 49 bytes of a name for continuation lines; a key may have 100. */
START_TEST(test_long_keys_are_whole)
{
    char key[101] = "", *text;
    struct parsed p;

    memset(key, 'k', 100);
    text = format_text("[a]\n%s = 1\nb = 2\n", key);
    p = parse_good(text);
    check_entry(&p.file.sections[0], 0, key, "1", 2);
    check_entry(&p.file.sections[0], 1, "b", "2", 3);
    release(&p);
    free(text);
}
END_TEST

START_TEST(test_nothing_is_no_fault_here)
{
    static const char *const texts[] = {"", "\n", "\r\n", "\n\n; only\n# comments", "\xEF\xBB\xBF"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct parsed p = parse_good(texts[i]);

        ck_assert_uint_eq(p.file.count, 0);
        ck_assert_uint_eq(p.file.global_count, 0);
        release(&p);
    }
}
END_TEST

START_TEST(test_includes)
{
    struct parsed p = parse_good("include = a.ini\n"
                                 "include = ${UNSET:-b}.ini, c.ini\n"
                                 "[global]\n"
                                 "k = 1\n"
                                 "include = d.ini\n"
                                 "[job]\n"
                                 "[global]\n"
                                 "include = e.ini\n");
    static const struct entry wanted[] = {{(char *)"include", (char *)"a.ini", 1},
                                          {(char *)"include", (char *)"b.ini, c.ini", 2},
                                          {(char *)"include", (char *)"d.ini", 5},
                                          {(char *)"include", (char *)"e.ini", 8}};

    ck_assert_uint_eq(p.file.include_count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(p.file.includes[i].value, wanted[i].value);
        ck_assert_int_eq(p.file.includes[i].line, wanted[i].line);
    }
    ck_assert_uint_eq(p.file.sections[0].count, 1);
    ck_assert_uint_eq(p.file.sections[2].count, 0);
    release(&p);
}
END_TEST

/* --- faults ---------------------------------------------------------------------------------------- */

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct fault_case {
    const char *bytes;
    size_t size;
    const char *faults[3]; /* each is the start of one, in order */
} fault_cases[] = {
    {TEXT("k = 1\n"), {"x.ini:1: k: before the first section"}},
    {TEXT("\n\nk = 1\n[a]\n"), {"x.ini:3: k: before the first section"}},
    {TEXT("[a\nk = 1\n"), {"x.ini:1: '[' without ']'"}},
    {TEXT("[a] b\n"), {"x.ini:1: text after ']'"}},
    {TEXT("[a] ; comment\n"), {"x.ini:1: text after ']'"}},
    {TEXT("[a]]\n"), {"x.ini:1: text after ']'"}},
    {TEXT("[]\n"), {"x.ini:1: a section needs a name"}},
    {TEXT("[a]\n[  ]\n"), {"x.ini:2: a section needs a name"}},
    {TEXT("["), {"x.ini:1: '[' without ']'", "x.ini:1: a section needs a name"}},
    {TEXT("[a]\n[Global]\n"), {"x.ini:2: [Global]: defaults are written [global]"}},
    {TEXT("[a]\n[GLOBAL]\n"), {"x.ini:2: [GLOBAL]: defaults are written [global]"}},
    {TEXT("[a]\nword\n"), {"x.ini:2: 'word' is not a key"}},
    {TEXT("[a]\nk: v\n"), {"x.ini:2: 'k: v' is not a key"}},
    {TEXT("[a]\nk: v = 1\n"), {"x.ini:2: 'k: v' is not a key: letters"}},
    {TEXT("[a]\nk k = 1\n"), {"x.ini:2: 'k k' is not a key: letters"}},
    {TEXT("[a]\n= 1\n"), {"x.ini:2: no key before '='"}},
    {TEXT("[a]\nk =\n"), {"x.ini:2: k: has no value"}},
    {TEXT("[a]\nk = \t \n"), {"x.ini:2: k: has no value"}},
    {TEXT("[a]\nk\xC3\xA4 = 1\n"), {"x.ini:2: 'k\xC3\xA4' is not a key: letters"}},
    {TEXT("[a]\nk = 1 ; one\n"), {"x.ini:2: k: a comment after a value"}},
    {TEXT("[a]\nk = 1\t# one\n"), {"x.ini:2: k: a comment after a value"}},
    {TEXT("[a]\nk = ; none\n"), {"x.ini:2: k: has no value"}},
    {TEXT("[a]\nk = # none\n"), {"x.ini:2: k: has no value"}},
    {TEXT("[a]\nk =;none\n"), {"x.ini:2: k: has no value"}},
    {TEXT("[a]\nk = ${UNSET}\n"), {"x.ini:2: k: ${UNSET} is not set: export UNSET"}},
    {TEXT("[a]\nk = ${UNSET\n"), {"x.ini:2: k: '${UNSET' has no '}'"}},
    {TEXT("[a]\nk = ${UNSET:-}\n"), {"x.ini:2: k: ${UNSET:-} is empty: write a value"}},
    {TEXT("[a]\nk = ${UNSET:- ; x}\n"), {"x.ini:2: k: a comment after a value"}},
    {TEXT("[a]\ninclude = b.ini\n"), {"x.ini:2: include: belongs in [global]"}},
    {TEXT("include =\n[a]\n"), {"x.ini:1: include: has no value"}},
    {TEXT("include = ${UNSET}\n[a]\n"), {"x.ini:1: include: ${UNSET} is not set"}},
    {TEXT("[a]\nk = 1\nl = 2\nk = 3\n"), {"x.ini:4: k: repeated: first set in line 2"}},
    {TEXT("[a]\nk = 1\n  k = 3\n"), {"x.ini:3: k: repeated: first set in line 2"}},
    {TEXT("[a]\nk = 1\n  more of it\n"), {"x.ini:3: 'more of it' is not a key"}},
    {TEXT("[a]\n[b]\n[a]\n"), {"x.ini:3: [a] again: first in line 1"}},
    {TEXT("[a]\n[a]\n[a]\n"), {"x.ini:2: [a] again: first in line 1", "x.ini:3: [a] again"}},
    {TEXT("[global]\nk = 1\n[global]\nl = 1\nk = 2\n"),
     {"x.ini:5: k: repeated: first set in line 2"}},
    {TEXT("[a]\nk = 1\0 2\n"), {"x.ini:2: a NUL byte"}},
    {TEXT("\0"), {"x.ini:1: a NUL byte"}},
    {TEXT("[a]\rk = 1\r"), {"x.ini:1: a bare carriage return"}},
    {TEXT("[a]\nk = 1\r\r\n"), {"x.ini:2: a bare carriage return"}},
    {TEXT("\xEF\xBB\xBF\xEF\xBB\xBF[a]\n"), {"x.ini:1: '\xEF\xBB\xBF[a]' is not a key"}},
    {TEXT("[a]\n\xEF\xBB\xBFk = 1\n"), {"x.ini:2: '\xEF\xBB\xBFk' is not a key"}},
    {TEXT("\xFF\xFE[\0a\0]\0\n\0"), {"x.ini:1: a NUL byte", "x.ini:2: a NUL byte"}},
    {TEXT("[a]\nword\n\n=\nk = 1 ; one\n"),
     {"x.ini:2: 'word'", "x.ini:4: no key", "x.ini:5: k: a comment"}},
};

START_TEST(test_fault)
{
    const struct fault_case *c = &fault_cases[_i];
    struct parsed p = parse_bytes(c->bytes, c->size);
    size_t expected = 0;

    for (; expected < 3 && c->faults[expected] != NULL; expected++) {
        const char *start = c->faults[expected];

        ck_assert_msg(expected < p.faults.count, "no fault %s", start);
        ck_assert_msg(strncmp(p.faults.texts[expected], start, strlen(start)) == 0, "%s, not %s",
                      p.faults.texts[expected], start);
    }
    ck_assert_msg(p.faults.count == expected, "one more: %s",
                  p.faults.count > expected ? p.faults.texts[expected] : "");
    release(&p);
}
END_TEST

/* A fault leaves the rest of the file standing, and its own line out. */
START_TEST(test_goes_on_after_a_fault)
{
    static const char text[] = "[a]\nbad\nk = 1 ; x\nl = 2\n[b\nm = 3\n";
    struct parsed p = parse_bytes(text, sizeof text - 1);

    ck_assert_uint_eq(p.faults.count, 3);
    ck_assert_uint_eq(p.file.count, 2);
    ck_assert_uint_eq(p.file.sections[0].count, 1);
    check_entry(&p.file.sections[0], 0, "l", "2", 4);
    ck_assert_str_eq(p.file.sections[1].name, "b");
    check_entry(&p.file.sections[1], 0, "m", "3", 6);
    release(&p);
}
END_TEST

START_TEST(test_too_long)
{
    char *text = allocate(70000, 1);
    struct parsed p;

    memset(text, 'k', 101);
    memcpy(text + 101, " = 1\n[a]\nk = ", 13);
    memset(text + 114, 'v', 66000);
    p = parse_bytes(text, strlen(text));
    ck_assert_uint_eq(p.faults.count, 2);
    ck_assert_str_eq(p.faults.texts[0], "x.ini:1: a key this long is not known");
    ck_assert_str_eq(p.faults.texts[1], "x.ini:3: a line of 66004 bytes: at most 65536");
    release(&p);
    free(text);
}
END_TEST

/* --- properties -------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t limit)
{
    return (size_t)(next_random(state) % limit);
}

static void check_fault_lines(const struct parsed *p, const char *bytes, size_t size)
{
    long lines = 1;

    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n' && i + 1 < size;
    for (size_t i = 0; i < p->faults.count; i++) {
        const char *text = p->faults.texts[i];
        char *end = NULL;
        const long line = strncmp(text, "x.ini:", 6) == 0 ? strtol(text + 6, &end, 10) : 0;

        if (line < 1 || line > lines || strncmp(end, ": ", 2) != 0)
            ck_abort_msg("a fault outside the file's %ld lines: %s", lines, text);
    }
}

/* Bytes that mean something are likelier than chance would have them. */
START_TEST(test_random_bytes)
{
    static const char odd[] = "[]=;#\n\n\n\r \t\0aglobk.\xEF\xBB\xBF";
    uint64_t random = (uint64_t)_i;

    for (int round = 0; round < 400; round++) {
        const size_t size = below(&random, 300);
        char *bytes = malloc(size + 1);
        struct parsed p;

        ck_assert_ptr_nonnull(bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(below(&random, 8) == 0 ? below(&random, 256)
                                                     : (size_t)odd[below(&random, sizeof odd - 1)]);
        p = parse_bytes(bytes, size);
        check_fault_lines(&p, bytes, size);
        for (size_t i = 0; i < p.file.count; i++)
            for (size_t k = 0; k < p.file.sections[i].count; k++)
                if (p.file.sections[i].entries[k].value[0] == '\0')
                    ck_abort_msg("an empty value");
        release(&p);
        free(bytes);
    }
}
END_TEST

/* A file as text with what it must parse to. */
struct made {
    char text[1 << 18];
    size_t size;
    int line;
    struct section sections[8];
    size_t count;
};

static void put(struct made *m, const char *text)
{
    const size_t length = strlen(text);

    ck_assert_uint_lt(m->size + length, sizeof m->text);
    memcpy(m->text + m->size, text, length);
    m->size += length;
}

static void put_blanks(struct made *m, uint64_t *random)
{
    for (size_t i = below(random, 4); i > 0; i--)
        put(m, below(random, 2) ? " " : "\t");
}

static void end_line(struct made *m, uint64_t *random)
{
    static const char *const fill[] = {"\n", "; comment = 1\n", "\r\n", "  # [x]\r\n"};

    put(m, below(random, 2) ? "\n" : "\r\n");
    m->line++;
    while (below(random, 3) == 0) {
        put(m, fill[below(random, 4)]);
        m->line++;
    }
}

/* Letters, digits, and now and then what looks like syntax but stands where it is none. */
static char *make_word(uint64_t *random, size_t most, bool plain)
{
    static const char inner[] = "=[;#: \"'\\$%,.\xC3\xA4";
    const size_t length = 1 + below(random, most);
    char *word = allocate(length + 1, 1);

    for (size_t i = 0; i < length; i++) {
        const char c = "abcdefghijklmnopqrstuvwxyz0123456789_.-"[below(random, 39)];

        word[i] =
            plain || i == 0 || i + 1 == length || below(random, 4) ? c : inner[below(random, 15)];
        if ((word[i] == ';' || word[i] == '#') && word[i - 1] == ' ')
            word[i] = 'x';
        if (word[i] == '$' && word[i - 1] == '$') /* would be one */
            word[i] = 'x';
    }
    return word;
}

static void make_entry(struct made *m, struct section *s, uint64_t *random)
{
    char *word = make_word(random, 80, true);

    s->entries = grow(s->entries, s->count, sizeof *s->entries);
    s->entries[s->count] =
        (struct entry){.key = format_text("%s.%zu", word, s->count),
                       .value = make_word(random, below(random, 9) ? 300 : 9000, false),
                       .line = m->line};
    free(word);
    put_blanks(m, random);
    put(m, s->entries[s->count].key);
    put_blanks(m, random);
    put(m, "=");
    put_blanks(m, random);
    put(m, s->entries[s->count++].value);
    put_blanks(m, random);
    end_line(m, random);
}

static void make_section(struct made *m, uint64_t *random)
{
    struct section *s = &m->sections[m->count];
    char *word = make_word(random, 200, false);

    s->name = format_text("%s %zu", word, m->count++);
    s->line = m->line;
    free(word);
    put_blanks(m, random);
    put(m, "[");
    put_blanks(m, random);
    put(m, s->name);
    put_blanks(m, random);
    put(m, "]");
    put_blanks(m, random);
    end_line(m, random);
    for (size_t i = below(random, 6); i > 0; i--)
        make_entry(m, s, random);
}

static void check_section(const struct section *found, const struct section *made)
{
    ck_assert_str_eq(found->name, made->name);
    ck_assert_int_eq(found->line, made->line);
    ck_assert_uint_eq(found->count, made->count);
    for (size_t k = 0; k < made->count; k++)
        check_entry(found, k, made->entries[k].key, made->entries[k].value, made->entries[k].line);
}

START_TEST(test_generated_files_come_back)
{
    struct made *m = allocate(1, sizeof *m);
    struct jobfile as_made;
    uint64_t random = 1000 + (uint64_t)_i;
    struct parsed p;

    m->line = 1;
    if (below(&random, 2))
        put(m, "\xEF\xBB\xBF");
    for (size_t i = below(&random, 8); i > 0; i--)
        make_section(m, &random);
    while (m->size > 0 && m->text[m->size - 1] == '\n' && below(&random, 2)) /* no last newline */
        m->text[--m->size] = '\0';
    p = parse_bytes(m->text, m->size);
    ck_assert_msg(p.faults.count == 0, "%s", p.faults.count ? p.faults.texts[0] : "");
    ck_assert_uint_eq(p.file.count, m->count);
    for (size_t i = 0; i < m->count; i++)
        check_section(&p.file.sections[i], &m->sections[i]);
    release(&p);
    as_made = (struct jobfile){.sections = allocate(8, sizeof m->sections[0]), .count = m->count};
    memcpy(as_made.sections, m->sections, sizeof m->sections);
    jobfile_free(&as_made);
    free(m);
}
END_TEST

/* --- files --------------------------------------------------------------------------------------------- */

static void check_only_fault(const char *path, const char *text)
{
    struct parsed p = {.faults = {0}};

    jobfile_read(path, &p.file, &p.faults);
    ck_assert_uint_eq(p.file.count, 0);
    ck_assert_uint_eq(p.faults.count, 1);
    ck_assert_str_eq(p.faults.texts[0], text);
    release(&p);
}

START_TEST(test_read)
{
    char folder[] = "/tmp/test_jobfile_XXXXXX";
    struct parsed p = {.faults = {0}};
    FILE *stream;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    check_only_fault("missing.ini", "missing.ini: cannot open: No such file or directory");
    ck_assert_int_eq(mkdir("folder.ini", 0700), 0);
    check_only_fault("folder.ini", "folder.ini: is a folder: name a job file");
    stream = fopen("good.ini", "w");
    ck_assert_ptr_nonnull(stream);
    for (int i = 0; i < 20000; i++) /* more than one read */
        fprintf(stream, "[job %d]\nn = %d\n", i, i);
    fclose(stream);
    jobfile_read("good.ini", &p.file, &p.faults);
    ck_assert_uint_eq(p.faults.count, 0);
    ck_assert_uint_eq(p.file.count, 20000);
    ck_assert_str_eq(p.file.path, "good.ini");
    check_entry(&p.file.sections[19999], 0, "n", "19999", 40000);
    release(&p);
    ck_assert_ptr_nonnull(freopen("good.ini", "r", stdin));
    jobfile_read("-", &p.file, &p.faults);
    ck_assert_str_eq(p.file.path, "<stdin>");
    ck_assert_uint_eq(p.file.count, 20000);
    release(&p);
    unlink("good.ini");
    rmdir("folder.ini");
    rmdir(folder);
}
END_TEST

START_TEST(test_faults_are_said_once)
{
    struct faults faults = {0};
    const struct origin where = {"x.ini", 3};
    char text[100];

    faults_add(&faults, where, "k", "is %d", 1);
    faults_add(&faults, where, "k", "is %d", 1);
    faults_add(&faults, where, NULL, "is %d", 1);
    faults_add_text(&faults, "x.ini:3: is 1");
    ck_assert_uint_eq(faults.count, 2);
    ck_assert_str_eq(faults.texts[0], "x.ini:3: k: is 1");
    ck_assert_str_eq(faults.texts[1], "x.ini:3: is 1");
    ck_assert_str_eq(origin_text(where, text, sizeof text), "x.ini:3");
    ck_assert_str_eq(origin_text((struct origin){"-s", 0}, text, sizeof text), "-s");
    ck_assert_str_eq(origin_text((struct origin){NULL, 0}, text, sizeof text), "default");
    faults_free(&faults);
    ck_assert_uint_eq(faults.count, 0);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *jobfile_suite(void)
{
    Suite *suite = suite_create("jobfile");
    TCase *right = tcase_create("right"), *wrong = tcase_create("faults");
    TCase *properties = tcase_create("properties"), *files = tcase_create("files");

    tcase_add_test(right, test_sections_keys_and_lines);
    tcase_add_loop_test(right, test_values, 0, COUNT(value_cases));
    tcase_add_loop_test(right, test_long_names_and_values_are_whole, 0, COUNT(lengths));
    tcase_add_test(right, test_long_keys_are_whole);
    tcase_add_test(right, test_nothing_is_no_fault_here);
    tcase_add_test(right, test_includes);
    tcase_add_loop_test(wrong, test_fault, 0, COUNT(fault_cases));
    tcase_add_test(wrong, test_goes_on_after_a_fault);
    tcase_add_test(wrong, test_too_long);
    tcase_add_test(wrong, test_faults_are_said_once);
    tcase_add_loop_test(properties, test_random_bytes, 0, 20);
    tcase_add_loop_test(properties, test_generated_files_come_back, 0, 100);
    tcase_set_timeout(properties, 30);
    tcase_add_test(files, test_read);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, wrong);
    suite_add_tcase(suite, properties);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(jobfile_suite());
    int failed;

    setenv("SET", "1 ; 2", 1);
    unsetenv("UNSET");
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
