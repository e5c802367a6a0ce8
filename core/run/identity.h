/*
 * The two identities of a case, each a hash as hexadecimal text. case_id is the question: the job's full
 * name, its options and inputs as asked, the memory strategy, the variant; it is the same on every machine.
 * key adds who answers it, and on what: the builds of gpurun and the plugin, the device's or the
 * processor's model, the input. Both are known before any data is.
 */
#ifndef GPURUN_RUN_IDENTITY_H
#define GPURUN_RUN_IDENTITY_H

#include "run/run.h"

/* The part of case_id that a job's cases share, into `question` (HASH_TEXT). After run_setup; what failed
 * before still has one. */
void identity_question(const struct run *run, char *question);

/* The same for a job of which only its text is known. */
void identity_of_text(const struct job *job, char *question);

/* False for options that say what else runs, and not what is asked of a case. */
bool identity_is_asked(const char *option);

/* Sets case_id and key of every case of the run. */
void identity_set(struct run *run);

/* case_id of the case `name` of a question. */
void identity_case(const char *question, const char *name, char *case_id);

/* The key of a case that never met its device or its data: case_id and builds alone. `plugin_build` may be
 * empty. */
void identity_key_of_text(const char *case_id, const char *plugin_build, char *key);

/* The hash of this program's file. */
const char *identity_build(void);

/* The processor's model. */
void identity_cpu_model(char *text, size_t size);

#endif
