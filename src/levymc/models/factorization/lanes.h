// Vectors for the kernels of step.h.  Without a guard, as that file: LEVYMC_AVX512 or LEVYMC_AVX2 says for
// which instruction set it is included.

typedef float Four __attribute__((vector_size(16)));
typedef float FourAnywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t FourBits __attribute__((vector_size(16)));

// A line: sixteen floats, in one register or, before AVX-512, in two.  A structure, not an array, so that
// it lives in registers; without constructors, as the compiler makes those for the wrong instruction set.
#ifdef LEVYMC_AVX512
typedef float Part __attribute__((vector_size(64)));
typedef float PartAnywhere __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t PartBits __attribute__((vector_size(64)));
struct Line {
  Part all;
};
INLINE Line line_at(const float* from) { return {*(const PartAnywhere*)from}; }
INLINE void store(float* to, Line line) { *(PartAnywhere*)to = line.all; }
INLINE Line all_of(float value) { return {value - Part{}}; }
INLINE Line all_bits(int32_t pattern) { return {(Part)(PartBits{} + pattern)}; }
INLINE Line operator+(Line a, Line b) { return {a.all + b.all}; }
INLINE Line operator-(Line a, Line b) { return {a.all - b.all}; }
INLINE Line operator*(Line a, Line b) { return {a.all * b.all}; }
INLINE Line operator/(Line a, Line b) { return {a.all / b.all}; }
INLINE Line operator&(Line a, Line b) { return {(Part)((PartBits)a.all & (PartBits)b.all)}; }
INLINE Line operator|(Line a, Line b) { return {(Part)((PartBits)a.all | (PartBits)b.all)}; }
INLINE Line larger_size(Line a, Line b) {
  return {(Part)((PartBits)a.all > (PartBits)b.all ? (PartBits)a.all : (PartBits)b.all)};
}
INLINE float sum_of(Line a) { return _mm512_reduce_add_ps((__m512)a.all); }
#else
typedef float Part __attribute__((vector_size(32)));
typedef float PartAnywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t PartBits __attribute__((vector_size(32)));
struct Line {
  Part low, high;
};
INLINE Line line_at(const float* from) {
  return {*(const PartAnywhere*)from, *(const PartAnywhere*)(from + 8)};
}
INLINE void store(float* to, Line line) {
  *(PartAnywhere*)to = line.low;
  *(PartAnywhere*)(to + 8) = line.high;
}
INLINE Line all_of(float value) { return {value - Part{}, value - Part{}}; }
INLINE Line all_bits(int32_t pattern) {
  const PartBits eight = PartBits{} + pattern;
  return {(Part)eight, (Part)eight};
}
INLINE Line operator+(Line a, Line b) { return {a.low + b.low, a.high + b.high}; }
INLINE Line operator-(Line a, Line b) { return {a.low - b.low, a.high - b.high}; }
INLINE Line operator*(Line a, Line b) { return {a.low * b.low, a.high * b.high}; }
INLINE Line operator/(Line a, Line b) { return {a.low / b.low, a.high / b.high}; }
INLINE Line operator&(Line a, Line b) {
  return {(Part)((PartBits)a.low & (PartBits)b.low), (Part)((PartBits)a.high & (PartBits)b.high)};
}
INLINE Line operator|(Line a, Line b) {
  return {(Part)((PartBits)a.low | (PartBits)b.low), (Part)((PartBits)a.high | (PartBits)b.high)};
}
INLINE Line larger_size(Line a, Line b) {
  const PartBits p = (PartBits)a.low, q = (PartBits)b.low, r = (PartBits)a.high, s = (PartBits)b.high;
  return {(Part)(p > q ? p : q), (Part)(r > s ? r : s)};
}
INLINE float sum_of(Line a) {
  const Part v = a.low + a.high;
  const float a0 = v[0] + v[4], a1 = v[1] + v[5], a2 = v[2] + v[6], a3 = v[3] + v[7];
  return (a0 + a2) + (a1 + a3);
}
#endif
INLINE Line size_of(Line a) { return a & all_bits(0x7fffffff); }
INLINE Line sign_of(Line a) { return a & all_bits(int32_t(0x80000000)); }

// The largest of sixteen sizes.  Sizes are compared as whole numbers (`larger_size`), whose order is the
// same, but that NaN comes last.
INLINE float largest_of(Line sizes) {
  int32_t entries[16];
  std::memcpy(entries, &sizes, sizeof entries);
  const int32_t most = *std::max_element(entries, entries + 16);
  float found;
  std::memcpy(&found, &most, sizeof found);
  return found;
}

// An entry of four, sixteen times.
template <int PLACE>
INLINE Line all_of(Four values) {
#if defined LEVYMC_AVX512
  const __m512 low = _mm512_castps128_ps512((__m128)values);
  return {(Part)_mm512_permutexvar_ps(_mm512_set1_epi32(PLACE), low)};
#elif defined LEVYMC_AVX2
  const __m256 low = _mm256_castps128_ps256((__m128)values);
  const Part eight = (Part)_mm256_permutevar8x32_ps(low, _mm256_set1_epi32(PLACE));
  return {eight, eight};
#else
  return all_of(values[PLACE]);
#endif
}

