/* plugin_loader.h - a table of hooks (cai_emm.h) from a shared object, which the user of a program chooses
 * SPDX-License-Identifier: MIT
 * A plugin exports one function, which gives the same table in every call:
 *
 *     const cai_emm_hooks *cai_emm_plugin(void);
 */
#ifndef PLUGIN_LOADER_H
#define PLUGIN_LOADER_H

#include "cai_emm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef const cai_emm_hooks *(*cai_plugin_entry)(void);

typedef struct cai_plugin {
    void *library;
    const cai_emm_hooks *hooks; /* in the shared object, checked: for cai_emm_array or cai_manager_init */
} cai_plugin;

/** Loads a plugin. path: as dlopen or LoadLibrary takes it; NULL: the absolute path in the environment
 *  variable CAI_EMM_PLUGIN. Loading runs code of the file: from the environment that is refused in a program
 *  with more rights than its user. Errors: CAI_ERR_ARGUMENT (also a relative path in the environment),
 *  CAI_ERR_UNAVAILABLE (the variable is not set, or may not be used; no such file, or it does not load; the
 *  plugin gave NULL), CAI_ERR_ABI (no such function in it; a table of another version or size), and those of
 *  cai_emm_hooks_check. */
CAI_MUST_CHECK cai_status cai_plugin_load(const char *path, cai_plugin *out, cai_error *err);

/** Unloads it, after the manager and all memory that came from it. NULL, and a second time, are fine. */
void cai_plugin_unload(cai_plugin *plugin);

/** 1: the process has more rights than who started it (setuid, setgid, capabilities of the file). */
int32_t cai_plugin_elevated(void);

/** Checks the value of the variable, NULL: not set. CAI_OK: it may be loaded. */
CAI_MUST_CHECK cai_status cai_plugin_check_value(const char *value, int32_t elevated, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
