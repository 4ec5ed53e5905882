// One iteration of stochastic-gradient (fractional) Langevin dynamics for matrix factorisation.
//
// The model: ratings y of items i by users u, y ~ N(a_u · b_i + center, 1/τ), rows a_u, b_i ~ N(0, I).
// One iteration draws a batch of n of the N ratings, uniformly and with replacement, and moves every
// row x of both tables at once, both gradients at the old position:
//
//     g  = -x + (N/n) Σ_{ratings of the row in the batch} τ (y - center - a_u · b_i) (partner row)
//     x' = x + h · g + (η m)^{1/α} ξ,      h = η m c_α min(1, 1/(η m c_α S)),   ξ iid SαS(1),
//     S  = 1 + (N/n) Σ_{the same ratings} τ |partner row|²        (S only where asked for),
//
// where every coordinate s of the drift's step h g may be bounded: s / (1 + |s|/cap).
//
// Layout
//   Ratings are sorted by user.  A rating takes three bytes: its item (uint16; uint32 for more than
//   65 536 items) and its value's number (uint8) among at most 256 values.  `offsets` says where a
//   user's ratings begin.  Rows are padded to a multiple of 16 floats with zeros, which stay zero: at
//   rank ≤ 16 a row is one cache line, and one register of AVX-512 or two of AVX2.
//
//   segments   The users are cut into SEGMENTS parts of about as many ratings, each with its own
//              buffer of item gradients; one thread at a time works on a segment.  Neither number nor
//              bounds depend on the threads and buffers are added up in order, so that the result
//              does not depend on the number of threads, bit for bit.
//   blocks     A segment's ratings are cut into blocks of 2^14.  How many draws fall into each block
//              is a chain of conditional binomials, which is exact; where in the block they fall is
//              counted in a histogram of bytes that stays in the first-level cache.  What it marks of the
//              ratings is compressed into a list (draws.h): the batch sorted by user, each rating once with
//              its multiplicity.
//   users      A user's row and its gradient stay in registers while its ratings are gone through, four at
//              a time.  Rows are moved GROUP by GROUP as soon as their gradients are known, as nobody else
//              needs their old values.
//   items      Rows of items and of their gradients are asked for some 24 ratings ahead, and moved last.
//   noise      Philox words (a counter-based generator), numbered by the step's key, table, and
//              group of 32 rows; one word a variable, through a table of quantiles.
//
// Rows are moved in place.  A step that ends at a number that is not finite must not be made at all:
// where a bound on the new entries cannot rule this out, both tables are copied first.
//
// The kernels are in step.h, with lanes.h and draws.h, which is included once for each instruction set;
// `step_of_this_machine` chooses.  All draw the same random numbers; sums differ by rounding.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "checks.h"
#include "machine.h"
#include "philox.h"
#include "xla/ffi/api/ffi.h"

