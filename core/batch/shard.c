#include "batch/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { COUNT_MAX = 1000000 };

/* A whole number at the start of `text`, not below zero; what stands behind it in *end. */
static bool read_number(const char *text, long *number, const char **end)
{
    char *stop;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtol(text, &stop, 10);
    *end = stop;
    return errno == 0 && *number <= COUNT_MAX;
}

/* A variable of Slurm's: GPURUN_INVALID when it is no number, *number untouched when it is not set. */
static enum gpurun_status read_variable(const char *name, long *number, struct why *why)
{
    const char *text = getenv(name), *end;

    if (text == NULL || (read_number(text, number, &end) && *end == '\0'))
        return GPURUN_OK;
    return why_fail(why, GPURUN_INVALID, "%s is '%.40s', not a number that Slurm would set", name,
                    text);
}

static enum gpurun_status of_known_array(long id, long step, long count, struct shard *shard,
                                         struct why *why)
{
    if (id > count)
        return why_fail(why, GPURUN_INVALID,
                        "task %ld is outside of %ld parts: number the array 0-%ld or 1-%ld", id,
                        count, count - 1, count);
    if (step > 1)
        return why_fail(why, GPURUN_INVALID,
                        "with a step of %ld in the array, slurm/N cannot find a task's part: "
                        "number the array 0-%ld, or name the part, --shard i/%ld",
                        step, count - 1, count);
    *shard = (struct shard){id % count + 1, count};
    return GPURUN_OK;
}

/* A task that was submitted again alone, or with some others, does not see the whole array: only the number of
 * parts tells. The part is the task's number modulo that, so that an array from 0 and one from 1 both work and
 * a task finds its part again. */
static enum gpurun_status of_array(long id, long given, struct shard *shard, struct why *why)
{
    long min = id, max = id, step = 1, count = 1;

    GPURUN_TRY(read_variable("SLURM_ARRAY_TASK_MIN", &min, why));
    GPURUN_TRY(read_variable("SLURM_ARRAY_TASK_MAX", &max, why));
    GPURUN_TRY(read_variable("SLURM_ARRAY_TASK_STEP", &step, why));
    GPURUN_TRY(read_variable("SLURM_ARRAY_TASK_COUNT", &count, why));
    if (given > 0)
        return of_known_array(id, step, given, shard, why);
    if (id < min || id > max)
        return why_fail(why, GPURUN_INVALID, "task %ld is outside of the array %ld-%ld", id, min,
                        max);
    if (count < 2 || step < 1 || (max - min) / step + 1 != count || (id - min) % step != 0)
        return why_fail(
            why, GPURUN_INVALID,
            "this array of %ld task%s may be part of an earlier one submitted again: say "
            "how many parts there are, --shard slurm/N",
            count, count == 1 ? "" : "s");
    *shard = (struct shard){id / step % count + 1, count};
    return GPURUN_OK;
}

static enum gpurun_status of_rank(long rank, long given, struct shard *shard, struct why *why)
{
    long tasks = 0;

    GPURUN_TRY(read_variable("SLURM_NTASKS", &tasks, why));
    if (given > 0 && tasks > 0 && given != tasks)
        return why_fail(why, GPURUN_INVALID, "slurm/%ld, but srun started %ld tasks", given, tasks);
    if (tasks == 0 && given == 0)
        return why_fail(why, GPURUN_INVALID, "SLURM_PROCID is set, SLURM_NTASKS is not");
    tasks = tasks > 0 ? tasks : given;
    if (rank >= tasks)
        return why_fail(why, GPURUN_INVALID, "rank %ld is outside of %ld tasks", rank, tasks);
    *shard = (struct shard){rank + 1, tasks};
    return GPURUN_OK;
}

/* `given`: of slurm/N; 0 without. */
static enum gpurun_status of_slurm(long given, struct shard *shard, struct why *why)
{
    long id = -1, rank = -1;

    GPURUN_TRY(read_variable("SLURM_ARRAY_TASK_ID", &id, why));
    GPURUN_TRY(read_variable("SLURM_PROCID", &rank, why));
    if (id >= 0)
        return of_array(id, given, shard, why);
    if (rank >= 0)
        return of_rank(rank, given, shard, why);
    return why_fail(why, GPURUN_INVALID,
                    "neither SLURM_ARRAY_TASK_ID nor SLURM_PROCID is set: this is no task of a "
                    "Slurm array or of srun");
}

enum gpurun_status shard_parse(const char *text, struct shard *shard, struct why *why)
{
    const char *end;
    long index, count = 0;

    if (strcmp(text, "slurm") == 0)
        return of_slurm(0, shard, why);
    if (strncmp(text, "slurm/", 6) == 0 && read_number(text + 6, &count, &end) && *end == '\0' &&
        count > 0)
        return of_slurm(count, shard, why);
    if (!read_number(text, &index, &end) || *end != '/' || !read_number(end + 1, &count, &end) ||
        *end != '\0')
        return why_fail(why, GPURUN_INVALID, "'%.40s' is no part: write 2/5, slurm or slurm/5",
                        text);
    if (index < 1 || index > count)
        return why_fail(why, GPURUN_INVALID, "there is no part %ld of %ld: they count from 1",
                        index, count);
    *shard = (struct shard){index, count};
    return GPURUN_OK;
}

bool shard_takes(const struct shard *shard, const char *job)
{
    if (shard->count == 0)
        return true;
    return XXH3_64bits(job, strlen(job)) % (uint64_t)shard->count == (uint64_t)shard->index - 1;
}
