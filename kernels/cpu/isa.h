/* One source, several instruction sets: each file of cpu/ is compiled once for every instruction set, with
 * -DISA=v2, v3 or v4 (x86-64 levels), or `plain` elsewhere; attention and products by rows again for each
 * form of operands in bf16, with -DISA=v4_bf16, v4_pairs and so on. Functions that other files call have the
 * instruction set in their names, all others are static, so that a machine never executes code of an
 * instruction set that it lacks. */
#ifndef GDN_ISA_H
#define GDN_ISA_H

#ifndef ISA
#define ISA plain
#endif

#define ISA_JOIN_(name, isa) name##_##isa
#define ISA_JOIN(name, isa) ISA_JOIN_(name, isa)

/* `void ISA_NAME(cpu_trunk)(struct ops *)` is cpu_trunk_v4 and so on. */
#define ISA_NAME(name) ISA_JOIN(name, ISA)

/* Bytes of the widest vector registers of this instruction set. */
#if defined(__AVX512F__)
#define ISA_VECTOR_BYTES 64
#elif defined(__AVX__)
#define ISA_VECTOR_BYTES 32
#else
#define ISA_VECTOR_BYTES 16
#endif

#endif
