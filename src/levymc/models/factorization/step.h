// The kernels of factorization.cpp, whose top says what they do and how.  Without a guard: it includes
// this file into a namespace for each instruction set, and defines LEVYMC_AVX2 for one of them.

typedef float Eight __attribute__((vector_size(32)));
typedef float EightAnywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t EightBits __attribute__((vector_size(32)));

// Sixteen floats.  A structure of two vectors, not an array, so that it lives in registers; without
// constructors, as the compiler makes those for the wrong instruction set.
struct Line {
  Eight low, high;
};
INLINE Line line_at(const float* from) {
  return {*(const EightAnywhere*)from, *(const EightAnywhere*)(from + 8)};
}
INLINE void store(float* to, Line line) {
  *(EightAnywhere*)to = line.low;
  *(EightAnywhere*)(to + 8) = line.high;
}
INLINE Line operator+(Line a, Line b) { return {a.low + b.low, a.high + b.high}; }
INLINE Line operator-(Line a, Line b) { return {a.low - b.low, a.high - b.high}; }
INLINE Line operator*(Line a, Line b) { return {a.low * b.low, a.high * b.high}; }
INLINE Line operator*(float a, Line b) { return {a * b.low, a * b.high}; }
INLINE Line operator-(float a, Line b) { return {a - b.low, a - b.high}; }
INLINE Line operator+(float a, Line b) { return {a + b.low, a + b.high}; }
INLINE Line operator/(float a, Line b) { return {a / b.low, a / b.high}; }
INLINE Line operator&(Line a, Line b) {
  return {(Eight)((EightBits)a.low & (EightBits)b.low), (Eight)((EightBits)a.high & (EightBits)b.high)};
}
INLINE Line operator|(Line a, Line b) {
  return {(Eight)((EightBits)a.low | (EightBits)b.low), (Eight)((EightBits)a.high | (EightBits)b.high)};
}
INLINE Line larger(Line a, Line b) {
  return {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}
INLINE Line all_bits(int32_t pattern) {
  const EightBits eight = EightBits{} + pattern;
  return {(Eight)eight, (Eight)eight};
}
INLINE Line size_of(Line a) { return a & all_bits(0x7fffffff); }
INLINE Line sign_of(Line a) { return a & all_bits(int32_t(0x80000000)); }
INLINE float largest_of(Line a) {
  float found = 0;
  for (int i = 0; i < 8; ++i) found = std::max(found, std::max(a.low[i], a.high[i]));
  return found;
}
INLINE float sum_of(Line a) {
  const Eight v = a.low + a.high;
#ifdef LEVYMC_AVX2
  __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#else
  const float a0 = v[0] + v[4], a1 = v[1] + v[5], a2 = v[2] + v[6], a3 = v[3] + v[7];
  return (a0 + a2) + (a1 + a3);
#endif
}

// WORDS words of Philox, of the counters (4 first … 4 first + 3, part, 0, stream).
INLINE void random_words(Key key, uint32_t first, uint32_t part, uint32_t stream, uint32_t* out) {
#ifdef LEVYMC_AVX2
  // Each 64-bit lane holds one counter's word in its lower half; the upper half may be anything, as
  // the multiplication does not look at it.
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0 = _mm256_add_epi64(_mm256_set1_epi64x(4 * int64_t{first}), _mm256_set_epi64x(3, 2, 1, 0));
  __m256i c1 = _mm256_set1_epi64x(part), c2 = _mm256_setzero_si256(), c3 = _mm256_set1_epi64x(stream);
  uint32_t k0 = key.words[0], k1 = key.words[1];
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
    c0 = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1, _mm256_set1_epi64x(k0)));
    c1 = p1;
    c2 = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3, _mm256_set1_epi64x(k1)));
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  _mm256_storeu_si256((__m256i*)out, _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA));
  _mm256_storeu_si256((__m256i*)(out + 8), _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA));
#else
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const uint32_t counter[4] = {4 * first + lane, part, 0, stream};
    uint32_t words[4];
    philox(counter, key, words);
    out[2 * lane] = words[0], out[2 * lane + 1] = words[1];  // in the order of the other branch
    out[8 + 2 * lane] = words[2], out[9 + 2 * lane] = words[3];
  }
#endif
}

