// One sweep of the Gibbs sampler for matrix factorisation.
//
// The model is that of factorization.cpp: y ~ N(a_u · b_i + center, 1/τ), rows a_u, b_i ~ N(0, I).
// Given the items, the rows of the users are independent and Gaussian,
//
//     a_u ~ N(Λ⁻¹ v, Λ⁻¹),    Λ = I + τ Σ b_i b_iᵀ,    v = τ Σ (y - center) b_i,
//
// sums over the user's ratings; and the other way round.  A sweep draws all users, then all items.
//
// Layout
//   Both tables have rows of `width` floats, a multiple of 16, padded with zeros that stay zero.
//   Each side has its own copy of the ratings, sorted by its rows: `offsets` says where a row's
//   ratings begin, `partners` names the other side's row, `codes` the number of the value among
//   `levels`, from which the center has been taken.
//   Sums run in float over RUN ratings, where they fit the registers, and are added up in double.
//   A column that is frozen keeps its value: the others are drawn given it.
//   With a spread of 0 rows are set to their means instead, which is alternating least squares.
//   Random words are numbered by key, side and row, so that threads change nothing.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "checks.h"
#include "machine.h"
#include "philox.h"
#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;

constexpr int RUN = 256;   // ratings whose sums stay in float
constexpr int AHEAD = 16;  // ratings between asking for a partner's row and using it
constexpr int LINES = 5;   // of a matrix that are summed at once

// `count` standard normal variables, by Box and Muller, that belong to a row.
void normals(Key key, uint32_t side, uint32_t row, int count, double* out) {
  for (int i = 0; i < count; i += 2) {
    const uint32_t counter[4] = {uint32_t(i), row, side, 0};
    uint32_t words[4];
    philox(counter, key, words);
    // 53 bits above zero and at most one, and 32 bits of an angle.
    const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
    const double size = std::sqrt(-2 * std::log((double(bits) + 1) * 0x1p-53));
    const double angle = 6.283185307179586 * (double(words[2]) + 0.5) * 0x1p-32;
    out[i] = size * std::cos(angle);
    if (i + 1 < count) out[i + 1] = size * std::sin(angle);
  }
}

// One side of the model, whose rows are drawn, and the other, which is given.
struct Side {
  uint32_t number;
  int64_t num_rows, width, rank;
  uint64_t frozen;  // bit k: column k keeps its value
  float precision, spread;
  float* rows;
  const float* others;
  const int32_t* offsets;
  const uint32_t* partners;
  const uint8_t* codes;
  const float* levels;
};

// Eight entries of a row.
typedef float Vector __attribute__((vector_size(32), aligned(4), may_alias));

// Lines `first` to first + COUNT of Σ b bᵀ, sixteen columns from `column` on; sums stay in registers.
template <int COUNT>
INLINE void add_lines(const Side& side, int64_t begin, int64_t end, int64_t first, int64_t column,
                      float* gram) {
  Vector low[COUNT] = {}, high[COUNT] = {};
  for (int64_t n = begin; n < end; ++n) {
    if (n + AHEAD < end) __builtin_prefetch(side.others + side.partners[n + AHEAD] * side.width);
    const float* partner = side.others + side.partners[n] * side.width;
    const Vector* row = reinterpret_cast<const Vector*>(partner + column);
    const Vector left = row[0], right = row[1];
    for (int c = 0; c < COUNT; ++c) {
      low[c] += partner[first + c] * left;
      high[c] += partner[first + c] * right;
    }
  }
  for (int c = 0; c < COUNT; ++c) {
    Vector* line = reinterpret_cast<Vector*>(gram + (first + c) * side.width + column);
    line[0] = low[c];
    line[1] = high[c];
  }
}

// Sixteen columns of Σ y b.
INLINE void add_moment(const Side& side, int64_t begin, int64_t end, int64_t column, float* moment) {
  Vector low = {}, high = {};
  for (int64_t n = begin; n < end; ++n) {
    const float* partner = side.others + side.partners[n] * side.width;
    const Vector* row = reinterpret_cast<const Vector*>(partner + column);
    low += side.levels[side.codes[n]] * row[0];
    high += side.levels[side.codes[n]] * row[1];
  }
  reinterpret_cast<Vector*>(moment + column)[0] = low;
  reinterpret_cast<Vector*>(moment + column)[1] = high;
}

