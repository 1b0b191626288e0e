#include "kernels/backends/modules.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/program.h"
#include "kernels/base/status.h"

struct module {
    const char *name, *option; /* of the build */
    const struct accelerator *accelerator;
};

static struct module modules[] = {{"cuda", "GDN_CUDA", NULL}, {"emulated", "GDN_EMULATED", NULL}};

#ifndef GDN_DOUBLE

/* The i-th folder that is searched for modules, false behind the last: where GDN_MODULES is set, that one
 * alone; else the program's own, the one for an installed program's modules, and the build folder, this
 * for programs inside it alone (once the program is installed, a build folder may be anybody's). */
static bool module_folder(int i, char folder[PATH_MAX]) {
    const char *asked = getenv("GDN_MODULES");
    char program[PATH_MAX];
    program_folder(program);
    size_t length = strlen(GDN_BUILD_FOLDER);
    const char *below = !strncmp(program, GDN_BUILD_FOLDER "/", length + 1) ? GDN_BUILD_FOLDER : program;
    const char *const places[][2] = {{asked ? asked : program, ""},
                                     {asked ? NULL : program, "/" GDN_INSTALLED_MODULES},
                                     {asked ? NULL : below, ""}};
    if (i == sizeof places / sizeof places[0] || !places[i][0]) return false;
    return snprintf(folder, PATH_MAX, "%s%s", places[i][0], places[i][1]) < PATH_MAX;
}

/* The module's path, for the caller to free; NULL with a failure. */
static char *find(const struct module *module) {
    char folder[PATH_MAX], looked[2 * PATH_MAX] = "";
    for (int i = 0; module_folder(i, folder); i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/libgdn_%s.so", folder, module->name) < 0) break;
        if (access(path, R_OK) == 0) return path;
        free(path);
        size_t length = strlen(looked);
        if (!strstr(looked, folder))
            snprintf(looked + length, sizeof looked - length, "%s%s", length ? " or " : "", folder);
    }
    gdn_fail(GDN_INPUT,
             "device %s: there is no libgdn_%s.so in %s%s: this build has no such device; configure it with "
             "-D%s=ON",
             module->name, module->name, getenv("GDN_MODULES") ? "GDN_MODULES, " : "", looked,
             module->option);
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