// Fill the histogram of a block with its draws.
inline void throw_draws(const Step& s, const Block& block, uint32_t number, uint8_t* histogram) {
  const uint64_t size = uint64_t(block.end - block.begin);
  std::memset(histogram, 0, (size + 63) / 64 * 64);
  alignas(32) uint32_t words[WORDS];
  int64_t left = block.draws;
  uint32_t round = 0;
  if (size == BLOCK) {  // two draws a word, as a place is 14 bits
    for (; left >= 2 * WORDS; left -= 2 * WORDS) {
      random_words(s.key, round++, number, PLACES, words);
      for (int i = 0; i < WORDS; ++i) {
        ++histogram[words[i] & (BLOCK - 1)];
        ++histogram[words[i] >> 18];
      }
    }
  }
  while (left > 0) {  // Lemire's unbiased multiplication
    random_words(s.key, round++, number, PLACES, words);
    for (int i = 0; i < WORDS && left > 0; ++i) {
      const uint64_t scaled = words[i] * size;
      if (uint32_t(scaled) < uint32_t(-size) % uint32_t(size)) continue;
      ++histogram[scaled >> 32];
      --left;
    }
  }
}

typedef uint16_t EightPlaces __attribute__((vector_size(16)));
typedef uint16_t EightPlacesAnywhere __attribute__((vector_size(16), aligned(2), may_alias));

// For every byte, the places of its set bits.
struct Places {
  EightPlaces of[256];
  Places() {
    for (int mask = 0; mask < 256; ++mask) {
      int found = 0;
      of[mask] = EightPlaces{};
      for (int bit = 0; bit < 8; ++bit)
        if (mask >> bit & 1) of[mask][found++] = uint16_t(bit);
    }
  }
};

// The ratings of a block that were drawn, in order: place, item, value less center, multiplicity.
struct Drawn {
  alignas(64) uint8_t histogram[BLOCK];
  uint16_t places[BLOCK + 8];
  uint32_t items[BLOCK + AHEAD];
  float values[BLOCK], weights[BLOCK];
  int count;
  bool is_outside;  // an item was named that is not there; item 0 stands for all of the block
};

