// The batch of a step, block by block.  Without a guard, as step.h, which includes it.

// Fill the histogram of a block with its draws.
NOINLINE void throw_draws(const Step& s, const Block& block, uint32_t number, uint8_t* histogram) {
  const uint64_t size = uint64_t(block.end - block.begin);
  std::memset(histogram, 0, (size + 63) / 64 * 64);
  const Keys keys(s.key);
  alignas(64) uint32_t words[WORDS];
  int64_t left = block.draws;
  uint32_t round = 0;
  if (size == BLOCK) {  // two draws a word, as a place is 14 bits
    for (; left >= 2 * WORDS; left -= 2 * WORDS) {
      random_words(keys, round++, number, PLACES, words);
      uint16_t places[2 * WORDS];
      for (int i = 0; i < WORDS; ++i) words[i] &= (BLOCK - 1) << 16 | (BLOCK - 1);
      std::memcpy(places, words, sizeof places);
#pragma GCC unroll 16
      for (int i = 0; i < 2 * WORDS; ++i) ++histogram[places[i]];
    }
  }
  while (left > 0) {  // Lemire's unbiased multiplication
    random_words(keys, round++, number, PLACES, words);
    for (int i = 0; i < WORDS && left > 0; ++i) {
      const uint64_t scaled = words[i] * size;
      if (uint32_t(scaled) < uint32_t(-size) % uint32_t(size)) continue;
      ++histogram[scaled >> 32];
      --left;
    }
  }
}

// The ratings of a block that were drawn, in order: item, value less center, weight.  Behind them
// there is room for what vectors write beyond; item 0 AHEAD times, as rows are asked for so early; and
// values of 0 where `add_four` reads on: a weight of 0 does not cancel whatever memory held, as 0 · NaN
// is NaN.
struct Drawn {
  alignas(64) uint8_t histogram[BLOCK];
  uint64_t filled[BLOCK / 64];  // bit by bit, the places with draws,
  int32_t before[BLOCK / 64];   // and how many there are before these 64
  alignas(64) uint32_t items[BLOCK + BEYOND];
  alignas(64) uint32_t starts[BLOCK + BEYOND];  // where their rows begin, in floats
  alignas(64) float values[BLOCK + BEYOND];
  alignas(64) float weights[BLOCK + BEYOND];
  alignas(64) uint16_t narrow[BLOCK + BEYOND];  // the items, if they come so
  alignas(64) uint8_t codes[BLOCK + BEYOND];    // values as they come,
  alignas(64) uint8_t counts[BLOCK + BEYOND];   // and multiplicities
  int size, count;                              // ratings of the block, of the list
  bool is_outside;  // an item was named that is not there; item 0 stands for all of the block

  // How many of the list come before a place of the block.
  INLINE int until(int64_t place) const {
    if (place >= size) return count;
    const uint64_t earlier = (uint64_t{1} << (place & 63)) - 1;
    return before[place >> 6] + __builtin_popcountll(filled[place >> 6] & earlier);
  }
};

// Which of 64 bytes are not zero, as bits.
INLINE uint64_t filled_places(const uint8_t* bytes) {
#if defined LEVYMC_AVX512
  const __m512i all = _mm512_load_si512(bytes);
  return _mm512_test_epi8_mask(all, all);
#elif defined LEVYMC_AVX2
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = _mm256_cmpeq_epi8(_mm256_load_si256((const __m256i*)bytes), zero);
  const __m256i high = _mm256_cmpeq_epi8(_mm256_load_si256((const __m256i*)(bytes + 32)), zero);
  return ~(uint64_t(uint32_t(_mm256_movemask_epi8(high))) << 32 | uint32_t(_mm256_movemask_epi8(low)));
#else
  uint64_t filled = 0;
  for (int part = 0; part < 8; ++part) {
    uint64_t eight;
    std::memcpy(&eight, bytes + 8 * part, 8);
    // The top bit of each byte that is not zero, as none reaches 128; then these bits side by side.
    const uint64_t tops = (eight + 0x7f7f7f7f7f7f7f7f) & 0x8080808080808080;
    filled |= (((tops >> 7) * 0x0102040810204080) >> 56) << 8 * part;
  }
  return filled;
#endif
}

INLINE uint16_t* list_of(Drawn& drawn, uint16_t) { return drawn.narrow; }
INLINE uint32_t* list_of(Drawn& drawn, uint32_t) { return drawn.items; }

