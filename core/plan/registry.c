#include "plan/registry.h"

#include "job/memory.h"
#include "plan/auto_table.h"
#include "plan/job.h"
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#else
enum { OWN_MACHINE = EM_NONE };
#endif

/* --- where to look --- */

/* The next folder to search into `folder`; false when there are no more. `*state` starts at 0. */
static bool next_folder(int *state, const char **rest, char *folder, size_t size)
{
    char exe[PATH_MAX];
    const char *colon;
    ssize_t length;

    while (*state == 0 && *rest != NULL && **rest != '\0') {
        colon = strchrnul(*rest, ':');
        snprintf(folder, size, "%.*s", (int)(colon - *rest), *rest);
        *rest = *colon ? colon + 1 : colon;
        if (folder[0] != '\0')
            return true;
    }
    length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (length < 0 || *state >= 2)
        return false;
    exe[length] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(folder, size, *state == 0 ? "%s/plugins" : "%s/../lib/gpurun/plugins", exe);
    (*state)++;
    return true;
}

char *registry_find(const char *name, struct why *why)
{
    const char *rest = getenv("GPURUN_PLUGIN_PATH");
    char folder[PATH_MAX], tried[800] = "";
    size_t used = 0;
    int state = 0;

    while (next_folder(&state, &rest, folder, sizeof folder)) {
        for (int flat = 0; flat < 2; flat++) {
            char *path = flat ? format_text("%s/%s.so", folder, name)
                              : format_text("%s/%s/%s.so", folder, name, name);

            if (access(path, F_OK) == 0)
                return path;
            if (used < sizeof tried)
                used += (size_t)snprintf(tried + used, sizeof tried - used, "%s%s",
                                         used ? ", " : "", path);
            free(path);
        }
    }
    why_fail(why, GPURUN_ERROR, "%s", tried);
    return NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* NAME for the entries NAME/ that hold NAME.so and for NAME.so; NULL otherwise. For the caller to free. */
static char *name_of_entry(const char *folder, const char *entry)
{
    const char *dot = strstr(entry, ".so");
    char *path, *name = NULL;

    if (entry[0] == '.')
        return NULL;
    if (dot != NULL && dot[3] == '\0')
        return copy_text_n(entry, (size_t)(dot - entry));
    path = format_text("%s/%s/%s.so", folder, entry, entry);
    if (access(path, F_OK) == 0)
        name = copy_text(entry);
    free(path);
    return name;
}

char **registry_names(void)
{
    const char *rest = getenv("GPURUN_PLUGIN_PATH");
    char folder[PATH_MAX], **names = NULL;
    size_t count = 0, kept = 0;
    int state = 0;

    while (next_folder(&state, &rest, folder, sizeof folder)) {
        DIR *dir = opendir(folder);

        for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
            char *name = name_of_entry(folder, e->d_name);

            if (name == NULL)
                continue;
            names = grow(names, count, sizeof *names);
            names[count++] = name;
        }
        if (dir != NULL)
            closedir(dir);
    }
    if (count > 0)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && strcmp(names[kept - 1], names[i]) == 0)
            free(names[i]);
        else
            names[kept++] = names[i];
    }
    names = grow(names, kept, sizeof *names);
    names[kept] = NULL;
    return names;
}

void registry_free_names(char **names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        free(names[i]);
    free(names);
}

/* --- what may be loaded --- */

/* Whoever can write a folder can put another file, or another folder, in the place of what is in it; in a
 * sticky one like /tmp, only what is his own. */
static enum gpurun_status check_folder(const char *folder, struct why *why)
{
    char *real = realpath(folder, NULL);
    struct stat info;
    enum gpurun_status status = GPURUN_OK;

    if (real == NULL || stat(real, &info) != 0)
        status = why_fail(why, GPURUN_ERROR, "%s: %s", folder, strerror(errno));
    else if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX))
        status =
            why_fail(why, GPURUN_ERROR,
                     "the folder %s can be written by anyone: refused (chmod o-w %s)", real, real);
    free(real);
    return status;
}

/* A file that anybody can write is anybody's code. */
static enum gpurun_status check_permissions(const char *path, struct why *why)
{
    char *folder = copy_text(path), *above;
    struct stat file_info, folder_info;
    enum gpurun_status status = GPURUN_OK;

