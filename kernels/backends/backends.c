/* Finding backends by name, and the choice of instruction set for the CPU backend. */
#include "kernels/backends/backends.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/modules.h"
#include "kernels/base/status.h"
#include "kernels/count/count.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/reference/reference.h"

struct instruction_set {
    const char *name; /* as in GDN_ISA */
    const char *text;
    bool (*supported)(void);
    void (*trunk)(struct ops *ops);
    void (*delta)(struct ops *ops);
    void (*bf16)(struct ops *ops, bool native);
    void (*by_rows)(struct ops *ops);
    double (*peak)(void);
};

#ifdef GDN_X86

static bool has_v2(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

static bool has_v3(void) {
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_v4(void) {
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
}

void cpu_trunk_v2(struct ops *ops);
void cpu_trunk_v3(struct ops *ops);
void cpu_trunk_v4(struct ops *ops);
void cpu_delta_v2(struct ops *ops);
void cpu_delta_v3(struct ops *ops);
void cpu_delta_v4(struct ops *ops);
void cpu_bf16_v2(struct ops *ops, bool native);
void cpu_bf16_v3(struct ops *ops, bool native);
void cpu_bf16_v4(struct ops *ops, bool native);
void cpu_by_rows_v2(struct ops *ops);
void cpu_by_rows_v3(struct ops *ops);
void cpu_by_rows_v4(struct ops *ops);
double cpu_peak_v2(void);
double cpu_peak_v3(void);
double cpu_peak_v4(void);

/* Best first. The build passes exactly the options that `supported` asks the processor for, and to attention by pairs
 * of bf16 those that cpu/bf16.c asks for. */
static const struct instruction_set instruction_sets[] = {
    {"v4", "x86-64-v4 (512-bit)", has_v4, cpu_trunk_v4, cpu_delta_v4, cpu_bf16_v4, cpu_by_rows_v4,
     cpu_peak_v4},
    {"v3", "x86-64-v3 (256-bit)", has_v3, cpu_trunk_v3, cpu_delta_v3, cpu_bf16_v3, cpu_by_rows_v3,
     cpu_peak_v3},
    {"v2", "x86-64-v2 (128-bit)", has_v2, cpu_trunk_v2, cpu_delta_v2, cpu_bf16_v2, cpu_by_rows_v2,
     cpu_peak_v2},
};

#else

static bool has_plain(void) {
    return true;
}

void cpu_trunk_plain(struct ops *ops);
void cpu_delta_plain(struct ops *ops);
void cpu_bf16_plain(struct ops *ops, bool native);
void cpu_by_rows_plain(struct ops *ops);
double cpu_peak_plain(void);

static const struct instruction_set instruction_sets[] = {
    {"plain", "this machine's default instruction set", has_plain, cpu_trunk_plain, cpu_delta_plain,
     cpu_bf16_plain, cpu_by_rows_plain, cpu_peak_plain},
};

#endif

enum { INSTRUCTION_SETS = sizeof instruction_sets / sizeof instruction_sets[0] };

static struct ops reference = {.name = "reference", .device = &host_device};
static struct ops cpu = {.name = "cpu", .device = &host_device};
static struct ops reference_in_bf16, cpu_in_bf16;   /* the same with products of bf16 */
static struct ops cpu_by_rows, cpu_in_bf16_by_rows; /* with those by rows; the reference's in fp32 all are */
static const struct instruction_set *chosen;        /* NULL: no CPU backend */
static char refusal[240];                           /* why there is none, or "" */
static const struct ops *backends[3];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int local_rank; /* this process among those of its host */

/* The best instruction set of this machine, or the one that GDN_ISA asks for; NULL with a refusal. */
static const struct instruction_set *choose(void) {
    const char *asked = getenv("GDN_ISA");
    for (int i = 0; i < INSTRUCTION_SETS; i++) {
        const struct instruction_set *set = &instruction_sets[i];
        if (asked && strcmp(asked, set->name) != 0) continue;
        if (set->supported()) return set;
        if (asked) {
            snprintf(refusal, sizeof refusal, "GDN_ISA is '%s', but this processor lacks %s: unset GDN_ISA",
                     asked, set->text);
            return NULL;
        }
    }
    if (asked)
        snprintf(refusal, sizeof refusal, "GDN_ISA is '%.40s': %s is expected, or leave it unset", asked,
                 INSTRUCTION_SETS > 1 ? "v2, v3 or v4" : instruction_sets[0].name);
    else
        snprintf(refusal, sizeof refusal, "this processor lacks %s, the least that the CPU backend needs",
                 instruction_sets[INSTRUCTION_SETS - 1].text);
    return NULL;
}

static void prepare(void) {
    const struct ops **next = backends;
    reference_trunk(&reference);
    reference_delta(&reference);
    reference_in_bf16 = reference;
    reference_bf16(&reference_in_bf16);
    chosen = choose();
    if (chosen) {
        const char *name = cpu.name;
        cpu = reference;
        cpu.name = name;
        chosen->trunk(&cpu);
        chosen->delta(&cpu);
        gemm_prepare(getenv("GDN_ISA") ? chosen->name : NULL);
        cpu_by_rows = cpu;
        chosen->by_rows(&cpu_by_rows);
        cpu_in_bf16 = cpu;
        gemm_bf16_prepare(getenv("GDN_ISA") ? chosen->name : NULL);
        chosen->bf16(&cpu_in_bf16, gemm_bf16_native());
        cpu_in_bf16_by_rows = cpu_in_bf16;
        chosen->by_rows(&cpu_in_bf16_by_rows);
        *next++ = &cpu;
    }
    *next++ = &reference;
}

const struct ops *const *ops_all(void) {
    pthread_once(&once, prepare);
    return backends;
}

void ops_set_local(int local) {
    local_rank = local;
}

const struct ops *ops_find(const char *name) {
    for (const struct ops *const *each = ops_all(); *each; each++)
        if (strcmp((*each)->name, name) == 0) return *each;
    if (strcmp(name, count_ops.name) == 0) return &count_ops;
    if (strcmp(name, cpu.name) == 0) gdn_fail(GDN_INPUT, "%s", refusal);
    const struct accelerator *accelerator = module_open(name, local_rank);
    return accelerator ? accelerator->ops(PRECISION_FP32) : NULL;
}

bool ops_have_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver) dlclose(driver);
    return driver;
}