namespace {

constexpr int SEGMENTS = 4;        // buffers of item gradients, and the most threads of use
constexpr int BLOCK = 1 << 14;     // ratings of a block; also the bytes of its histogram
constexpr int GROUP = 32;          // rows whose noise is made at once
constexpr int AHEAD = 24;          // ratings between asking for an item's row and using it
constexpr int STREAM = 2048;       // ratings between asking for one from memory and reading it
constexpr int BEYOND = 64;         // entries behind a list that vectors may write
constexpr int LINE = 16;           // floats of a cache line; rows are whole lines
constexpr int MAX_LINES = 32;      // of a row, so that a gradient fits on the stack
constexpr int WORDS = 32;          // random words that the generator makes at once
constexpr int CELLS = 8193;        // of the table of quantiles

// Streams of random words that must not meet: the last word of the counter.
enum Stream : uint32_t { COUNTS, PLACES, USER_NOISE, ITEM_NOISE };

// Everything that a step reads and writes.  See the top for the names.
struct Step {
  int64_t num_users, num_items, num_ratings, row;  // row: floats of a padded row
  float *users, *items;                            // moved in place
  const void* rated;                               // the item of each rating,
  bool is_wide;                                    //   as uint32 rather than uint16
  const uint8_t* codes;
  const float* levels;  // the value of each code, less the center
  const int32_t* offsets;
  const float *user_steps, *user_noises, *item_steps, *item_noises;  // m and m^{1/α}, or null
  const float* quantiles;  // pairs: a quantile, and its change over the cell
  Key key;
  float step_size, largest;  // η; a bound on the size of the entries
  int64_t batch_size, rank, num_threads;
  int64_t user_frozen, item_frozen;  // bit k: column k does not move
  double alpha, precision, drift_scale, cap, largest_step;  // largest_step: of all m
  bool has_clip;
  float *gradients, *clips;  // scratch: SEGMENTS × items × row, SEGMENTS × items
  float* partner_norms;      // scratch: items
  bool moves_users = true, moves_items = true;  // split.h makes the two halves apart,
  int num_buffers = SEGMENTS;                   //   and gives the items' gradients in one buffer
};

// What a step tells: the largest noise, the largest shortening of the drift's step, whether an entry
// is not finite, the largest entry; and whether a rating named an item that is not there.
struct Report {
  float jump = 0, taming = 0, wrong = 0, largest = 0;
  bool is_outside = false;
  void add(const Report& other) {
    is_outside |= other.is_outside;
    jump = std::max(jump, other.jump);
    taming = std::max(taming, other.taming);
    wrong = std::max(wrong, other.wrong);
    largest = std::max(largest, other.largest);
  }
};

// A stream of uniforms for the few binomials of a step.
struct Uniforms {
  Key key;
  uint32_t count = 0;
  double next() {  // in (0, 1), of 53 bits
    const uint32_t counter[4] = {count++, 0, 0, COUNTS};
    uint32_t w[4];
    philox(counter, key, w);
    const uint64_t wide = (uint64_t{w[0]} << 32 | w[1]) >> 11;
    return (double(wide) + 0.5) * 0x1p-53;
  }
};

// log k! - (k + ½) log (k + 1) + (k + 1) - ½ log 2π, Stirling's remainder.
inline double stirling_rest(double k) {
  static const double first[] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
                                 0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
                                 0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
                                 0.008330563433362871};
  if (k < 10) return first[int(k)];
  const double next = k + 1, square = next * next;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / next;
}

// Binomial(n, p) by inversion, walking up from 0: for n p of a few.
inline int64_t binomial_by_inversion(Uniforms& uniforms, int64_t n, double p) {
  const double log_q = std::log1p(-p);
  double sum = 0;
  for (int64_t successes = 0;; ++successes) {  // waiting times are geometric
    sum += std::floor(std::log(uniforms.next()) / log_q) + 1;
    if (sum > double(n)) return successes;
  }
}

// Binomial(n, p): transformed rejection (Hörmann 1993, BTRS), exact up to the rounding of doubles.
inline int64_t binomial(Uniforms& uniforms, int64_t n, double p) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomial(uniforms, n, 1 - p);
  if (double(n) * p < 10) return binomial_by_inversion(uniforms, n, p);
  const double spread = std::sqrt(double(n) * p * (1 - p));
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = double(n) * p + 0.5, v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread, odds = p / (1 - p);
  const double mode = std::floor(double(n + 1) * p);
  while (true) {
    const double u = uniforms.next() - 0.5;
    double v = uniforms.next();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return int64_t(k);
    if (k < 0 || k > double(n)) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound =
        (mode + 0.5) * std::log((mode + 1) / (odds * (double(n) - mode + 1))) +
        (double(n) + 1) * std::log((double(n) - mode + 1) / (double(n) - k + 1)) +
        (k + 0.5) * std::log(odds * (double(n) - k + 1) / (k + 1)) + stirling_rest(mode) +
        stirling_rest(double(n) - mode) - stirling_rest(k) - stirling_rest(double(n) - k);
    if (v <= bound) return int64_t(k);
  }
}

// Ratings [begin, end) of a block, and how many draws fall into it.
struct Block {
  int64_t begin, end, draws;
};

struct Segment {
  int64_t first_user, last_user;  // [first, last)
  std::vector<Block> blocks;
};

// Cut the users into segments of about as many ratings, at multiples of GROUP.
std::vector<Segment> cut(const Step& s) {
  std::vector<Segment> segments(SEGMENTS);
  int64_t begin = 0;
  for (int number = 0; number < SEGMENTS; ++number) {
    const int64_t wanted = s.num_ratings * (number + 1) / SEGMENTS;
    int64_t end = std::lower_bound(s.offsets, s.offsets + s.num_users, wanted) - s.offsets;
    end = std::min((end + GROUP - 1) / GROUP * GROUP, s.num_users);
    if (number + 1 == SEGMENTS) end = s.num_users;
    segments[number] = {begin, std::max(begin, end), {}};
    begin = segments[number].last_user;
  }
  return segments;
}