    *strrchr(folder, '/') = '\0';
    if (stat(path, &file_info) != 0 || stat(*folder ? folder : "/", &folder_info) != 0)
        status = why_fail(why, GPURUN_ERROR, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(file_info.st_mode))
        status = why_fail(why, GPURUN_ERROR, "%s is not a regular file", path);
    else if (file_info.st_mode & S_IWOTH)
        status = why_fail(why, GPURUN_ERROR, "%s can be written by anyone: refused (chmod o-w %s)",
                          path, path);
    else if (folder_info.st_mode & S_IWOTH)
        status = why_fail(why, GPURUN_ERROR,
                          "the folder %s can be written by anyone: refused (chmod o-w %s)", folder,
                          folder);
    above = format_text("%s/..", folder);
    if (status == GPURUN_OK)
        status = check_folder(above, why);
    free(above);
    free(folder);
    return status;
}

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "64-bit Arm";
    case EM_386:
        return "32-bit x86";
    case EM_ARM:
        return "32-bit Arm";
    case EM_PPC64:
        return "64-bit POWER";
    case EM_RISCV:
        return "RISC-V";
    }
    return "another processor";
}

/* The loader's own message for a foreign file is "No such file": look before it does. Hashes the file on
 * the way. */
static enum gpurun_status inspect_file(const char *path, char *build, size_t size, struct why *why)
{
    XXH3_state_t *hash = XXH3_createState();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char buffer[1 << 16];
    Elf64_Ehdr header = {0};
    uint64_t size_read = 0;
    bool first = true;
    ssize_t got = -1;

    XXH3_64bits_reset(hash);
    while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0) {
        if (first)
            memcpy(&header, buffer, (size_t)got < sizeof header ? (size_t)got : sizeof header);
        first = false;
        size_read += (size_t)got;
        XXH3_64bits_update(hash, buffer, (size_t)got);
    }
    snprintf(build, size, "%016llx", (unsigned long long)XXH3_64bits_digest(hash));
    XXH3_freeState(hash);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return why_fail(why, GPURUN_ERROR, "%s: %s", path, strerror(errno));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return why_fail(why, GPURUN_ERROR, "%s is not a shared object (no ELF header)", path);
    if (header.e_machine != OWN_MACHINE)
        return why_fail(why, GPURUN_ERROR, "%s is built for %s, this gpurun runs on %s", path,
                        machine_name(header.e_machine), machine_name(OWN_MACHINE));
    if (header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize > size_read)
        return why_fail(why, GPURUN_ERROR, "%s is cut short: copy it again", path);
    return GPURUN_OK;
}

void registry_build(const char *path, char *build, size_t size)
{
    struct why why;

    if (access(path, R_OK) == 0)
        inspect_file(path, build, size, &why); /* what it says of the format is for loading */
    else
        build[0] = '\0';
}

/* --- is the table sound --- */

static const char *missing_hook(const struct gpurun_plugin *p)
{
    if (p->setup == NULL)
        return "setup";
    if (p->run_gpu == NULL && p->variant_count > 0)
        return "run_gpu";
    if (p->run_cpu == NULL)
        return "run_cpu";
    if (p->verify == NULL)
        return "verify";
    return p->teardown == NULL ? "teardown" : NULL;
}

/* Names and defaults: what a plugin's author got wrong is said here, not found by a user later. */
static enum gpurun_status check_tables(const struct plugin *plugin, struct why *why)
{
    const struct gpurun_plugin *p = plugin->table;
    void *options = allocate(1, p->options_bytes);
    enum gpurun_status status = GPURUN_OK;
    struct why inner;