// Products of two lines, entry by entry, as parts of a sum; and such a sum with more of them.
#ifdef LEVYMC_AVX512
INLINE Part products(Line a, Line b) { return a.all * b.all; }
INLINE Part products(Line a, Line b, Part more) { return a.all * b.all + more; }
#else
INLINE Part products(Line a, Line b) { return a.high * b.high + a.low * b.low; }
INLINE Part products(Line a, Line b, Part more) { return a.high * b.high + (a.low * b.low + more); }
#endif

// The sums of four parts; together they take half as many shuffles as one by one.
INLINE Four sums_of(Part a, Part b, Part c, Part d) {
#if defined LEVYMC_AVX512
  const __m512 v0 = (__m512)a, v1 = (__m512)b, v2 = (__m512)c, v3 = (__m512)d;
  const __m512 first = _mm512_add_ps(_mm512_unpacklo_ps(v0, v1), _mm512_unpackhi_ps(v0, v1));
  const __m512 second = _mm512_add_ps(_mm512_unpacklo_ps(v2, v3), _mm512_unpackhi_ps(v2, v3));
  const __m512 quarters = _mm512_add_ps(_mm512_shuffle_ps(first, second, 0x44),
                                        _mm512_shuffle_ps(first, second, 0xEE));
  const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(quarters),
                                      _mm512_extractf32x8_ps(quarters, 1));
  return (Four)_mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
#elif defined LEVYMC_AVX2
  const __m256 v0 = (__m256)a, v1 = (__m256)b, v2 = (__m256)c, v3 = (__m256)d;
  const __m256 first = _mm256_add_ps(_mm256_unpacklo_ps(v0, v1), _mm256_unpackhi_ps(v0, v1));
  const __m256 second = _mm256_add_ps(_mm256_unpacklo_ps(v2, v3), _mm256_unpackhi_ps(v2, v3));
  const __m256 halves = _mm256_add_ps(_mm256_shuffle_ps(first, second, 0x44),
                                      _mm256_shuffle_ps(first, second, 0xEE));
  return (Four)_mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
#else
  Four found{};
  for (int lane = 0; lane < 8; ++lane) found += Four{a[lane], b[lane], c[lane], d[lane]};
  return found;
#endif
}

// The keys of Philox's ten rounds, so that they need not be made anew for every word.
struct Keys {
  uint64_t words[10][2];
  explicit Keys(Key key) {
    for (auto& round : words) {
      round[0] = key.words[0], round[1] = key.words[1];
      key.words[0] += 0x9E3779B9, key.words[1] += 0xBB67AE85;
    }
  }
};

// WORDS words of Philox, of the counters (8 first … 8 first + 7, part, 0, stream): of each counter in
// turn the first two, then of each the last two.
INLINE void random_words(const Keys& keys, uint32_t first, uint32_t part, uint32_t stream, uint32_t* out) {
#if defined LEVYMC_AVX512
  // Each 64-bit lane holds one counter's word in its lower half; the upper half may be anything, as
  // the multiplication does not look at it.
  const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i c0 = _mm512_add_epi64(_mm512_set1_epi64(8 * int64_t{first}),
                                _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  __m512i c1 = _mm512_set1_epi64(part), c2 = _mm512_setzero_si512(), c3 = _mm512_set1_epi64(stream);
#pragma GCC unroll 10
  for (const auto& key : keys.words) {
    const __m512i k0 = _mm512_set1_epi64(key[0]), k1 = _mm512_set1_epi64(key[1]);
    const __m512i p0 = _mm512_mul_epu32(m0, c0), p1 = _mm512_mul_epu32(m1, c2);
    c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1, k0, 0x96);
    c1 = p1;
    c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3, k1, 0x96);
    c3 = p0;
  }
  _mm512_storeu_si512(out, _mm512_mask_blend_epi32(0xAAAA, c0, _mm512_slli_epi64(c1, 32)));
  _mm512_storeu_si512(out + 16, _mm512_mask_blend_epi32(0xAAAA, c2, _mm512_slli_epi64(c3, 32)));
#elif defined LEVYMC_AVX2
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  for (int half = 0; half < 2; ++half) {  // in lanes as above
    __m256i c0 = _mm256_add_epi64(_mm256_set1_epi64x(8 * int64_t{first} + 4 * half),
                                  _mm256_set_epi64x(3, 2, 1, 0));
    __m256i c1 = _mm256_set1_epi64x(part), c2 = _mm256_setzero_si256();
    __m256i c3 = _mm256_set1_epi64x(stream);
#pragma GCC unroll 10
    for (const auto& key : keys.words) {
      const __m256i k0 = _mm256_set1_epi64x(key[0]), k1 = _mm256_set1_epi64x(key[1]);
      const __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
      c0 = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1, k0));
      c1 = p1;
      c2 = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3, k1));
      c3 = p0;
    }
    const __m256i low = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA);
    const __m256i high = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA);
    _mm256_storeu_si256((__m256i*)(out + 8 * half), low);
    _mm256_storeu_si256((__m256i*)(out + 16 + 8 * half), high);
  }
#else
  const Key key{{uint32_t(keys.words[0][0]), uint32_t(keys.words[0][1])}};
  for (uint32_t lane = 0; lane < 8; ++lane) {
    const uint32_t counter[4] = {8 * first + lane, part, 0, stream};
    uint32_t words[4];
    philox(counter, key, words);
    out[2 * lane] = words[0], out[2 * lane + 1] = words[1];
    out[16 + 2 * lane] = words[2], out[17 + 2 * lane] = words[3];
  }
#endif
}