// Draw how many of the batch fall into each block of each segment.
std::vector<Segment> draw_counts(const Step& s) {
  std::vector<Segment> segments = cut(s);
  Uniforms uniforms{s.key};
  int64_t draws = s.batch_size, ratings = s.num_ratings;
  for (Segment& segment : segments) {
    const int64_t last = s.offsets[segment.last_user];
    for (int64_t begin = s.offsets[segment.first_user]; begin < last; begin += BLOCK) {
      const int64_t end = std::min<int64_t>(begin + BLOCK, last), size = end - begin;
      const int64_t here = binomial(uniforms, draws, double(size) / double(ratings));
      segment.blocks.push_back({begin, end, here});
      draws -= here;
      ratings -= size;
    }
  }
  return segments;
}

// Run work(number, thread) for the numbers below `count`; a thread that is done takes the next.
template <class Work>
void in_parallel(int64_t num_threads, int64_t count, const Work& work) {
  const int64_t threads = std::min(num_threads, count);
  std::atomic<int64_t> next{0};
  auto share = [&](int64_t thread) {
    for (int64_t number = next++; number < count; number = next++) work(number, thread);
  };
  std::vector<std::thread> others;
  for (int64_t first = 1; first < threads; ++first) others.emplace_back(share, first);
  share(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

// The kernels, once for each instruction set.
#if LEVYMC_X86
#define LEVYMC_AVX2
BEGIN_TARGET("avx2,fma,bmi,bmi2,popcnt")
namespace avx2 {
#include "step.h"
}
END_TARGET
#undef LEVYMC_AVX2

#define LEVYMC_AVX512
BEGIN_TARGET("avx2,fma,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")
namespace avx512 {
#include "step.h"
}
END_TARGET
#undef LEVYMC_AVX512
#endif

namespace portable {
#include "step.h"
}

namespace {

Report step_of_this_machine(const Step& s) {
#if LEVYMC_X86
  if (instructions() == Instructions::AVX512) return avx512::run_step(s);
  if (instructions() == Instructions::AVX2) return avx2::run_step(s);
#endif
  return portable::run_step(s);
}

void counts_by_this_machine(const Step& s, uint8_t* counts) {
#if LEVYMC_X86
  if (instructions() == Instructions::AVX512) return avx512::write_counts(s, counts);
  if (instructions() == Instructions::AVX2) return avx2::write_counts(s, counts);
#endif
  portable::write_counts(s, counts);
}

// Whether no new entry can overflow, whatever the batch and the noise.
bool is_surely_finite(const Step& s) {
  const double m = s.largest_step, entry = s.largest;
  double value = 0;
  for (int code = 0; code < 256; ++code) value = std::max(value, std::fabs(double(s.levels[code])));
  const double residual = value + double(s.row) * entry * entry;
  const double gradient =
      entry + double(s.num_ratings) * s.precision * std::max(residual, double(s.row) * entry) * entry;
  const double noise = std::fabs(double(s.quantiles[0])) *
                       std::pow(std::max(1.0, double(s.step_size) * m), 1 / s.alpha);
  return entry + s.step_size * m * s.drift_scale * gradient + noise < 1e37;  // false for NaN
}

Report whole_step(const Step& s) {
  if (is_surely_finite(s)) return step_of_this_machine(s);
  const std::vector<float> users(s.users, s.users + s.num_users * s.row);
  const std::vector<float> items(s.items, s.items + s.num_items * s.row);
  Report report = step_of_this_machine(s);
  if (report.wrong > 0) {
    std::copy(users.begin(), users.end(), s.users);
    std::copy(items.begin(), items.end(), s.items);
    report.largest = s.largest;
  }
  return report;
}

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F32Out = ffi::Result<F32>;

int64_t from_end(ffi::Span<const int64_t> sizes, size_t place) {
  return sizes[sizes.size() - place];
}

// The numbers that tell how far a step reads.  Which items ratings name is looked at as they are drawn.
void check_numbers(Checks& checks, const Step& s, int64_t num_chains) {
  checks.within("the number of chains", num_chains, 1, std::numeric_limits<int32_t>::max());
  checks.within("rank", s.rank, 1, s.row);
  checks.within("the number of ratings", s.num_ratings, 1, std::numeric_limits<int32_t>::max());
  checks.within("batch_size", s.batch_size, 1, s.num_ratings);
  checks.within("num_threads", s.num_threads, 1, 1 << 16);
}

// Under vmap every array has a leading axis: of the chains, or of size 1 where they share it.
ffi::Error step_of_chains(F32 users, F32 items, ffi::Buffer<ffi::U32> keys, F32 step_size, F32 largest,
                          ffi::AnyBuffer rated, ffi::Buffer<ffi::U8> codes, F32 levels,
                          ffi::Buffer<ffi::S32> offsets, F32 user_steps, F32 user_noises,
                          F32 item_steps, F32 item_noises, F32 quantiles, F32Out new_users,
                          F32Out new_items, F32Out reports, F32Out gradients, F32Out norms,
                          int64_t batch_size, int64_t rank, int64_t num_threads, int64_t user_frozen,
                          int64_t item_frozen, double alpha, double precision, double drift_scale,
                          double cap, double largest_step, bool has_clip) {
  Checks checks;
  checks.axes("users", users, 2, 3);
  checks.axes("items", items, 2, 3);
  checks.axes("rated", rated, 1, 2);
  if (!checks) return checks.error();
  Step s{};
  s.row = from_end(users.dimensions(), 1);
  s.num_users = from_end(users.dimensions(), 2);
  s.num_items = from_end(items.dimensions(), 2);
  s.num_ratings = from_end(rated.dimensions(), 1);
  s.batch_size = batch_size, s.rank = rank, s.num_threads = num_threads;
  checks.within("the number of users", s.num_users, 1, std::numeric_limits<int32_t>::max());
  checks.within("the number of items", s.num_items, 1, std::numeric_limits<int32_t>::max());
  checks.require(s.row > 0 && from_end(items.dimensions(), 1) == s.row && s.row % LINE == 0 &&
                     s.row <= LINE * MAX_LINES,
                 "rows must have the same multiple of 16 floats, at most 512");
  if (!checks) return checks.error();
  const int64_t num_chains = int64_t(users.element_count()) / (s.num_users * s.row);
  check_numbers(checks, s, num_chains);
  checks.require(s.num_items <= std::numeric_limits<uint32_t>::max() / s.row,
                 "items have 2^32 entries or more");
  checks.require(rated.element_type() == ffi::U32 || rated.element_type() == ffi::U16,
                 "rated must be uint16 or uint32");
  checks.size("items", items, num_chains * s.num_items * s.row);
  checks.size("keys", keys, 2 * num_chains, 2);
  checks.size("step_size", step_size, num_chains, 1);
  checks.size("largest", largest, num_chains, 1);
  checks.size("rated", rated, s.num_ratings);
  checks.size("codes", codes, s.num_ratings);
  checks.size("levels", levels, 256);
  checks.size("offsets", offsets, s.num_users + 1);
  checks.size("user_steps", user_steps, s.num_users, 0);
  checks.size("user_noises", user_noises, s.num_users, 0);
  checks.size("item_steps", item_steps, s.num_items, 0);
  checks.size("item_noises", item_noises, s.num_items, 0);
  checks.size("quantiles", quantiles, 2 * CELLS);
  checks.size("new users", *new_users, num_chains * s.num_users * s.row);
  checks.size("new items", *new_items, num_chains * s.num_items * s.row);
  checks.size("reports", *reports, 4 * num_chains);
  checks.size("gradients", *gradients, num_chains * SEGMENTS * s.num_items * s.row);
  checks.size("norms", *norms, num_chains * (SEGMENTS + 1) * s.num_items);
  if (checks) checks.offsets("offsets", offsets.typed_data(), s.num_users, s.num_ratings);
  if (!checks) return checks.error();
  s.rated = rated.untyped_data();
  s.is_wide = rated.element_type() == ffi::U32;
  s.codes = codes.typed_data();
  s.levels = levels.typed_data();
  s.offsets = offsets.typed_data();
  auto given = [](const F32& array, int64_t size) {
    return int64_t(array.element_count()) == size ? array.typed_data() : nullptr;  // or empty
  };
  s.user_steps = given(user_steps, s.num_users), s.user_noises = given(user_noises, s.num_users);
  s.item_steps = given(item_steps, s.num_items), s.item_noises = given(item_noises, s.num_items);
  s.quantiles = quantiles.typed_data();
  s.user_frozen = user_frozen, s.item_frozen = item_frozen;
  s.alpha = alpha, s.precision = precision, s.drift_scale = drift_scale, s.cap = cap;
  s.largest_step = largest_step, s.has_clip = has_clip;
  s.gradients = gradients->typed_data();
  s.partner_norms = norms->typed_data();
  s.clips = s.partner_norms + s.num_items;
  std::memcpy(new_users->typed_data(), users.typed_data(),
              new_users->typed_data() == users.typed_data() ? 0 : users.size_bytes());
  std::memcpy(new_items->typed_data(), items.typed_data(),
              new_items->typed_data() == items.typed_data() ? 0 : items.size_bytes());
  for (int64_t chain = 0; chain < num_chains; ++chain) {
    auto of_chain = [&](const F32& array) {
      return array.typed_data()[array.element_count() == 1 ? 0 : chain];
    };
    s.users = new_users->typed_data() + chain * s.num_users * s.row;
    s.items = new_items->typed_data() + chain * s.num_items * s.row;
    std::memcpy(s.key.words, keys.typed_data() + (keys.element_count() == 2 ? 0 : 2 * chain), 8);
    s.step_size = of_chain(step_size), s.largest = of_chain(largest);
    const Report report = whole_step(s);
    checks.require(!report.is_outside, "rated names an item that is not there");
    if (!checks) return checks.error();
    const float told[4] = {report.jump, report.taming, report.wrong, report.largest};
    std::memcpy(reports->typed_data() + 4 * chain, told, sizeof told);
  }
  return ffi::Error::Success();
}

// For tests: how often each rating is in the batch.
ffi::Error batch_counts(ffi::Buffer<ffi::U32> key, ffi::Buffer<ffi::S32> offsets,
                        ffi::Result<ffi::Buffer<ffi::U8>> counts, int64_t batch_size) {
  Step s{};
  s.num_users = int64_t(offsets.element_count()) - 1;
  s.num_ratings = int64_t(counts->element_count());
  s.offsets = offsets.typed_data();
  s.batch_size = batch_size;
  Checks checks;
  checks.size("key", key, 2);
  checks.within("the number of users", s.num_users, 1, std::numeric_limits<int32_t>::max());
  checks.within("batch_size", batch_size, 1, s.num_ratings);
  if (checks) checks.offsets("offsets", s.offsets, s.num_users, s.num_ratings);
  if (!checks) return checks.error();
  std::memcpy(s.key.words, key.typed_data(), 8);
  counts_by_this_machine(s, counts->typed_data());
  return ffi::Error::Success();
}

}  // namespace

#include "split.h"

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_factorization_step, step_of_chains,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()                         // users
                                  .Arg<F32>()                         // items
                                  .Arg<ffi::Buffer<ffi::U32>>()       // keys
                                  .Arg<F32>()                         // step_size
                                  .Arg<F32>()                         // largest
                                  .Arg<ffi::AnyBuffer>()              // rated
                                  .Arg<ffi::Buffer<ffi::U8>>()        // codes
                                  .Arg<F32>()                         // levels
                                  .Arg<ffi::Buffer<ffi::S32>>()       // offsets
                                  .Arg<F32>()                         // user_steps
                                  .Arg<F32>()                         // user_noises
                                  .Arg<F32>()                         // item_steps
                                  .Arg<F32>()                         // item_noises
                                  .Arg<F32>()                         // quantiles
                                  .Ret<F32>()                         // users
                                  .Ret<F32>()                         // items
                                  .Ret<F32>()                         // reports
                                  .Ret<F32>()                         // scratch: gradients
                                  .Ret<F32>()                         // scratch: norms, clips
                                  .Attr<int64_t>("batch_size")
                                  .Attr<int64_t>("rank")
                                  .Attr<int64_t>("num_threads")
                                  .Attr<int64_t>("user_frozen")
                                  .Attr<int64_t>("item_frozen")
                                  .Attr<double>("alpha")
                                  .Attr<double>("precision")
                                  .Attr<double>("drift_scale")
                                  .Attr<double>("cap")
                                  .Attr<double>("largest_step")
                                  .Attr<bool>("has_clip"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_factorization_batch, batch_counts,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::U32>>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Ret<ffi::Buffer<ffi::U8>>()
                                  .Attr<int64_t>("batch_size"));