    for (uint32_t i = 0; i < p->option_count && status == GPURUN_OK; i++) {
        const struct gpurun_option *row = option_at(&plugin->options, i);

        if (row->name == NULL || row->def == NULL || row->help == NULL)
            status = why_fail(why, GPURUN_ERROR, "option %u has no name, default or help", i);
        else if (row->offset > p->options_bytes || p->options_bytes - row->offset < sizeof(int64_t))
            status =
                why_fail(why, GPURUN_ERROR, "option %s lies outside the options struct", row->name);
        else if (core_knows(row->name) || option_find(&plugin->options, row->name) != row)
            status = why_fail(why, GPURUN_ERROR, "option %s has a name that is taken", row->name);
        else if (option_set(row, row->def, options, &inner) != GPURUN_OK)
            status =
                why_fail(why, GPURUN_ERROR, "option %s: its default: %s", row->name, inner.text);
    }
    for (uint32_t i = 0; i < p->variant_count && status == GPURUN_OK; i++) {
        const struct gpurun_variant *v = plugin_variant(plugin, i);

        if (v->name == NULL || v->idea == NULL || v->launch == NULL)
            status = why_fail(why, GPURUN_ERROR, "variant %u has no name, idea or launcher", i);
        else if (plugin_find_variant(plugin, v->name) != v)
            status = why_fail(why, GPURUN_ERROR, "variant %s has a name that is taken", v->name);
    }
    free(options);
    return status;
}

static enum gpurun_status check_table(struct plugin *plugin, const char *name, struct why *why)
{
    const struct gpurun_plugin *p = plugin->table;
    const char *hook;

    if (p->magic != GPURUN_MAGIC)
        return why_fail(why, GPURUN_ERROR,
                        "its gpurun_plugin is no plugin table (magic %08x, not %08x)", p->magic,
                        GPURUN_MAGIC);
    if (p->abi_major != GPURUN_ABI_MAJOR || p->abi_minor > GPURUN_ABI_MINOR)
        return why_fail(why, GPURUN_ERROR,
                        "built for ABI %d.%d, this gpurun speaks %d.%d: rebuild it", p->abi_major,
                        p->abi_minor, GPURUN_ABI_MAJOR, GPURUN_ABI_MINOR);
    if (p->struct_size < sizeof *p)
        return why_fail(why, GPURUN_ERROR, "its table has %u bytes, ABI %d.%d has %zu: rebuild it",
                        p->struct_size, GPURUN_ABI_MAJOR, GPURUN_ABI_MINOR, sizeof *p);
    if (p->name == NULL || strcmp(p->name, name) != 0)
        return why_fail(why, GPURUN_ERROR, "calls itself '%s': file and name must agree",
                        p->name ? p->name : "");
    if (p->summary == NULL || p->memory_why == NULL ||
        !(p->memory & GPURUN_MEMORY_BIT(p->memory_default)))
        return why_fail(why, GPURUN_ERROR,
                        "has no summary, or a default memory that it does not support");
    if ((hook = missing_hook(p)) != NULL)
        return why_fail(why, GPURUN_ERROR, "has no %s hook", hook);
    plugin->options = (struct option_table){p->options, p->option_count, p->option_size};
    return check_tables(plugin, why);
}

enum gpurun_status registry_load(const char *name, struct plugin *out, struct why *why)
{
    struct why inner;

    *out = (struct plugin){.path = registry_find(name, why)};
    if (out->path == NULL)
        return GPURUN_ERROR;
    GPURUN_TRY(check_permissions(out->path, why));
    GPURUN_TRY(inspect_file(out->path, out->build, sizeof out->build, why));
    out->handle = dlopen(out->path, RTLD_NOW | RTLD_LOCAL);
    if (out->handle == NULL)
        return why_fail(why, GPURUN_ERROR, "%s", dlerror());
    out->table = dlsym(out->handle, "gpurun_plugin");
    if (out->table == NULL)
        return why_fail(why, GPURUN_ERROR, "%s exports no gpurun_plugin: is it a gpurun plugin?",
                        out->path);
    if (check_table(out, name, &inner) != GPURUN_OK)
        return why_fail(why, GPURUN_ERROR, "%s: %s", out->path, inner.text);
    out->auto_table = auto_table_load(out);
    return GPURUN_OK;
}

const struct gpurun_variant *plugin_variant(const struct plugin *plugin, uint32_t i)
{
    return (const struct gpurun_variant *)((const char *)plugin->table->variants +
                                           (size_t)i * plugin->table->variant_size);
}

const struct gpurun_variant *plugin_find_variant(const struct plugin *plugin, const char *name)
{
    for (uint32_t i = 0; i < plugin->table->variant_count; i++)
        if (strcmp(plugin_variant(plugin, i)->name, name) == 0)
            return plugin_variant(plugin, i);
    return NULL;
}
