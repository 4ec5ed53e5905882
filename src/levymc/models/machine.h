// Versions of code for newer machines beside the portable one.

#ifndef LEVYMC_MACHINE
#define LEVYMC_MACHINE

#include <cstdlib>
#include <cstring>

#define INLINE inline __attribute__((always_inline))
#define NOINLINE inline __attribute__((noinline))

#if defined(__x86_64__) && defined(__GNUC__)
#define LEVYMC_X86 1
#include <immintrin.h>
#endif

// A version of one function for each machine, of which the loader chooses.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_MACHINE
#endif

// Everything between these two is compiled for a machine with those instructions.
#define LEVYMC_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define BEGIN_TARGET(names) \
  LEVYMC_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define END_TARGET LEVYMC_PRAGMA(clang attribute pop)
#else
#define BEGIN_TARGET(names) LEVYMC_PRAGMA(GCC push_options) LEVYMC_PRAGMA(GCC target(names))
#define END_TARGET LEVYMC_PRAGMA(GCC pop_options)
#endif

enum class Instructions { PORTABLE, AVX2, AVX512 };

// The best that this machine has, or less if LEVYMC_NATIVE_ISA says "avx2" or "portable", as tests do.
inline Instructions instructions() {
#if LEVYMC_X86
  const char* asked = std::getenv("LEVYMC_NATIVE_ISA");
  const bool is_portable = asked && !std::strcmp(asked, "portable");
  const bool is_avx2 = asked && !std::strcmp(asked, "avx2");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                          __builtin_cpu_supports("avx512vbmi2");
  if (is_portable || !has_avx2) return Instructions::PORTABLE;
  return is_avx2 || !has_avx512 ? Instructions::AVX2 : Instructions::AVX512;
#else
  return Instructions::PORTABLE;
#endif
}

#endif