// Σ b bᵀ and Σ y b over a run of a row's ratings; `gram` is rank × width.  LINES fit the registers.
INLINE void add_run(const Side& side, int64_t begin, int64_t end, float* gram, float* moment) {
  for (int64_t column = 0; column < side.width; column += 16) {
    int64_t first = 0;
    for (; first + LINES <= side.rank; first += LINES)
      add_lines<LINES>(side, begin, end, first, column, gram);
    for (; first < side.rank; ++first) add_lines<1>(side, begin, end, first, column, gram);
    add_moment(side, begin, end, column, moment);
  }
}

struct Room {
  std::vector<float> gram, moment;
  std::vector<double> precision, linear, draw;

  explicit Room(const Side& side)
      : gram(side.rank * side.width), moment(side.width), precision(side.rank * side.rank),
        linear(side.rank), draw(side.rank) {}
};

// Λ and v of a row.
INLINE void gather(const Side& side, int64_t row, Room& room) {
  const int64_t rank = side.rank;
  std::fill(room.precision.begin(), room.precision.end(), 0.0);
  std::fill(room.linear.begin(), room.linear.end(), 0.0);
  for (int64_t begin = side.offsets[row]; begin < side.offsets[row + 1]; begin += RUN) {
    const int64_t end = std::min<int64_t>(begin + RUN, side.offsets[row + 1]);
    add_run(side, begin, end, room.gram.data(), room.moment.data());
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t j = 0; j <= k; ++j)
        room.precision[k * rank + j] += side.precision * room.gram[k * side.width + j];
      room.linear[k] += side.precision * room.moment[k];
    }
  }
  for (int64_t k = 0; k < rank; ++k) room.precision[k * rank + k] += 1;
}

// Condition on the frozen columns: they move to the right-hand side and leave ones behind.
void freeze(const Side& side, const float* values, Room& room) {
  const int64_t rank = side.rank;
  double* lambda = room.precision.data();
  for (int64_t k = 0; k < rank; ++k) {
    if (!(side.frozen >> k & 1)) continue;
    for (int64_t j = 0; j < rank; ++j) {
      if (j == k) continue;
      double& entry = lambda[std::max(j, k) * rank + std::min(j, k)];
      if (!(side.frozen >> j & 1)) room.linear[j] -= entry * values[k];
      entry = 0;
    }
    lambda[k * rank + k] = 1;
    room.linear[k] = values[k];
  }
}

// x = Λ⁻¹ v + C⁻ᵀ z with Λ = C Cᵀ, which is N(Λ⁻¹ v, Λ⁻¹); on entry room.draw holds z.
void solve(int64_t rank, Room& room) {
  double *c = room.precision.data(), *v = room.linear.data(), *x = room.draw.data();
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t j = 0; j <= k; ++j) {
      double sum = c[k * rank + j];
      for (int64_t i = 0; i < j; ++i) sum -= c[k * rank + i] * c[j * rank + i];
      c[k * rank + j] = k == j ? std::sqrt(sum) : sum / c[j * rank + j];
    }
    for (int64_t i = 0; i < k; ++i) v[k] -= c[k * rank + i] * v[i];
    v[k] /= c[k * rank + k];
  }
  for (int64_t k = rank - 1; k >= 0; --k) {
    double sum = v[k] + x[k];
    for (int64_t i = k + 1; i < rank; ++i) sum -= c[i * rank + k] * x[i];
    x[k] = sum / c[k * rank + k];
  }
}

FOR_EACH_MACHINE
void draw_rows(const Side& side, Key key, int64_t first, int64_t last) {
  Room room(side);
  for (int64_t row = first; row < last; ++row) {
    float* values = side.rows + row * side.width;
    gather(side, row, room);
    freeze(side, values, room);
    normals(key, side.number, uint32_t(row), int(side.rank), room.draw.data());
    for (int64_t k = 0; k < side.rank; ++k)
      room.draw[k] *= side.frozen >> k & 1 ? 0.0 : side.spread;
    solve(side.rank, room);
    for (int64_t k = 0; k < side.rank; ++k) values[k] = float(room.draw[k]);
  }
}