// Which of 64 bytes are not zero, as bits.
INLINE uint64_t filled_places(const uint8_t* bytes) {
#ifdef LEVYMC_AVX2
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

// List the places with draws, without a branch that depends on chance.  Meanwhile the block's ratings
// are asked for.  (No multiplicity reaches 128: n ≤ N makes that a matter of probability 1e-200.)
template <class Item>
INLINE void list_places(const Step& s, const Block& block, Drawn& drawn) {
  static const Places table;
  const Item* rated = (const Item*)s.rated + block.begin;
  const uint8_t* codes = s.codes + block.begin;
  const int size = int(block.end - block.begin);
  int count = 0;
  for (int line = 0; line < size; line += 64) {
    __builtin_prefetch(codes + line);
    for (size_t part = 0; part < sizeof(Item); ++part)
      __builtin_prefetch((const char*)(rated + line) + 64 * part);
    const uint64_t filled = filled_places(drawn.histogram + line);
    for (int part = 0; part < 64; part += 8) {
      const unsigned mask = filled >> part & 255;
      *(EightPlacesAnywhere*)(drawn.places + count) = table.of[mask] + uint16_t(line + part);
      count += __builtin_popcount(mask);
    }
  }
  drawn.count = count;
}

template <class Item>
void list_draws(const Step& s, const Block& block, Drawn& drawn) {
  list_places<Item>(s, block, drawn);
  const Item* rated = (const Item*)s.rated + block.begin;
  const uint8_t* codes = s.codes + block.begin;
  uint32_t last = 0;
  for (int i = 0; i < drawn.count; ++i) {
    const int place = drawn.places[i];
    drawn.items[i] = rated[place];
    last = std::max(last, uint32_t(rated[place]));
    drawn.values[i] = s.levels[codes[place]];
    drawn.weights[i] = drawn.histogram[place];
  }
  if (int64_t(last) >= s.num_items) {
    std::fill(drawn.items, drawn.items + drawn.count, 0);
    drawn.is_outside = true;
  }
  for (int i = 0; i < AHEAD; ++i) drawn.items[drawn.count + i] = 0;
}

// Where the noise of a group of rows is made.
struct Noise {
  std::vector<uint32_t> words, places;
  std::vector<uint64_t> cells;
  std::vector<float> values;  // rank variables a row, SαS(1); the last row may be read beyond
  explicit Noise(const Step& s)
      : words(GROUP * s.rank + WORDS),
        places(words.size()),
        cells(words.size()),
        values(words.size() + s.row) {}
};

// One word makes one variable.  A bit is the sign; the others, as a float, number a cell of the table
// by exponent and eight bits of the mantissa, and in it the other bits interpolate (levymc.stable).
// In three loops, as looking up is for scalars and the rest for vectors.
inline void make_noise(const Step& s, uint32_t group, int64_t num_rows, uint32_t stream, Noise& noise) {
  const int count = int(num_rows * s.rank + WORDS - 1) / WORDS * WORDS;
  uint32_t *__restrict words = noise.words.data(), *__restrict places = noise.places.data();
  uint64_t* __restrict cells = noise.cells.data();
  float* __restrict values = noise.values.data();
  for (int begin = 0; begin < count; begin += WORDS)
    random_words(s.key, uint32_t(begin / WORDS), group, stream, words + begin);
  for (int i = 0; i < count; ++i) {
    const float uniform = float(int32_t(words[i] >> 1)) + 0.5f;
    std::memcpy(places + i, &uniform, 4);
  }
  constexpr size_t first = 0x3f000000 >> 15;  // 0x3f000000: ½, the least uniform
  for (int i = 0; i < count; ++i) {
    uint64_t pair;
    std::memcpy(&pair, s.quantiles + 2 * (size_t(places[i] >> 15) - first), 8);
    asm("" : "+r"(pair));  // keeps the compiler from gathering in vectors, which is slower
    cells[i] = pair;
  }
  for (int i = 0; i < count; ++i) {
    const uint32_t low = uint32_t(cells[i]), high = uint32_t(cells[i] >> 32);
    float start, change;
    std::memcpy(&start, &low, 4), std::memcpy(&change, &high, 4);
    const float size = start + change * (float(int32_t(places[i] & 0x7fff)) * 0x1p-15f);
    uint32_t bits;
    std::memcpy(&bits, &size, 4);
    bits |= words[i] << 31;
    std::memcpy(values + i, &bits, 4);
  }
}

// A row's step lengths: of the drift and of the noise, and how much the clip shortened the former.
struct Lengths {
  float drift, noise, shortened;
};

INLINE Lengths lengths(const Step& s, const float* steps, const float* noises, int64_t row,
                       float noise_scale, float curvature) {
  const float full = s.step_size * (steps ? steps[row] : 1.0f) * float(s.drift_scale);
  const float noise = noise_scale * (noises ? noises[row] : 1.0f);
  const float clip = s.has_clip ? std::min(1.0f, 1.0f / (full * curvature)) : 1.0f;
  return {full * clip, noise, 1.0f - clip};
}

// The running maxima of a report.
struct Watch {
  Line jump, taming, largest, wrong;
  Report report() const {
    const float is_wrong = sum_of(wrong) == 0 ? 0.0f : 1.0f;
    return {largest_of(jump), largest_of(taming), is_wrong, largest_of(largest), false};
  }
};

// All bits set in the columns that move: neither padding nor frozen.
struct Mask {
  Line lines[MAX_LINES];
  Mask(const Step& s, int64_t frozen) {
    for (int64_t line = 0; line < s.row / LINE; ++line) {
      int32_t bits[LINE];
      for (int64_t i = 0; i < LINE; ++i) {
        const int64_t column = LINE * line + i;
        bits[i] = column < s.rank && !(column < 64 && (frozen >> column & 1)) ? -1 : 0;
      }
      std::memcpy(&lines[line].low, bits, 32), std::memcpy(&lines[line].high, bits + 8, 32);
    }
  }
};

// Move one row: `gradient` is that of the likelihood, to which the prior's is added.
template <int LINES>
INLINE void move_row(float* row, int lines, const Line* gradient, const float* noise, const Mask& mask,
                     Lengths by, float cap, Watch& watch) {
  for (int l = 0; l < (LINES ? LINES : lines); ++l) {
    const Line old = line_at(row + LINE * l);
    Line step = by.drift * (gradient[l] - old);
    Line shortened = by.shortened + Line{};
    if (cap < std::numeric_limits<float>::infinity()) {
      const Line taming = 1.0f / (1.0f + cap / size_of(step));  // an infinite step becomes one of cap
      step = (cap * taming) | sign_of(step);
      shortened = 1.0f - (1.0f - shortened) * (1.0f - taming);
    }
    const Line jump = by.noise * line_at(noise + LINE * l) & mask.lines[l];
    const Line moved = old + ((step & mask.lines[l]) + jump);
    store(row + LINE * l, moved);
    watch.jump = larger(size_of(jump), watch.jump);
    watch.taming = larger(shortened & mask.lines[l], watch.taming);
    watch.largest = larger(size_of(moved), watch.largest);
    watch.wrong = watch.wrong + 0.0f * moved;  // NaN where an entry is not finite
  }
}

// Go through a segment's users: the gradients of its ratings, and the users' moves.
template <int LINES, bool HAS_CLIP>
Report work_segment(const Step& s, const Segment& segment, int number, uint32_t first_block,
                    Drawn& drawn) {
  const int lines = LINES ? LINES : int(s.row / LINE);
  const int64_t width = LINES ? LINES * LINE : s.row;
  const float* items = s.items;
  float* gradients = s.gradients + number * s.num_items * width;
  float* clips = s.clips + number * s.num_items;
  std::memset(gradients, 0, sizeof(float) * s.num_items * width);
  if (HAS_CLIP) std::memset(clips, 0, sizeof(float) * s.num_items);
  const Mask mask(s, s.user_frozen);
  const float scale = float(double(s.num_ratings) / double(s.batch_size) * s.precision);
  const float noise_scale = float(std::pow(double(s.step_size), 1 / s.alpha)), cap = float(s.cap);
  Watch watch{};
  Noise noise(s);
  Line gradient[LINES ? LINES : MAX_LINES], row[LINES ? LINES : MAX_LINES];
  size_t block = 0;
  int place = 0;     // in the list of the block's draws
  int64_t base = 0;  // of the block
  drawn.count = 0;
  drawn.is_outside = false;
  for (int64_t user = segment.first_user; user < segment.last_user; ++user) {
    if (user % GROUP == 0)
      make_noise(s, uint32_t(user / GROUP), std::min<int64_t>(GROUP, s.num_users - user), USER_NOISE,
                 noise);
    float* user_row = s.users + user * width;
    float own_norm = 0, partner_norms = 0;
    Line squares{};
    for (int l = 0; l < lines; ++l) {
      gradient[l] = Line{};
      row[l] = line_at(user_row + LINE * l);
      if (HAS_CLIP) squares = squares + row[l] * row[l];
    }
    if (HAS_CLIP) own_norm = scale * sum_of(squares);
    const int64_t end = s.offsets[user + 1];
    while (true) {
      const int64_t end_here = end - base;
      const int count = drawn.count;
      for (; place < count && drawn.places[place] < end_here; ++place) {
        const int64_t item = drawn.items[place], later = drawn.items[place + AHEAD];
        __builtin_prefetch(items + later * width);
        __builtin_prefetch(gradients + later * width, 1);
        Line products{};
        for (int l = 0; l < lines; ++l)
          products = products + row[l] * line_at(items + item * width + LINE * l);
        const float weight = drawn.weights[place];
        const float error = scale * weight * (drawn.values[place] - sum_of(products));
        for (int l = 0; l < lines; ++l) {
          gradient[l] = gradient[l] + error * line_at(items + item * width + LINE * l);
          float* item_gradient = gradients + item * width + LINE * l;
          store(item_gradient, line_at(item_gradient) + error * row[l]);
        }
        if (HAS_CLIP) {
          partner_norms += weight * s.partner_norms[item];
          clips[item] += weight * own_norm;
        }
      }
      if (place < drawn.count || block == segment.blocks.size() || segment.blocks[block].begin >= end)
        break;
      const Block& next = segment.blocks[block];
      throw_draws(s, next, first_block + uint32_t(block), drawn.histogram);
      s.is_wide ? list_draws<uint32_t>(s, next, drawn) : list_draws<uint16_t>(s, next, drawn);
      base = next.begin, place = 0, ++block;
    }
    const Lengths by = lengths(s, s.user_steps, s.user_noises, user, noise_scale, 1.0f + partner_norms);
    move_row<LINES>(user_row, lines, gradient, noise.values.data() + user % GROUP * s.rank, mask, by,
                    cap, watch);
  }
  Report report = watch.report();
  report.is_outside = drawn.is_outside;
  return report;
}

// |b_i|², scaled, for the clip.
inline void measure_items(const Step& s) {
  const float scale = float(double(s.num_ratings) / double(s.batch_size) * s.precision);
  for (int64_t item = 0; item < s.num_items; ++item) {
    Line squares{};
    for (int64_t k = 0; k < s.row; k += LINE) {
      const Line part = line_at(s.items + item * s.row + k);
      squares = squares + part * part;
    }
    s.partner_norms[item] = scale * sum_of(squares);
  }
}

// Move the items of some groups: add up the segments' gradients, in order.
template <int LINES>
Report move_items(const Step& s, int64_t first_group, int64_t last_group) {
  const int lines = LINES ? LINES : int(s.row / LINE);
  const Mask mask(s, s.item_frozen);
  const float noise_scale = float(std::pow(double(s.step_size), 1 / s.alpha)), cap = float(s.cap);
  const int64_t all = s.num_items * s.row;
  Noise noise(s);
  Line gradient[LINES ? LINES : MAX_LINES];
  Watch watch{};
  for (int64_t group = first_group; group < last_group; ++group) {
    const int64_t begin = group * GROUP, end = std::min(begin + GROUP, s.num_items);
    make_noise(s, uint32_t(group), end - begin, ITEM_NOISE, noise);
    for (int64_t item = begin; item < end; ++item) {
      for (int l = 0; l < lines; ++l) {
        const float* part = s.gradients + item * s.row + LINE * l;
        gradient[l] = line_at(part);
        for (int n = 1; n < s.num_buffers; ++n) gradient[l] = gradient[l] + line_at(part + n * all);
      }
      float curvature = 1;
      if (s.has_clip)
        for (int n = 0; n < s.num_buffers; ++n) curvature += s.clips[n * s.num_items + item];
      const Lengths by = lengths(s, s.item_steps, s.item_noises, item, noise_scale, curvature);
      move_row<LINES>(s.items + item * s.row, lines, gradient,
                      noise.values.data() + (item - begin) * s.rank, mask, by, cap, watch);
    }
  }
  return watch.report();
}

template <int LINES, bool HAS_CLIP>
void work_segments(const Step& s, Report* reports) {
  const std::vector<Segment> segments = draw_counts(s);
  uint32_t first_block[SEGMENTS] = {};
  for (int n = 1; n < SEGMENTS; ++n)
    first_block[n] = first_block[n - 1] + uint32_t(segments[n - 1].blocks.size());
  if (HAS_CLIP) measure_items(s);
  const int64_t num_lists = std::min<int64_t>(s.num_threads, SEGMENTS);
  const std::unique_ptr<Drawn[]> drawn(new Drawn[num_lists]);  // not set to zero, unlike a vector
  in_parallel(s.num_threads, SEGMENTS, [&](int64_t n) {
    reports[n] = work_segment<LINES, HAS_CLIP>(s, segments[n], int(n), first_block[n],
                                               drawn[n % num_lists]);
  });
}

template <int LINES, bool HAS_CLIP>
Report run_step_of(const Step& s) {
  Report reports[2 * SEGMENTS];
  if (s.moves_users) work_segments<LINES, HAS_CLIP>(s, reports);
  const int64_t groups = (s.num_items + GROUP - 1) / GROUP;
  if (s.moves_items)
    in_parallel(s.num_threads, SEGMENTS, [&](int64_t n) {
      reports[SEGMENTS + n] = move_items<LINES>(s, groups * n / SEGMENTS, groups * (n + 1) / SEGMENTS);
    });
  Report told;
  for (const Report& report : reports) told.add(report);
  return told;
}

inline Report run_step(const Step& s) {
  if (s.row != LINE) return s.has_clip ? run_step_of<0, true>(s) : run_step_of<0, false>(s);
  return s.has_clip ? run_step_of<1, true>(s) : run_step_of<1, false>(s);
}

inline void write_counts(const Step& s, uint8_t* counts) {
  uint32_t number = 0;
  for (const Segment& segment : draw_counts(s))
    for (const Block& block : segment.blocks) {
      std::vector<uint8_t> histogram(BLOCK);
      throw_draws(s, block, number++, histogram.data());
      std::copy(histogram.begin(), histogram.begin() + (block.end - block.begin),
                counts + block.begin);
    }
}
