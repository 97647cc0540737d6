/* plugin_loader.c - a table of hooks (cai_emm.h) from a shared object: see plugin_loader.h
 * SPDX-License-Identifier: MIT */
#include "plugin_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

static cai_status plugin_say(cai_error *err, cai_status status, const char *about, const char *what)
{
    if (!err) return status;
    memset(err, 0, sizeof *err);
    err->code = status;
    err->index = -1;
    snprintf(err->message, sizeof err->message, "%.90s: %.140s", about, what);
    return status;
}

/* ------------------------------------------------------------------ the system's */

#if defined(_WIN32)
static int plugin_absolute(const char *path)
{
    const int slashes = (path[0] == '\\' || path[0] == '/') && (path[1] == '\\' || path[1] == '/');
    const int drive = ((path[0] | 32) >= 'a' && (path[0] | 32) <= 'z') && path[1] == ':';
    return slashes || (drive && (path[2] == '\\' || path[2] == '/'));
}

int32_t cai_plugin_elevated(void) { return 0; /* Windows has no such programs */ }

static void *plugin_open(const char *path, char *why, size_t size)
{
    HMODULE library = LoadLibraryA(path);
    if (!library) snprintf(why, size, "LoadLibrary: error %lu", (unsigned long)GetLastError());
    return (void *)library;
}

static void plugin_close(void *library) { (void)FreeLibrary((HMODULE)library); }

static cai_plugin_entry plugin_find(void *library, const char *symbol)
{
    FARPROC found = GetProcAddress((HMODULE)library, symbol);
    cai_plugin_entry entry = NULL;
    memcpy(&entry, &found, sizeof entry);
    return entry;
}
#else
static int plugin_absolute(const char *path) { return path[0] == '/'; }

int32_t cai_plugin_elevated(void)
{
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__)
    return issetugid() != 0;
#else
    return getuid() != geteuid() || getgid() != getegid();
#endif
}

static void *plugin_open(const char *path, char *why, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *said = library ? NULL : dlerror();
    const size_t length = strlen(path);
    if (library) return library;
    if (!said) said = "dlopen failed";
    if (!strncmp(said, path, length) && said[length] == ':' && said[length + 1]) said += length + 2;
    snprintf(why, size, "%s", said); /* without the path, which the message has */
    return NULL;
}

static void plugin_close(void *library) { (void)dlclose(library); }

static cai_plugin_entry plugin_find(void *library, const char *symbol)
{
    void *found = dlsym(library, symbol);
    cai_plugin_entry entry = NULL;
    memcpy(&entry, &found, sizeof entry);
    return entry;
}
#endif

/* ------------------------------------------------------------------ loading */

cai_status cai_plugin_check_value(const char *value, int32_t elevated, cai_error *err)
{
    if (!value || !value[0])
        return plugin_say(err, CAI_ERR_UNAVAILABLE, "CAI_EMM_PLUGIN", "it is not set, and no path was given");
    if (elevated)
        return plugin_say(err, CAI_ERR_UNAVAILABLE, "CAI_EMM_PLUGIN",
                          "not used in a program that has more rights than its user");
    if (!plugin_absolute(value))
        return plugin_say(err, CAI_ERR_ARGUMENT, value, "CAI_EMM_PLUGIN is not an absolute path");
    return CAI_OK;
}

static cai_status plugin_hooks(void *library, const char *path, const cai_emm_hooks **hooks, cai_error *err)
{
    cai_plugin_entry entry = plugin_find(library, "cai_emm_plugin");
    cai_error said;
    cai_status status;
    if (!entry) return plugin_say(err, CAI_ERR_ABI, path, "it has no function cai_emm_plugin");
    *hooks = entry();
    if (!*hooks) return plugin_say(err, CAI_ERR_UNAVAILABLE, path, "its cai_emm_plugin() gave NULL");
    status = cai_emm_hooks_check(*hooks, &said);
    return status ? plugin_say(err, status, path, said.message) : CAI_OK;
}

cai_status cai_plugin_load(const char *path, cai_plugin *out, cai_error *err)
{
    cai_plugin plugin;
    char why[400];
    cai_status status;
    if (!out) return plugin_say(err, CAI_ERR_ARGUMENT, "cai_plugin_load", "out is NULL");
    if (path && !path[0]) return plugin_say(err, CAI_ERR_ARGUMENT, "cai_plugin_load", "path is empty");
    if (!path) {
        path = getenv("CAI_EMM_PLUGIN");
        CAI_TRY(cai_plugin_check_value(path, cai_plugin_elevated(), err));
    }
    plugin.hooks = NULL;
    plugin.library = plugin_open(path, why, sizeof why);
    if (!plugin.library) return plugin_say(err, CAI_ERR_UNAVAILABLE, path, why);
    status = plugin_hooks(plugin.library, path, &plugin.hooks, err);
    if (!status) *out = plugin;
    else plugin_close(plugin.library);
    return status;
}

void cai_plugin_unload(cai_plugin *plugin)
{
    if (!plugin) return;
    if (plugin->library) plugin_close(plugin->library);
    plugin->library = NULL;
    plugin->hooks = NULL;
}