// All rows of a side, cut so that threads have about as many ratings and rows each.
void draw_side(const Side& side, Key key, int64_t num_threads) {
  const int64_t work = side.offsets[side.num_rows] + side.num_rows;
  std::vector<std::thread> threads;
  int64_t first = 0;
  for (int64_t t = 1; t <= num_threads; ++t) {
    int64_t last = first;
    while (last < side.num_rows && side.offsets[last] + last < work * t / num_threads) ++last;
    if (t == num_threads) last = side.num_rows;
    if (t == num_threads) draw_rows(side, key, first, last);
    else threads.emplace_back([&side, key, first, last] { draw_rows(side, key, first, last); });
    first = last;
  }
  for (auto& thread : threads) thread.join();
}

using F32 = ffi::Buffer<ffi::F32>;
using S32 = ffi::Buffer<ffi::S32>;
using U32 = ffi::Buffer<ffi::U32>;
using U8 = ffi::Buffer<ffi::U8>;

// The ratings as one side has them.
void check_side(Checks& checks, const char* name, int64_t num_rows, int64_t num_others, const S32& offsets,
                const U32& partners, const U8& codes) {
  const std::string side(name);
  const int64_t num_ratings = int64_t(partners.element_count());
  checks.size((side + "'s offsets").c_str(), offsets, num_rows + 1);
  checks.size((side + "'s codes").c_str(), codes, num_ratings);
  if (!checks) return;
  checks.offsets((side + "'s offsets").c_str(), offsets.typed_data(), num_rows, num_ratings);
  checks.indices((side + "'s partners").c_str(), partners.typed_data(), num_ratings, num_others);
}

ffi::Error sweep(F32 users, F32 items, U32 key, F32 precision, F32 levels, S32 user_offsets, U32 rated,
                 U8 user_codes, S32 item_offsets, U32 raters, U8 item_codes, ffi::Result<F32> new_users,
                 ffi::Result<F32> new_items, int64_t rank, double spread, int64_t user_frozen,
                 int64_t item_frozen, int64_t num_threads) {
  Checks checks;
  checks.axes("users", users, 2, 2);
  checks.axes("items", items, 2, 2);
  if (!checks) return checks.error();
  const int64_t num_users = users.dimensions()[0], num_items = items.dimensions()[0];
  const int64_t width = users.dimensions()[1];
  checks.require(width > 0 && width % 16 == 0 && items.dimensions()[1] == width,
                 "rows must have the same multiple of 16 floats");
  checks.within("rank", rank, 1, std::min<int64_t>(width, 63));
  checks.within("num_threads", num_threads, 1, 1 << 16);
  checks.size("key", key, 2);
  checks.size("precision", precision, 1);
  checks.size("levels", levels, 256);
  checks.size("new users", *new_users, num_users * width);
  checks.size("new items", *new_items, num_items * width);
  check_side(checks, "user", num_users, num_items, user_offsets, rated, user_codes);
  check_side(checks, "item", num_items, num_users, item_offsets, raters, item_codes);
  if (!checks) return checks.error();
  float *a = new_users->typed_data(), *b = new_items->typed_data();
  if (a != users.typed_data()) std::memcpy(a, users.typed_data(), users.size_bytes());
  if (b != items.typed_data()) std::memcpy(b, items.typed_data(), items.size_bytes());
  const Key words{{key.typed_data()[0], key.typed_data()[1]}};
  const float tau = precision.typed_data()[0];
  const Side user_side{0, num_users, width, rank, uint64_t(user_frozen), tau, float(spread), a, b,
                       user_offsets.typed_data(), rated.typed_data(), user_codes.typed_data(),
                       levels.typed_data()};
  const Side item_side{1, num_items, width, rank, uint64_t(item_frozen), tau, float(spread), b, a,
                       item_offsets.typed_data(), raters.typed_data(), item_codes.typed_data(),
                       levels.typed_data()};
  draw_side(user_side, words, num_threads);
  draw_side(item_side, words, num_threads);
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    levymc_gibbs_sweep, sweep,
    xla::ffi::Ffi::Bind()
        .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::U8>>()
        .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
        .Arg<xla::ffi::Buffer<xla::ffi::U8>>()
        .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
        .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
        .Attr<int64_t>("rank")
        .Attr<double>("spread")
        .Attr<int64_t>("user_frozen")
        .Attr<int64_t>("item_frozen")
        .Attr<int64_t>("num_threads"));