/* A backend on the host in fp32 or bf16. */
static const struct ops *host_in(const struct ops *ops, bool bf16) {
    if (ops->name == cpu.name) return bf16 ? &cpu_in_bf16 : &cpu;
    if (ops->name == reference.name) return bf16 ? &reference_in_bf16 : &reference;
    return bf16 ? NULL : ops;
}

const struct ops *ops_on_host(const struct ops *ops) {
    if (!ops->device->host) return ops_all()[0];
    return ops->precision == PRECISION_FP32 ? ops : host_in(ops, false);
}

const struct ops *ops_in(const struct ops *ops, enum precision precision) {
    if (ops->precision == precision) return ops;
    if (!ops->device->host) return module_open(ops->name, local_rank)->ops(precision);
    const struct ops *found = precision == PRECISION_FP32 || precision == PRECISION_BF16
                                  ? host_in(ops, precision == PRECISION_BF16)
                                  : NULL;
    if (!found) gdn_fail(GDN_INPUT, "device %s computes in fp32 and bf16 alone", ops->name);
    return found;
}

const struct ops *ops_by_rows(const struct ops *ops) {
    if (ops == &cpu) return &cpu_by_rows;
    if (ops == &cpu_in_bf16) return &cpu_in_bf16_by_rows;
    return ops == &reference ? &reference : NULL;
}

bool ops_in_software(const struct ops *ops) {
    return ops == &reference_in_bf16 || (ops == &cpu_in_bf16 && !gemm_bf16_native());
}

double ops_counted(void) {
    return count_flops();
}

const char *ops_describe(const struct ops *ops) {
    static char text[200];
    if (ops == &cpu || ops == &cpu_in_bf16)
        snprintf(text, sizeof text, "cpu: %s, %s, %d thread%s", chosen->text,
                 ops == &cpu ? gemm_describe() : gemm_bf16_describe(), ops_threads(),
                 ops_threads() == 1 ? "" : "s");
    else if (!ops->device->host)
        snprintf(text, sizeof text, "%s: %s", ops->name, ops->device->describe());
    else
        snprintf(text, sizeof text, "%s: plain C, 1 thread", ops->name);
    return text;
}

int ops_threads(void) {
    return omp_get_max_threads();
}

double ops_peak(void) {
    ops_all();
    return chosen ? chosen->peak() : 0;
}