// Those of up to 64 ratings that `filled` marks, behind the `count` that the list has.
template <class Item>
INLINE void list_one_by_one(uint64_t filled, const Item* rated, const uint8_t* codes,
                            const uint8_t* histogram, int count, Drawn& drawn) {
  Item* items = list_of(drawn, Item{});
  for (; filled; filled &= filled - 1, ++count) {
    const int place = __builtin_ctzll(filled);
    items[count] = rated[place];
    drawn.codes[count] = codes[place];
    drawn.counts[count] = histogram[place];
  }
}

#if defined LEVYMC_AVX512
// The items of 64 ratings.  Where at most 16 were drawn, short stores do, which cross fewer cache lines.
INLINE void list_items(uint64_t filled, bool are_few, const uint16_t* rated, int count, Drawn& drawn) {
  const uint32_t low = uint32_t(filled), high = uint32_t(filled >> 32);
  const __m512i first = _mm512_maskz_compress_epi16(low, _mm512_maskz_loadu_epi16(low, rated));
  const __m512i second = _mm512_maskz_compress_epi16(high, _mm512_maskz_loadu_epi16(high, rated + 32));
  uint16_t *begin = drawn.narrow + count, *middle = begin + __builtin_popcount(low);
  if (are_few) {
    _mm256_storeu_si256((__m256i*)begin, _mm512_castsi512_si256(first));
    _mm256_storeu_si256((__m256i*)middle, _mm512_castsi512_si256(second));
  } else {
    _mm512_storeu_si512(begin, first);
    _mm512_storeu_si512(middle, second);
  }
}

INLINE void list_items(uint64_t filled, bool, const uint32_t* rated, int count, Drawn& drawn) {
  for (int part = 0; part < 64; part += 16) {
    const uint16_t mask = uint16_t(filled >> part);
    const __m512i sixteen = _mm512_maskz_loadu_epi32(mask, rated + part);
    _mm512_storeu_si512(drawn.items + count, _mm512_maskz_compress_epi32(mask, sixteen));
    count += __builtin_popcount(mask);
  }
}

// As `list_one_by_one`, without a branch that depends on chance.  Nothing else is read.
template <class Item>
INLINE void list_line(uint64_t filled, const Item* rated, const uint8_t* codes,
                      const uint8_t* histogram, int, int count, Drawn& drawn) {
  const bool are_few = __builtin_popcountll(filled) <= 16;
  const __m512i code = _mm512_maskz_compress_epi8(filled, _mm512_maskz_loadu_epi8(filled, codes));
  const __m512i number = _mm512_maskz_compress_epi8(filled, _mm512_load_si512(histogram));
  if (are_few) {
    _mm_storeu_si128((__m128i*)(drawn.codes + count), _mm512_castsi512_si128(code));
    _mm_storeu_si128((__m128i*)(drawn.counts + count), _mm512_castsi512_si128(number));
  } else {
    _mm512_storeu_si512(drawn.codes + count, code);
    _mm512_storeu_si512(drawn.counts + count, number);
  }
  list_items(filled, are_few, rated, count, drawn);
}
#elif defined LEVYMC_AVX2
// For every byte the places of its set bits: as words, and as bytes twice, the second time 8 beyond.
struct Shuffles {
  alignas(16) uint8_t words[256][16], bytes[256][16];
  Shuffles() {
    std::memset(words, 0, sizeof words), std::memset(bytes, 0, sizeof bytes);
    for (int mask = 0; mask < 256; ++mask)
      for (int bit = 0, found = 0; bit < 8; ++bit) {
        if (!(mask >> bit & 1)) continue;
        words[mask][2 * found] = uint8_t(2 * bit), words[mask][2 * found + 1] = uint8_t(2 * bit + 1);
        bytes[mask][found] = uint8_t(bit), bytes[mask][8 + found] = uint8_t(8 + bit);
        ++found;
      }
  }
};
static const Shuffles shuffles;

INLINE void list_items(unsigned mask, const uint16_t* rated, int count, Drawn& drawn) {
  const __m128i order = _mm_load_si128((const __m128i*)shuffles.words[mask]);
  const __m128i eight = _mm_loadu_si128((const __m128i*)rated);
  _mm_storeu_si128((__m128i*)(drawn.narrow + count), _mm_shuffle_epi8(eight, order));
}

INLINE void list_items(unsigned mask, const uint32_t* rated, int count, Drawn& drawn) {
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)shuffles.bytes[mask]));
  const __m256i eight = _mm256_loadu_si256((const __m256i*)rated);
  _mm256_storeu_si256((__m256i*)(drawn.items + count), _mm256_permutevar8x32_epi32(eight, order));
}

