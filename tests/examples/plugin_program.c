/* plugin_program.c - what test_plugin.py runs: the loader of plugins in a program.
 * SPDX-License-Identifier: MIT
 *     plugin_program                    checks what needs no file
 *     plugin_program load PATH          PATH "-": NULL. Prints "status: message", or what the plugin gave
 *     plugin_program elevated           prints that, 0 or 1, and whether the user ids differ */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "examples/memory/plugin_loader.c"

#include "cai_test.h"

static void check_value(const char *value, int32_t elevated, cai_status status, const char *message)
{
    cai_error err;
    memset(&err, 0, sizeof err);
    CHECK_INT(cai_plugin_check_value(value, elevated, &err), status);
    CHECK_INT(cai_plugin_check_value(value, elevated, NULL), status);
    CHECK_INT(err.code, status);
    CHECK_STR(err.message, message);
}

static void run(void)
{
    static const char unset[] = "CAI_EMM_PLUGIN: it is not set, and no path was given";
    static const char elevated[] = "CAI_EMM_PLUGIN: not used in a program that has more rights than its user";
#if defined(_WIN32)
    static const char *const good[] = {"C:\\x.dll", "c:/x.dll", "\\\\server\\x.dll"};
    static const char *const bad[] = {"x.dll", "C:x.dll", "\\x.dll", "..\\x.dll", "1:\\x.dll", "/"};
#else
    static const char *const good[] = {"/x.so", "/", "/../x.so"};
    static const char *const bad[] = {"x.so", "./x.so", "../x.so", " /x.so", "~/x.so", "C:\\x.so"};
#endif
    cai_plugin plugin = {NULL, NULL};
    cai_error err;
    char expected[100];
    size_t i;
    check_value(NULL, 0, CAI_ERR_UNAVAILABLE, unset);
    check_value("", 0, CAI_ERR_UNAVAILABLE, unset);
    check_value(NULL, 1, CAI_ERR_UNAVAILABLE, unset);
    for (i = 0; i < sizeof good / sizeof *good; i++) {
        check_value(good[i], 1, CAI_ERR_UNAVAILABLE, elevated);
        CHECK_INT(cai_plugin_check_value(good[i], 0, &err), CAI_OK);
    }
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(expected, sizeof expected, "%s: CAI_EMM_PLUGIN is not an absolute path", bad[i]);
        check_value(bad[i], 0, CAI_ERR_ARGUMENT, expected);
        check_value(bad[i], 1, CAI_ERR_UNAVAILABLE, elevated);
    }
    CHECK_INT(cai_plugin_load("", &plugin, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_plugin_load: path is empty");
    CHECK_INT(cai_plugin_load("x", NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_plugin_load: out is NULL");
    cai_plugin_unload(&plugin);
    cai_plugin_unload(NULL);
}

/* Memory by the plugin's table. */
static int use(const cai_emm_hooks *hooks)
{
    cai_error err;
    void *memory = NULL;
    int bad = cai_emm_alloc(&memory, hooks, 1000, CAI_STREAM_LEGACY, &err) != CAI_OK;
    if (!bad) memset(memory, 1, 1000);
    bad = bad || cai_emm_free(hooks, memory, 1000, CAI_STREAM_LEGACY, &err);
    printf("%s: %s\n", hooks->name, bad ? err.message : "used");
    return bad;
}

#if defined(_WIN32)
static int other_user(void) { return 0; }
static int still_loaded(const char *path) { return path && GetModuleHandleA(path); }
#else
static int other_user(void) { return getuid() != geteuid(); }
static int still_loaded(const char *path) { return path && dlopen(path, RTLD_LAZY | RTLD_NOLOAD); }
#endif

static int load(const char *path)
{
    cai_plugin plugin, again;
    cai_error err;
    cai_status status;
    int bad;
    memset(&plugin, 0xa5, sizeof plugin);
    again = plugin;
    status = cai_plugin_load(path, &plugin, &err);
    if (status) {
        if (memcmp(&plugin, &again, sizeof plugin)) printf("something was stored\n");
        if (cai_plugin_load(path, &plugin, NULL) != status) printf("another status without err\n");
        if (still_loaded(path)) printf("it is still loaded\n");
        printf("%s: %s\n", cai_status_name(status), err.message);
        return 1;
    }
    bad = cai_plugin_load(path, &again, &err) || again.hooks != plugin.hooks; /* counted by the system */
    cai_plugin_unload(&again);
    bad = use(plugin.hooks) || bad;
    cai_plugin_unload(&plugin);
    cai_plugin_unload(&plugin);
    return bad || plugin.library || plugin.hooks || still_loaded(path) ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "load")) return load(strcmp(argv[2], "-") ? argv[2] : NULL);
    if (argc == 2 && !strcmp(argv[1], "elevated")) {
        printf("%d %d\n", (int)cai_plugin_elevated(), other_user());
        return 0;
    }
    run();
    return cai_test_end();
}
