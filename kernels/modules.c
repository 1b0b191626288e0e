#include "kernels/modules.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"

struct module {
    const char *name, *option; /* of the build */
    const struct accelerator *accelerator;
};

static struct module modules[] = {{"cuda", "GDN_CUDA", NULL}, {"emulated", "GDN_EMULATED", NULL}};

enum { FOLDERS = 3 };

#ifndef GDN_DOUBLE

/* Puts the folder of the running program there, or "". */
static void program_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
}

/* The module's path, for the caller to free; NULL with a failure. */
static char *find(const struct module *module) {
    char program[PATH_MAX];
    program_folder(program);
    const char *asked = getenv("GDN_MODULES");
    const char *const folders[FOLDERS][2] = {{asked ? asked : program, ""},
                                             {asked ? NULL : program, "/../lib"},
                                             {asked ? NULL : GDN_MODULE_FOLDER, ""}};
    for (int i = 0; i < FOLDERS; i++) {
        char *path = NULL;
        if (!folders[i][0] ||
            asprintf(&path, "%s%s/libgdn_%s.so", folders[i][0], folders[i][1], module->name) < 0)
            continue;
        if (access(path, R_OK) == 0) return path;
        free(path);
    }
    gdn_fail(
        GDN_INPUT,
        "device %s: there is no libgdn_%s.so %s%s: this build has no such device; configure it with -D%s=ON",
        module->name, module->name, asked ? "in GDN_MODULES, " : "beside the program or in ",
        asked ? asked : GDN_MODULE_FOLDER, module->option);
    return NULL;
}

static const struct accelerator *open_module(const struct module *module, int local) {
    char *path = find(module);
    if (!path) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gdn_accelerator_function *entry = NULL;
    if (library) entry = (gdn_accelerator_function *)dlsym(library, GDN_ACCELERATOR_ENTRY);
    if (!entry) gdn_fail(GDN_INPUT, "device %s: %s cannot be loaded: %s", module->name, path, dlerror());
    free(path);
    return entry ? entry(gdn_fail, local) : NULL;
}

#else

static const struct accelerator *open_module(const struct module *module, int local) {
    (void)local;
    gdn_fail(GDN_INPUT, "device %s: it computes in float, and this build in double (GDN_DOUBLE)",
             module->name);
    return NULL;
}

#endif

const struct accelerator *module_open(const char *name, int local) {
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        if (strcmp(modules[i].name, name) != 0) continue;
        if (!modules[i].accelerator) modules[i].accelerator = open_module(&modules[i], local);
        return modules[i].accelerator;
    }
    return NULL;
}
