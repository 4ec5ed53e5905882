// A version of a function for newer machines beside the portable one; the loader chooses.

#ifndef LEVYMC_MACHINE
#define LEVYMC_MACHINE

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_MACHINE
#endif
#define INLINE inline __attribute__((always_inline))

#endif
