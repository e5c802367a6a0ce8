#include "hash.h"

#include <string.h>
#include <xxhash.h>

const char *hash_and_poison(gpurun_stream stream, void *dev, size_t bytes, uint64_t salt,
                            uint64_t *slot)
{
    (void)stream;
    *slot += XXH3_64bits_withSeed(dev, bytes, salt);
    memset(dev, GPURUN_POISON, bytes);
    return NULL;
}