// As `list_one_by_one`, without a branch that depends on chance.
template <class Item>
INLINE void list_line(uint64_t filled, const Item* rated, const uint8_t* codes,
                      const uint8_t* histogram, int size, int count, Drawn& drawn) {
  if (size < 64) return list_one_by_one(filled, rated, codes, histogram, count, drawn);
  for (int part = 0; part < 64; part += 8) {
    const unsigned mask = filled >> part & 255;
    const __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i*)(codes + part)),
                                            _mm_loadl_epi64((const __m128i*)(histogram + part)));
    const __m128i order = _mm_load_si128((const __m128i*)shuffles.bytes[mask]);
    const __m128i listed = _mm_shuffle_epi8(both, order);
    _mm_storel_epi64((__m128i*)(drawn.codes + count), listed);
    _mm_storeh_pd((double*)(drawn.counts + count), _mm_castsi128_pd(listed));
    list_items(mask, rated + part, count, drawn);
    count += __builtin_popcount(mask);
  }
}
#else
template <class Item>
INLINE void list_line(uint64_t filled, const Item* rated, const uint8_t* codes,
                      const uint8_t* histogram, int, int count, Drawn& drawn) {
  list_one_by_one(filled, rated, codes, histogram, count, drawn);
}
#endif

// List what was drawn of a block.  (No multiplicity reaches 128: n ≤ N makes that a matter of probability
// 1e-200.)
template <class Item>
INLINE void list_places(const Step& s, const Block& block, Drawn& drawn) {
  const Item* rated = (const Item*)s.rated + block.begin;
  const uint8_t* codes = s.codes + block.begin;
  const int size = int(block.end - block.begin);
  int count = 0;
  for (int line = 0; line < size; line += 64) {
    __builtin_prefetch(codes + line + STREAM);
    for (size_t part = 0; part < sizeof(Item); ++part)
      __builtin_prefetch((const char*)(rated + line + STREAM) + 64 * part);
    const uint64_t filled = filled_places(drawn.histogram + line);
    drawn.filled[line / 64] = filled;
    drawn.before[line / 64] = count;
    if (!filled) continue;
    list_line(filled, rated + line, codes + line, drawn.histogram + line, size - line, count, drawn);
    count += __builtin_popcountll(filled);
  }
  drawn.size = size;
  drawn.count = count;
}

// The values of codes.  Where there are at most sixteen, they are looked up in registers.
INLINE void look_up_values(const Step& s, bool has_few_levels, Drawn& drawn) {
#if defined LEVYMC_AVX512
  if (has_few_levels) {
    const __m512 levels = _mm512_loadu_ps(s.levels);
    for (int i = 0; i < drawn.count; i += 16) {
      const __m512i code = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)(drawn.codes + i)));
      const __m512i place = _mm512_min_epu32(code, _mm512_set1_epi32(15));
      _mm512_store_ps(drawn.values + i, _mm512_permutexvar_ps(place, levels));
    }
    return;
  }
#elif defined LEVYMC_AVX2
  if (has_few_levels) {
    const __m256 low = _mm256_loadu_ps(s.levels), high = _mm256_loadu_ps(s.levels + 8);
    for (int i = 0; i < drawn.count; i += 8) {
      const __m256i code =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(drawn.codes + i)));
      const __m256i place = _mm256_min_epu32(code, _mm256_set1_epi32(15));
      const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(place, 28));  // its sign bit
      _mm256_store_ps(drawn.values + i,
                      _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, place),
                                       _mm256_permutevar8x32_ps(high, place), is_high));
    }
    return;
  }
#endif
  for (int i = 0; i < drawn.count; ++i) drawn.values[i] = s.levels[drawn.codes[i]];
}

// Whether all codes from 15 on have one value.
INLINE bool has_few_levels(const float* levels) {
  return std::all_of(levels + 15, levels + 256, [=](float level) { return level == levels[15]; });
}

// The batch's part of a block, as the list that the gradients are made from.
template <class Item>
void list_draws(const Step& s, const Block& block, bool has_few_levels, float scale,
                Drawn& drawn) {
  list_places<Item>(s, block, drawn);
  look_up_values(s, has_few_levels, drawn);
  const Item* listed = list_of(drawn, Item{});
  const uint32_t row = uint32_t(s.row);
  uint32_t last = 0;
  for (int i = 0; i < drawn.count; ++i) {
    const uint32_t item = listed[i];
    last = std::max(last, item);
    drawn.items[i] = item;
    drawn.starts[i] = item * row;
    drawn.weights[i] = scale * float(int32_t{drawn.counts[i]});
  }
  const bool is_outside = int64_t(last) >= s.num_items;
  drawn.is_outside |= is_outside;
  for (int i = is_outside ? 0 : drawn.count; i < drawn.count + AHEAD + 4; ++i)
    drawn.items[i] = drawn.starts[i] = 0, drawn.values[i] = 0;
}
