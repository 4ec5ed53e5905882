// The kernels of factorization.cpp, whose top says what they do and how.  Without a guard: it includes
// this file into a namespace for each instruction set, and defines LEVYMC_AVX512 or LEVYMC_AVX2 for some.

#include "lanes.h"

#include "draws.h"

// Where the noise of a group of rows is made.
struct Noise {
  Keys keys;
  std::vector<uint32_t> words;
  std::vector<uint16_t> numbers;
  std::vector<float> parts, values;  // rank variables a row, SαS(1); the last row may be read beyond
  std::vector<uint64_t> cells;
  explicit Noise(const Step& s)
      : keys(s.key),
        words(GROUP * s.rank + WORDS),
        numbers(words.size()),
        parts(words.size()),
        values(words.size() + s.row),
        cells(words.size()) {}
};

// One word makes one variable.  A bit is the sign; the others, as a float, number a cell of the table
// by exponent and eight bits of the mantissa, and in it the other bits interpolate (levymc.stable).
// In three loops, as looking up is for scalars and the rest for vectors.
NOINLINE void make_noise(const Step& s, uint32_t group, int64_t num_rows, uint32_t stream, Noise& noise) {
  const int count = int(num_rows * s.rank + WORDS - 1) / WORDS * WORDS;
  uint32_t* __restrict words = noise.words.data();
  uint16_t* __restrict numbers = noise.numbers.data();
  float *__restrict parts = noise.parts.data(), *__restrict values = noise.values.data();
  uint64_t* __restrict cells = noise.cells.data();
  for (int begin = 0; begin < count; begin += WORDS)
    random_words(noise.keys, uint32_t(begin / WORDS), group, stream, words + begin);
  constexpr uint32_t first = 0x3f000000 >> 15;  // 0x3f000000: ½, the least uniform
  for (int i = 0; i < count; ++i) {
    const float uniform = float(int32_t(words[i] >> 1)) + 0.5f;
    uint32_t bits;
    std::memcpy(&bits, &uniform, 4);
    numbers[i] = uint16_t((bits >> 15) - first);
    parts[i] = float(int32_t(bits & 0x7fff)) * 0x1p-15f;
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    uint64_t pair;
    std::memcpy(&pair, s.quantiles + 2 * size_t(numbers[i]), 8);
    asm("" : "+r"(pair));  // keeps the compiler from gathering in vectors, which is slower
    cells[i] = pair;
  }
  for (int i = 0; i < count; ++i) {
    const uint32_t low = uint32_t(cells[i]), high = uint32_t(cells[i] >> 32);
    float start, change;
    std::memcpy(&start, &low, 4), std::memcpy(&change, &high, 4);
    const float size = start + change * parts[i];
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

// The running maxima of a report, of sizes.
struct Watch {
  Line jump, taming, largest;
  Report report() const {
    const float most = largest_of(largest);
    const float is_wrong = most < std::numeric_limits<float>::infinity() ? 0.0f : 1.0f;
    return {largest_of(jump), largest_of(taming), is_wrong, most, false};
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
      std::memcpy(&lines[line], bits, sizeof bits);
    }
  }
};

// A group of rows that wait for their move: the gradients of their likelihood, and their curvatures.
struct Group {
  std::vector<float> gradients, curvatures;
  explicit Group(const Step& s) : gradients(GROUP * s.row), curvatures(GROUP) {}
};

// A table, and what its rows are moved with.
struct Side {
  float* table;
  const float *steps, *noises;
  uint32_t stream;
  int64_t num_rows;
  float noise_scale;
  Mask mask;
};
INLINE Side user_side(const Step& s) {
  return {s.users, s.user_steps, s.user_noises, USER_NOISE, s.num_users,
          float(std::pow(double(s.step_size), 1 / s.alpha)), Mask(s, s.user_frozen)};
}
INLINE Side item_side(const Step& s) {
  return {s.items, s.item_steps, s.item_noises, ITEM_NOISE, s.num_items,
          float(std::pow(double(s.step_size), 1 / s.alpha)), Mask(s, s.item_frozen)};
}

// Move the rows of a group, from row `first` on; the prior's gradient is added here.
template <int LINES>
NOINLINE void move_group(const Step& s, const Side& side, int64_t first, const Group& group, Noise& noise,
                         Watch& watch) {
  const int lines = LINES ? LINES : int(s.row / LINE);
  const int64_t count = std::min<int64_t>(GROUP, side.num_rows - first);
  const float cap = float(s.cap);
  const bool has_cap = cap < std::numeric_limits<float>::infinity();
  const Line one = all_of(1), most = all_of(cap);
  make_noise(s, uint32_t(first / GROUP), count, side.stream, noise);
  Watch seen = watch;
  for (int64_t n = 0; n < count; ++n) {
    const Lengths by =
        lengths(s, side.steps, side.noises, first + n, side.noise_scale, group.curvatures[n]);
    for (int l = 0; l < lines; ++l) {
      float* row = side.table + (first + n) * LINE * lines + LINE * l;
      const Line mask = side.mask.lines[l], old = line_at(row);
      Line step = all_of(by.drift) * (line_at(&group.gradients[(n * lines + l) * LINE]) - old);
      Line shortened = all_of(by.shortened);
      if (has_cap) {
        const Line taming = one / (one + most / size_of(step));  // an infinite step becomes one of cap
        step = (most * taming) | sign_of(step);
        shortened = one - (one - shortened) * (one - taming);
      }
      const Line jump = all_of(by.noise) * line_at(&noise.values[n * s.rank + LINE * l]) & mask;
      const Line moved = old + ((step & mask) + jump);
      store(row, moved);
      seen.jump = larger_size(size_of(jump), seen.jump);
      seen.taming = larger_size(shortened & mask, seen.taming);
      seen.largest = larger_size(size_of(moved), seen.largest);
    }
  }
  watch = seen;
}

// |row|², for the clip.
INLINE float norm_of(const float* row, int lines) {
  Line squares{};
  for (int l = 0; l < lines; ++l) squares = squares + line_at(row + LINE * l) * line_at(row + LINE * l);
  return sum_of(squares);
}

// Where a segment adds up the gradients of the items, and their curvatures.
struct Sums {
  float *gradients, *curvatures;
};

// A user while its ratings are gone through: its row, and what they add to its gradient, in two sums that
// need not wait for each other, and to its curvature.
template <int LINES>
struct User {
  Line row[LINES ? LINES : MAX_LINES], gradient[LINES ? LINES : MAX_LINES][2];
  float norm, partner_norms;  // for the clip
};

// Add four ratings, from `place` of the list on, to the gradients of their user and their items; where
// fewer are left, the others get weight 0.
template <int LINES, bool HAS_CLIP>
INLINE void add_four(const Step& s, const Drawn& drawn, int place, int left, int lines, Sums sums,
                     User<LINES>& user) {
  const float* items = s.items;
  const uint32_t* starts = drawn.starts + place;
  Part parts[4];
  for (int n = 0; n < 4; ++n) {
    __builtin_prefetch(items + starts[n + AHEAD]);
    __builtin_prefetch(sums.gradients + starts[n + AHEAD], 1);
    parts[n] = products(user.row[0], line_at(items + starts[n]));
    for (int l = 1; l < lines; ++l)
      parts[n] = products(user.row[l], line_at(items + starts[n] + LINE * l), parts[n]);
  }
  const FourBits is_there = FourBits{0, 1, 2, 3} < left;
  const Four weights = (Four)((FourBits) * (const FourAnywhere*)(drawn.weights + place) & is_there);
  const Four errors = weights * (*(const FourAnywhere*)(drawn.values + place) -
                                 sums_of(parts[0], parts[1], parts[2], parts[3]));
  const Line error[4] = {all_of<0>(errors), all_of<1>(errors), all_of<2>(errors), all_of<3>(errors)};
  for (int n = 0; n < 4; ++n) {
    for (int l = 0; l < lines; ++l) {
      Line& own = user.gradient[l][n % 2];
      float* gradient = sums.gradients + starts[n] + LINE * l;
      own = own + error[n] * line_at(items + starts[n] + LINE * l);
      store(gradient, line_at(gradient) + error[n] * user.row[l]);
    }
    if (HAS_CLIP) {
      const int64_t item = drawn.items[place + n];
      user.partner_norms += weights[n] * s.partner_norms[item];
      sums.curvatures[item] += weights[n] * user.norm;
    }
  }
}

// A segment's part of the batch, block after block.
struct Batch {
  const Step& s;
  const Segment& segment;
  Drawn& drawn;
  uint32_t first_number;  // of its blocks
  float scale;            // N/n τ
  bool has_few_levels;
  size_t block = 0;  // the next one
  int64_t base = 0;  // where the present one begins
  int place = 0;     // how much of its list has been gone through

  // Make the next block the present one; false if it begins at `end` or there is none.
  bool go_on(int64_t end) {
    if (block == segment.blocks.size() || segment.blocks[block].begin >= end) return false;
    const Block& next = segment.blocks[block];
    throw_draws(s, next, first_number + uint32_t(block), drawn.histogram);
    s.is_wide ? list_draws<uint32_t>(s, next, has_few_levels, scale, drawn)
              : list_draws<uint16_t>(s, next, has_few_levels, scale, drawn);
    base = next.begin, place = 0, ++block;
    return true;
  }
};

// Go through the ratings of the users from `first` to `last`, which are at most a group.
template <int LINES, bool HAS_CLIP>
INLINE void add_group(const Step& s, int64_t first, int64_t last, Batch& batch, Sums sums, Group& group) {
  const int lines = LINES ? LINES : int(s.row / LINE);
  for (int64_t number = first; number < last; ++number) {
    const float* row = s.users + number * lines * LINE;
    User<LINES> user;
    for (int l = 0; l < lines; ++l) {
      user.row[l] = line_at(row + LINE * l);
      user.gradient[l][0] = user.gradient[l][1] = Line{};
    }
    user.partner_norms = 0;
    if (HAS_CLIP) user.norm = norm_of(row, lines);
    do {
      const int stop = batch.drawn.until(s.offsets[number + 1] - batch.base);
      for (int place = batch.place; place < stop; place += 4)
        add_four<LINES, HAS_CLIP>(s, batch.drawn, place, stop - place, lines, sums, user);
      batch.place = stop;
    } while (batch.place == batch.drawn.count && batch.go_on(s.offsets[number + 1]));
    float* gradient = &group.gradients[(number - first) * lines * LINE];
    for (int l = 0; l < lines; ++l)
      store(gradient + LINE * l, user.gradient[l][0] + user.gradient[l][1]);
    group.curvatures[number - first] = 1 + user.partner_norms;
  }
}

// Go through a segment's users: the gradients of its ratings, and the users' moves.
template <int LINES, bool HAS_CLIP>
Report work_segment(const Step& s, const Segment& segment, int number, uint32_t first_block, Drawn& drawn) {
  const Sums sums{s.gradients + number * s.num_items * s.row, s.clips + number * s.num_items};
  std::memset(sums.gradients, 0, sizeof(float) * s.num_items * s.row);
  if (HAS_CLIP) std::memset(sums.curvatures, 0, sizeof(float) * s.num_items);
  drawn.size = drawn.count = 0;
  drawn.is_outside = false;
  Batch batch{s, segment, drawn, first_block,
              float(double(s.num_ratings) / double(s.batch_size) * s.precision),
              has_few_levels(s.levels)};
  const Side side = user_side(s);
  Group group(s);
  Noise noise(s);
  Watch watch{};
  for (int64_t first = segment.first_user; first < segment.last_user; first += GROUP) {
    const int64_t last = std::min(first + GROUP, segment.last_user);
    add_group<LINES, HAS_CLIP>(s, first, last, batch, sums, group);
    move_group<LINES>(s, side, first, group, noise, watch);
  }
  Report report = watch.report();
  report.is_outside = drawn.is_outside;
  return report;
}

// Move the items of some groups: add up the segments' gradients, in order.
template <int LINES>
Report move_items(const Step& s, int64_t first_group, int64_t last_group) {
  const int64_t all = s.num_items * s.row;
  const Side side = item_side(s);
  Group group(s);
  Noise noise(s);
  Watch watch{};
  for (int64_t first = first_group * GROUP; first < last_group * GROUP; first += GROUP) {
    const int64_t count = std::min<int64_t>(GROUP, s.num_items - first);
    for (int64_t k = 0; k < count * s.row; k += LINE) {
      const float* part = s.gradients + first * s.row + k;
      Line sum = line_at(part);
      for (int n = 1; n < s.num_buffers; ++n) sum = sum + line_at(part + n * all);
      store(&group.gradients[k], sum);
    }
    for (int64_t item = 0; item < count; ++item) {
      float curvature = 1;
      for (int n = 0; s.has_clip && n < s.num_buffers; ++n)
        curvature += s.clips[n * s.num_items + first + item];
      group.curvatures[item] = curvature;
    }
    move_group<LINES>(s, side, first, group, noise, watch);
  }
  return watch.report();
}

template <int LINES, bool HAS_CLIP>
void work_segments(const Step& s, Report* reports) {
  const std::vector<Segment> segments = draw_counts(s);
  uint32_t first_block[SEGMENTS] = {};
  for (int n = 1; n < SEGMENTS; ++n)
    first_block[n] = first_block[n - 1] + uint32_t(segments[n - 1].blocks.size());
  for (int64_t item = 0; HAS_CLIP && item < s.num_items; ++item)
    s.partner_norms[item] = norm_of(s.items + item * s.row, int(s.row / LINE));
  const int64_t num_lists = std::min<int64_t>(s.num_threads, SEGMENTS);
  const std::unique_ptr<Drawn[]> drawn(new Drawn[num_lists]);  // not set to zero, unlike a vector
  in_parallel(s.num_threads, SEGMENTS, [&](int64_t n, int64_t thread) {
    reports[n] = work_segment<LINES, HAS_CLIP>(s, segments[n], int(n), first_block[n], drawn[thread]);
  });
}

template <int LINES, bool HAS_CLIP>
Report run_step_of(const Step& s) {
  Report reports[2 * SEGMENTS];
  if (s.moves_users) work_segments<LINES, HAS_CLIP>(s, reports);
  const int64_t groups = (s.num_items + GROUP - 1) / GROUP;
  if (s.moves_items)
    in_parallel(s.num_threads, SEGMENTS, [&](int64_t n, int64_t) {
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
